"""How much a model shall think, in the words of OpenAI and of the services that speak its languages. Pure.

`reasoning_effort` in chat completions, `reasoning.effort` in responses. Source: spec 04, 3.2, R-4.27, R-4.28; and
developers.openai.com/api/docs/guides/reasoning: which efforts there are depends on the model, any other is a 400.
"""

import re
from collections.abc import Mapping

from lanewayd.messages import ModelFacts, ThinkingLevel
from lanewayd.providers.openai_models import bare_name, never_reasons

NOT_AT_ALL = "none"
_WEAKEST_FIRST = (NOT_AT_ALL, "minimal", "low", "medium", "high", "xhigh", "max")
_FAMILIES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), efforts)
    for pattern, efforts in (
        (r"gpt-5\.1-codex-max", (NOT_AT_ALL, "medium", "high", "xhigh")),
        (r"gpt-5\.1-codex-mini", ("medium",)),
        (r"gpt-5(?:\.\d+)?-codex", ("low", "medium", "high", "xhigh")),
        (r"gpt-5-pro", ("high",)),
        (r"gpt-5\.[2-9](?!\d)-pro", ("medium", "high", "xhigh")),
        (r"gpt-5\.6(?!\d)", (NOT_AT_ALL, "low", "medium", "high", "xhigh", "max")),
        (r"gpt-5\.[2-9](?!\d)", (NOT_AT_ALL, "low", "medium", "high", "xhigh")),
        (r"gpt-5\.1(?!\d)", (NOT_AT_ALL, "low", "medium", "high")),
        (r"gpt-5(?![\d.])", ("minimal", "low", "medium", "high")),
        # Newer than the table of the specification.
        (r"gpt-6(?:-(?:sol|luna)|\.1-terra)", (NOT_AT_ALL, "low", "medium", "high", "xhigh", "max")),
        (r"gpt-6", ("low", "medium", "high", "xhigh", "max")),
    )
)
_OTHERS = ("low", "medium", "high")
# What stands in for an effort that the model does not take.
_NEXT_BEST = {"minimal": "low", "low": "medium", "xhigh": "high", "max": "xhigh"}
# Levels that no model of this family has: the nearest that some have.
_STAND_INS = {ThinkingLevel.ADAPTIVE: ThinkingLevel.MEDIUM, ThinkingLevel.ULTRA: ThinkingLevel.MAX}


def family_efforts(model: str) -> tuple[str, ...]:
    """The efforts that the model takes, weakest first, by its name."""
    name = bare_name(model)
    return next((efforts for pattern, efforts in _FAMILIES if pattern.match(name)), _OTHERS)


def reasoning_effort(model: str, level: ThinkingLevel | None, facts: ModelFacts) -> str | None:
    """What to send as the effort; None: the field is left out, the provider's default holds.

    What the model's facts say goes before its family. A level that the model does not take becomes the nearest one.
    """
    if level is None or cannot_think(model, facts):
        return None
    if level.value in facts.effort_map:
        return facts.effort_map[level.value]
    level = _STAND_INS.get(level, level)
    if level.value in facts.effort_map:
        return facts.effort_map[level.value]
    words = _words(model, facts)
    if level is ThinkingLevel.OFF:
        return words.get(NOT_AT_ALL)
    wanted: str | None = level.value
    while wanted is not None and wanted not in words:
        wanted = _NEXT_BEST.get(wanted)
    if wanted is None:
        wanted = next((word for word in words if word != NOT_AT_ALL), None)
    return words[wanted] if wanted is not None else None


def cannot_think(model: str, facts: ModelFacts) -> bool:
    """Whether the model is known not to reason: such models refuse every word about it."""
    says_how = facts.can_think or facts.thinking_levels or facts.effort_map or facts.thinking_format
    return not says_how and (facts.is_known or never_reasons(model))


def _words(model: str, facts: ModelFacts) -> Mapping[str, str]:
    """What is sent, by the effort that it stands for; weakest first."""
    family = family_efforts(model)
    efforts = {effort: effort for effort in family}
    if facts.thinking_levels:
        efforts = {level.value: level.value for level in facts.thinking_levels if level.value in _WEAKEST_FIRST}
        efforts |= {NOT_AT_ALL: NOT_AT_ALL} if NOT_AT_ALL in family else {}
    for level, word in facts.effort_map.items():
        effort = NOT_AT_ALL if level == ThinkingLevel.OFF else level
        if word is None:
            efforts.pop(effort, None)
        else:
            efforts[effort] = word
    return {effort: efforts[effort] for effort in _WEAKEST_FIRST if effort in efforts}
