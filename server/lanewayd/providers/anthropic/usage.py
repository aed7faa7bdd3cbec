"""Token counts of a Messages answer. Pure. Source: spec 05, R-5.80."""

from typing import Any

from lanewayd.messages import Usage
from lanewayd.providers.usage_fields import count_of

_FIELDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
"""Theirs -> ours. Theirs excludes cached input from `input_tokens`, as ours does."""


class UsageCounts:
    """Counts as they come: a later one replaces an earlier, unless it is absent or null."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def take(self, value: Any) -> None:
        """The `usage` of an event."""
        for theirs, ours in _FIELDS.items():
            count = count_of(value, theirs)
            if count is not None:
                self._counts[ours] = count

    def total(self) -> Usage:
        """Unavailable when no count came."""
        count = self._counts.get
        return Usage(
            count("input_tokens", 0),
            count("output_tokens", 0),
            count("cache_read_tokens", 0),
            count("cache_write_tokens", 0),
            unavailable=not self._counts,
        )
