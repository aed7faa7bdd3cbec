"""How much a model shall think, as the fields of a Messages request. Pure. Source: spec 04, 3.2 and R-4.27 to R-4.30.

A budget is part of `max_tokens`, so both are decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanewayd.messages import ThinkingLevel
from lanewayd.providers.anthropic.families import Family, Off, Thinks
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.thinking import level_of, nearest_level

LEAST_BUDGET = 1_024
"""A smaller one is refused. Source: platform.claude.com/docs/en/build-with-claude/extended-thinking."""
LEAST_ANSWER = 1_024
"""Output tokens that a budget leaves for the answer at least, unless it may not be that long at all (R-4.29)."""
_BUDGETS = {
    ThinkingLevel.MINIMAL: 1_024,
    ThinkingLevel.LOW: 2_048,
    ThinkingLevel.MEDIUM: 8_192,
    ThinkingLevel.ADAPTIVE: 8_192,
    ThinkingLevel.HIGH: 16_384,
    ThinkingLevel.XHIGH: 16_384,
    ThinkingLevel.MAX: 16_384,
    ThinkingLevel.ULTRA: 16_384,
}
_ALWAYS = (ThinkingLevel.LOW, ThinkingLevel.MEDIUM, ThinkingLevel.HIGH)
_EFFORTS = (*_ALWAYS, ThinkingLevel.XHIGH, ThinkingLevel.MAX)
"""The words of `effort`. Source: platform.claude.com/docs/en/build-with-claude/effort."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a request says. `thinking` and `effort` are its fields, None: the field is left out."""

    max_tokens: int
    thinking: Mapping[str, Any] | None = None
    effort: str | None = None

    @property
    def is_on(self) -> bool:
        """The request asks the model to think."""
        return self.thinking is not None and self.thinking["type"] in ("adaptive", "enabled")


def thinking_of(request: ModelRequest, family: Family, *, can_begin: bool) -> Thinking:
    """What is said for `request.thinking`.

    Without `can_begin` the answer under way was begun without a thought (by another model, or without thinking), and a
    model with a budget refuses to go on with it and think: then thinking is off for this call. Source:
    platform.claude.com/docs/en/build-with-claude/extended-thinking, "Toggling thinking modes in conversations".
    """
    most = request.facts.max_output_tokens or family.most_output
    cap = request.output_cap or family.default_cap
    cap = min(cap, most) if most else cap
    level = None if family.thinks is Thinks.NEVER else level_of(request)
    if level is None:
        return Thinking(cap)
    if family.thinks is Thinks.ADAPTIVE:
        return _adaptive(request, family, level, cap)
    if level is not ThinkingLevel.OFF and can_begin:
        return _budgeted(request, level, cap, most)
    return Thinking(cap, {"type": "disabled"})


def _adaptive(request: ModelRequest, family: Family, level: ThinkingLevel, cap: int) -> Thinking:
    if level is ThinkingLevel.OFF:
        if family.off is Off.IMPOSSIBLE:
            return Thinking(cap, effort="low")
        return Thinking(cap, None if family.off is Off.NOTHING else {"type": family.off.value})
    display = {"display": "summarized"} if family.hides_thoughts else {}
    return Thinking(cap, {"type": "adaptive", **display}, _effort(request, family, level))


def _effort(request: ModelRequest, family: Family, level: ThinkingLevel) -> str | None:
    facts = request.facts
    if level in facts.effort_map:
        return facts.effort_map[level]
    if level is ThinkingLevel.ADAPTIVE:
        return None
    native = facts.thinking_levels or (
        *_ALWAYS,
        *([ThinkingLevel.XHIGH] if family.has_xhigh else []),
        *([ThinkingLevel.MAX] if family.has_max else []),
    )
    nearest = nearest_level(level, [each for each in native if each in _EFFORTS])
    return None if nearest is ThinkingLevel.OFF else nearest.value


def _budgeted(request: ModelRequest, level: ThinkingLevel, cap: int, most: int) -> Thinking:
    """Room for the thoughts beside the answer, as far as the model gives it (R-4.29)."""
    said = request.facts.effort_map.get(level, "")
    if said is None:
        return Thinking(cap)
    budget = int(said) if said.isascii() and said.isdigit() else _BUDGETS[level]
    max_tokens = min(cap + budget, most) if most else cap + budget
    budget = min(budget, max_tokens - min(LEAST_ANSWER, cap))
    if budget < LEAST_BUDGET:
        return Thinking(cap, {"type": "disabled"})
    return Thinking(max_tokens, {"type": "enabled", "budget_tokens": budget})
