"""Which of the levels of thinking that a model takes comes closest to the one asked for. Pure; shared by dialects."""

from collections.abc import Sequence

from lanewayd.messages import ThinkingLevel

_NEXT = {
    ThinkingLevel.MINIMAL: ThinkingLevel.LOW,
    ThinkingLevel.LOW: ThinkingLevel.MEDIUM,
    ThinkingLevel.MAX: ThinkingLevel.XHIGH,
    ThinkingLevel.XHIGH: ThinkingLevel.HIGH,
    ThinkingLevel.ULTRA: ThinkingLevel.MAX,
    ThinkingLevel.ADAPTIVE: ThinkingLevel.MEDIUM,
}
_STRONG = (ThinkingLevel.HIGH, ThinkingLevel.XHIGH, ThinkingLevel.MAX, ThinkingLevel.ULTRA)


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
