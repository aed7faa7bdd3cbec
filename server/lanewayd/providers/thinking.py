"""The level of thinking that a request asks of its model, in words of the model. Pure; for Anthropic and Gemini."""

from collections.abc import Sequence

from lanewayd.messages import ThinkingLevel
from lanewayd.providers.interface import ModelRequest

_NEXT = {
    ThinkingLevel.MINIMAL: ThinkingLevel.LOW,
    ThinkingLevel.LOW: ThinkingLevel.MEDIUM,
    ThinkingLevel.MAX: ThinkingLevel.XHIGH,
    ThinkingLevel.XHIGH: ThinkingLevel.HIGH,
    ThinkingLevel.ULTRA: ThinkingLevel.MAX,
    ThinkingLevel.ADAPTIVE: ThinkingLevel.MEDIUM,
}
_STRONG = (ThinkingLevel.HIGH, ThinkingLevel.XHIGH, ThinkingLevel.MAX, ThinkingLevel.ULTRA)


def level_of(request: ModelRequest) -> ThinkingLevel | None:
    """What to say, ADAPTIVE and OFF included; None: nothing was asked for, or the model is known not to think.

    A level that the settings map is for them to say; any other is one that the model takes, as far as they name those.
    """
    facts = request.facts
    is_told_how = facts.can_think or bool(facts.thinking_levels) or bool(facts.effort_map)
    if request.thinking is None or (facts.is_known and not is_told_how):
        return None
    if request.thinking in facts.effort_map or not facts.thinking_levels:
        return request.thinking
    return nearest_level(request.thinking, facts.thinking_levels)


def nearest_level(level: ThinkingLevel, accepted: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """`level`, or what stands for it among `accepted`, which are not empty and weakest first; OFF stays OFF.

    What nothing stands for becomes the strongest level if it is a strong one, else the weakest. Source: spec 04, R-4.22
    and R-4.28.
    """
    if level is ThinkingLevel.OFF:
        return level
    tried: ThinkingLevel | None = level
    while tried is not None:
        if tried in accepted:
            return tried
        tried = _NEXT.get(tried)
    offered = [each for each in accepted if each is not ThinkingLevel.OFF]
    if not offered:
        return ThinkingLevel.OFF
    return offered[-1] if level in _STRONG else offered[0]
