"""How much a model shall think, as the fields of a generationConfig. Pure. Source: spec 04, 3.2.

A budget counts as output, so the cap is decided here too. Sources: https://ai.google.dev/gemini-api/docs/thinking,
https://ai.google.dev/gemini-api/docs/gemini-3.
"""

from typing import Any

from lanewayd.messages import ThinkingLevel
from lanewayd.providers.gemini.generation import Generation
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.thinking import level_of

DYNAMIC_BUDGET = -1
LEAST_BUDGET = 128
LEAST_LITE_BUDGET = 512
"""Of Flash-Lite; less is refused."""
LEAST_ANSWER = 1_024
MOST_OUTPUT = 65_536
"""Of every 2.5 model."""
# What every Pro since the first takes; a word that only newer ones know can be given in the settings (`effort_map`).
_LEVELS_PRO = {
    ThinkingLevel.MINIMAL: "LOW",
    ThinkingLevel.LOW: "LOW",
    ThinkingLevel.MEDIUM: "HIGH",
    ThinkingLevel.HIGH: "HIGH",
    ThinkingLevel.XHIGH: "HIGH",
    ThinkingLevel.MAX: "HIGH",
    ThinkingLevel.ULTRA: "HIGH",
}
_LEVELS_FLASH = _LEVELS_PRO | {ThinkingLevel.MINIMAL: "MINIMAL", ThinkingLevel.MEDIUM: "MEDIUM"}
_BUDGETS_FLASH = {
    ThinkingLevel.MINIMAL: 128,
    ThinkingLevel.LOW: 2_048,
    ThinkingLevel.MEDIUM: 8_192,
    ThinkingLevel.HIGH: 24_576,
    ThinkingLevel.XHIGH: 24_576,
    ThinkingLevel.MAX: 24_576,
    ThinkingLevel.ULTRA: 24_576,
    ThinkingLevel.ADAPTIVE: DYNAMIC_BUDGET,
}
_BUDGETS_PRO = _BUDGETS_FLASH | dict.fromkeys(
    (ThinkingLevel.HIGH, ThinkingLevel.XHIGH, ThinkingLevel.MAX, ThinkingLevel.ULTRA), 32_768
)


def thinking_fields(request: ModelRequest, generation: Generation) -> dict[str, Any]:
    """`maxOutputTokens` and `thinkingConfig`, each if there is something to say."""
    fields = {"maxOutputTokens": cap} if (cap := _cap(request)) else {}
    level = level_of(request)
    if level is None or level is ThinkingLevel.OFF:
        return fields
    if generation.has_levels:
        return {**fields, "thinkingConfig": {"includeThoughts": True, **_said_level(request, generation, level)}}
    return _with_budget(request, generation, level, fields) if generation.has_budgets else fields


def _cap(request: ModelRequest) -> int:
    cap, most = request.output_cap, request.facts.max_output_tokens
    return min(cap, most) if most else cap


def _said_level(request: ModelRequest, generation: Generation, level: ThinkingLevel) -> dict[str, str]:
    facts = request.facts
    if level in facts.effort_map:
        said = facts.effort_map[level]
        return {} if said is None else {"thinkingLevel": said}
    if level is ThinkingLevel.ADAPTIVE:
        return {}
    return {"thinkingLevel": (_LEVELS_PRO if generation.is_pro else _LEVELS_FLASH)[level]}


def _with_budget(
    request: ModelRequest, generation: Generation, level: ThinkingLevel, fields: dict[str, Any]
) -> dict[str, Any]:
    said = request.facts.effort_map.get(level, "")
    if said is None:
        return fields
    budget = int(said) if said.removeprefix("-").isdecimal() and said.isascii() else _table_budget(generation, level)
    if budget > 0 and (cap := _cap(request)):
        # Room for the thoughts beside the answer, as far as the model gives it.
        most = min(cap + budget, request.facts.max_output_tokens or MOST_OUTPUT)
        budget = min(budget, most - min(LEAST_ANSWER, cap))
        if budget < LEAST_BUDGET:
            return fields
        fields = {"maxOutputTokens": most}
    return {**fields, "thinkingConfig": {"includeThoughts": budget != 0, "thinkingBudget": budget}}


def _table_budget(generation: Generation, level: ThinkingLevel) -> int:
    if generation.is_pro:
        return _BUDGETS_PRO[level]
    budget = _BUDGETS_FLASH[level]
    return max(budget, LEAST_LITE_BUDGET) if generation.is_lite and budget > 0 else budget
