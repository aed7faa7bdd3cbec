"""Counting at the cost of a dictionary's update: the sums are handed out when metrics are collected."""

from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Observation


class Tally:
    """Sums by the values of its attributes. `add` on one thread, `observe` on any."""

    def __init__(self, *attributes: str) -> None:
        """`attributes`: their names; every `add` gives a value for each. Values come from a bounded set."""
        self._attributes = attributes
        self._sums: dict[tuple[str, ...], int] = {}

    def add(self, change: int, *values: str) -> None:
        """Change the sum of these attributes."""
        self._sums[values] = self._sums.get(values, 0) + change

    def observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        """Each sum with its attributes; a callback of an asynchronous instrument."""
        # The copy is one step for other threads, a loop over the dictionary is not.
        sums = self._sums.copy()
        return [Observation(total, dict(zip(self._attributes, key, strict=True))) for key, total in sums.items()]
