"""Params: what the settings say that requests to models carry (spec 04, R-4.17). Their names and values."""

import math
from collections.abc import Callable, Mapping
from typing import Any

WRITTEN_BY_LANEWAY = frozenset({
    "model", "messages", "input", "contents", "prompt", "system", "instructions", "systemInstruction",
    "system_instruction", "tools", "functions", "stream", "stream_options", "n",
})  # fmt: skip
"""Fields of a request's body that say what is asked and how the answer comes."""

OUTPUT_CAP_WORDS = frozenset({"max_tokens", "max_completion_tokens", "maxOutputTokens", "num_predict"})
"""Of the families, for what is `max_output_tokens` here."""

MOST_LEVELS = 32
"""Of tables and lists in each other."""

_MOST_OUTPUT = 2**31 - 1
_SEEDS = 2**63


def _is_integer(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


_OWN: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: type(value) in (int, float) and 0 <= value <= 2, "a number from 0 to 2"),
    "max_output_tokens": (lambda value: _is_integer(value, 1, _MOST_OUTPUT), "an integer, 1 or more"),
    "seed": (lambda value: _is_integer(value, -_SEEDS, _SEEDS - 1), "an integer of 64 bits"),
}


def problem_of(name: str, value: Any) -> str:
    """Why `value` cannot be the param `name`, in words that follow its place; empty if it can.

    Three params have a meaning of their own, as in the contract's `AgentRequest`; every other one is a field of the
    provider's language, of any JSON type.
    """
    if name in WRITTEN_BY_LANEWAY:
        return "Laneway itself writes this field of the request; remove it"
    if name in OUTPUT_CAP_WORDS:
        return "say `max_output_tokens`, which every provider is told in its own word"
    if name in _OWN:
        accepts, expectation = _OWN[name]
        return "" if accepts(value) else f"expected {expectation}"
    if not is_json(value):
        return (
            f"expected text, a finite number, true or false, or lists and tables of them, {MOST_LEVELS} levels at most"
        )
    return ""


def is_json(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether `value` is made of JSON's types without null, of so many levels at most; TOML has dates, infinity and NaN
    too."""
    if isinstance(value, Mapping | list):
        members = value.values() if isinstance(value, Mapping) else value
        return levels > 0 and all(is_json(member, levels - 1) for member in members)
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
