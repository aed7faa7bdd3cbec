"""Whether something grows with the work done: the criterion of "flat".

The first quarter of the samples is warm-up and does not count: caches and pools fill. Of the rest the slope is the
median of the slopes between all pairs (Theil and Sen), which single outliers do not move. Flat = the slope is at most
the limit. With fewer than `ENOUGH` samples behind the warm-up nothing can be said, and the figure says so.
"""

import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations

from tests.soak.report import Figure

WARM_UP_SHARE = 0.25
ENOUGH = 8
_MOST_POINTS = 200


def behind_warm_up(samples: Sequence[Mapping[str, float]], rounds: int = 0) -> Sequence[Mapping[str, float]]:
    """The samples that count: not the first quarter, nor those of the first `rounds`."""
    counted = samples[int(len(samples) * WARM_UP_SHARE) :]
    return [sample for sample in counted if sample["at"] - samples[0]["at"] >= rounds]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much y grows per x. Raises ValueError when all x are equal."""
    step = max(1, len(points) // _MOST_POINTS)
    pairs = combinations(points[::step], 2)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x1 != x2]
    if not slopes:
        raise ValueError("no two points with different x")
    return statistics.median(slopes)


def growth(
    samples: Sequence[Mapping[str, float]], key: str, name: str, *, unit: str, limit: float, warm_up: int = 0
) -> list[Figure]:
    """The slope of `key` over `at` behind the warm-up of at least so many rounds; not judged with too few samples."""
    counted = behind_warm_up(samples, warm_up)
    points = [(sample["at"], sample[key]) for sample in counted]
    return [Figure(f"{name}, growth", slope(points) if len(counted) >= ENOUGH else None, unit, limit)]


def rise(samples: Sequence[Mapping[str, float]], key: str, name: str, *, limit: float) -> list[Figure]:
    """For small whole numbers: how much higher the last half lies than the first half behind the warm-up."""
    counted = behind_warm_up(samples)
    if len(counted) < ENOUGH:
        return [Figure(f"{name}, rise", None, limit=limit)]
    middle = len(counted) // 2
    early, late = (statistics.median(sample[key] for sample in part) for part in (counted[:middle], counted[middle:]))
    return [Figure(f"{name}, rise", late - early, limit=limit)]
