"""Token counts under the names that services give them. Pure. Source: spec 08, R-8.72."""

from collections.abc import Mapping
from typing import Any

from lanewayd.messages import Usage

_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
    "cached_tokens",
)
_WRITTEN = (
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_tokens",
    "input_tokens_details.cache_write_tokens",
    "cache_creation_input_tokens",
)
_REASONED = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
)


def usage_of(value: Any) -> Usage | None:
    """What a service says that speaks one of OpenAI's languages (R-5.60, R-5.72): as we count it, input without the
    cached part, reasoning as a part of the output. None when it says nothing."""
    prompt = count_of(value, "prompt_tokens", "input_tokens")
    answer = count_of(value, "completion_tokens", "output_tokens")
    if prompt is None and answer is None:
        return None
    cached, written = count_of(value, *_CACHED) or 0, count_of(value, *_WRITTEN) or 0
    return Usage(
        input_tokens=max(0, (prompt or 0) - cached - written),
        output_tokens=answer or 0,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count_of(value, *_REASONED) or 0,
    )


def count_of(fields: Any, *paths: str) -> int | None:
    """The first positive count at `paths` (names joined by dots), else the first that is a count, else None.

    A name is tried in snake case as given, and in camel case.
    """
    found: int | None = None
    for path in paths:
        count = _count(_at(fields, path))
        if count:
            return count
        found = count if found is None else found
    return found


def _at(fields: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(fields, Mapping):
            return None
        fields = fields.get(name, fields.get(_camel(name)))
    return fields


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _count(value: Any) -> int | None:
    """A finite whole number; int64 is what the contract can carry."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return int(value) if value == int(value) else None
