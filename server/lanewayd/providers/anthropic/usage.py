"""Token counts of a Messages answer. Pure. Source: spec 05, R-5.80."""

from typing import Any

from lanewayd.messages import Usage

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
        if not isinstance(value, dict):
            return
        for theirs, ours in _FIELDS.items():
            count = value.get(theirs)
            if isinstance(count, bool) or not isinstance(count, int | float):
                continue
            if 0 <= count < 2**53:
                self._counts[ours] = int(count)

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
