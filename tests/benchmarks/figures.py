"""Figures of repeated measurements and the rows of the table that compare them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Median with lowest and highest of repetitions."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Raises ValueError without values."""
        if not values:
            raise ValueError("nothing was measured")
        return cls(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of `values` lie, by nearest rank. Raises ValueError without values."""
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    `ratio` compares repetition by repetition, so that what slows the machine slows both sides. Without `target` the row
    is for orientation only and neither passes nor fails.
    """

    measure: str
    what: str
    unit: str
    product: Spread
    floor_name: str = ""
    floor: Spread | None = None
    ratio: Spread | None = None
    target: float | None = None
    is_at_least: bool = False

    @property
    def has_passed(self) -> bool | None:
        """None = nothing was promised."""
        if self.ratio is None or self.target is None:
            return None
        return self.ratio.median >= self.target if self.is_at_least else self.ratio.median <= self.target


def compared(
    measure: str,
    what: str,
    unit: str,
    product: Sequence[float],
    floor: Sequence[float],
    *,
    floor_name: str,
    target: float | None = None,
    is_at_least: bool = False,
) -> Row:
    """Product over floor, repetition by repetition."""
    ratios = [mine / theirs if theirs > 0 else float("inf") for mine, theirs in zip(product, floor, strict=True)]
    return Row(
        measure, what, unit, Spread.of(product), floor_name, Spread.of(floor), Spread.of(ratios), target, is_at_least
    )


def bounded(measure: str, what: str, unit: str, values: Sequence[float], *, at_most: float) -> Row:
    """A figure with a limit of its own instead of a floor."""
    ratios = [value / at_most if at_most else float(value > 0) for value in values]
    limit = Spread(at_most, at_most, at_most)
    return Row(measure, what, unit, Spread.of(values), "limit", limit, Spread.of(ratios), 1.0 if at_most else 0.0)


def shown(measure: str, what: str, unit: str, values: Sequence[float]) -> Row:
    """A figure for orientation."""
    return Row(measure, what, unit, Spread.of(values))
