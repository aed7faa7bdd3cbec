"""How much a run's model shall think: whose wish counts, what the model can do, and what is tried after a refusal.

Pure. What a level is in the words of a provider is the matter of its family. Source: spec 04, 3.1.
"""

import re
from collections.abc import Collection

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import ModelFacts, ThinkingLevel

_L = ThinkingLevel
_STRENGTHS = (_L.MINIMAL, _L.LOW, _L.MEDIUM, _L.HIGH, _L.XHIGH, _L.MAX)
_STRONGEST_WANTED = frozenset({_L.XHIGH, _L.MAX, _L.ULTRA})


def valid_levels(facts: ModelFacts) -> tuple[ThinkingLevel, ...]:
    """The levels that may be asked of a model; of one that nobody knows, all. OFF counts as one."""
    if not facts.is_known:
        return tuple(_L)
    if not facts.can_think:
        return (_L.OFF,)
    offered = set(facts.thinking_levels) if facts.thinking_levels else set(_L)
    if _L.LOW in offered:
        offered.add(_L.MINIMAL)  # the weakest that there is
    mapped = {_L(name): word for name, word in facts.effort_map.items()}
    offered = (offered | mapped.keys() | {_L.OFF}) - {level for level, word in mapped.items() if word is None}
    return tuple(level for level in _L if level in offered)


def check_level(level: ThinkingLevel, facts: ModelFacts, *, model: str) -> None:
    """Raises FieldError FIELD_INVALID, which lists the valid levels, for one that the model cannot do (R-4.21)."""
    valid = valid_levels(facts)
    if level in valid:
        return
    names = ", ".join(each.value for each in valid)
    problem = f"the model {model} does not know the thinking level {level.value}; valid: {names}"
    raise FieldError(ErrorCode.FIELD_INVALID, "thinking", problem)


def level_for(wish: ThinkingLevel | None, facts: ModelFacts) -> ThinkingLevel | None:
    """The level of a run's calls (R-4.19). `wish`: of the request, else the session, the agent, the defaults; None: of
    nobody. None: nothing is said, the provider's own default holds, as nobody knows whether the model can think."""
    if wish is None:
        if not facts.is_known:
            return None
        wish = _L.MEDIUM if facts.can_think else _L.OFF
    return nearest_level(wish, facts)


def nearest_level(level: ThinkingLevel, facts: ModelFacts) -> ThinkingLevel:
    """`level`, or what stands for it where the model does not have it (R-4.22). Of two equally near, the weaker."""
    valid = valid_levels(facts)
    if level in valid or level is _L.OFF:
        return level
    strengths = [each for each in _STRENGTHS if each in valid]
    if not strengths:
        return _L.OFF
    if level in _STRONGEST_WANTED:
        return strengths[-1]
    place = _STRENGTHS.index(_L.MEDIUM if level is _L.ADAPTIVE else level)
    return min(strengths, key=lambda each: abs(_STRENGTHS.index(each) - place))


_ABOUT_THINKING = re.compile(r"think|reasoning|\beffort\b", re.IGNORECASE)
_ABOUT_A_VALUE = re.compile(
    r"unsupported|not (?:be )?supported|(?:does|do) not support|doesn't support|cannot|invalid|unrecognized|unknown"
    r"|not allowed|must be|should be|expected|supported values|allowed values|valid values|unexpected",
    re.IGNORECASE,
)
_NAMES_SUPPORTED = re.compile(
    r"(?:(?:supported|allowed|valid|possible|accepted) (?:values|levels|options|efforts)(?: are)?"
    r"|(?:must|should) be(?: one of)?|expected(?: one of)?|one of|supports only|only supports)[:\s]*([^\n.;]+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"extra[-_ ]high|x[-_ ]high|[a-z]+", re.IGNORECASE)
_OTHER_WORDS = {"none": _L.OFF, "disabled": _L.OFF, "enabled": _L.MEDIUM}


def next_level(error_text: str, attempted: Collection[ThinkingLevel], facts: ModelFacts) -> ThinkingLevel | None:
    """What to try after a provider refused a level at run time (R-4.25, R-4.26); None: the text is about something
    else, or nothing is left. `attempted`: the levels this run has tried, the refused one included.

    The first level that the text names as supported counts. If it names none: OFF when it refuses to hear of thinking
    at all, the next weaker level when it refuses a value.
    """
    if not (_ABOUT_THINKING.search(error_text) and _ABOUT_A_VALUE.search(error_text)):
        return None
    named = _named_as_supported(error_text)
    if named:
        return next((level for level in named if level not in attempted), None)
    words = {level for word in _WORD.findall(error_text) if (level := _L.of(word))}
    if not words & set(attempted):
        return _L.OFF if _L.OFF not in attempted else None
    return _next_weaker(attempted, facts)


def _named_as_supported(text: str) -> list[ThinkingLevel]:
    found = _NAMES_SUPPORTED.search(text)
    words = _WORD.findall(found[1]) if found else []
    levels = [_OTHER_WORDS.get(word.lower()) or _L.of(word) for word in words]
    return [level for level in levels if level is not None]


def _next_weaker(attempted: Collection[ThinkingLevel], facts: ModelFacts) -> ThinkingLevel | None:
    tried = [_STRENGTHS.index(level) for level in attempted if level in _STRENGTHS]
    weakest = min(tried, default=len(_STRENGTHS))
    valid = valid_levels(facts)
    weaker = [level for level in _STRENGTHS[:weakest] if level in valid]
    if weaker:
        return weaker[-1]
    return _L.OFF if _L.OFF not in attempted else None
