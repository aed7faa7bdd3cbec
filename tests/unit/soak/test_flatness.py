"""tests/soak/flatness.py: what grows is told from what only settles."""

import random

import pytest
from tests.soak.flatness import ENOUGH, growth, rise, slope

CHANCE = random.Random(1)


def _samples(values: list[float]) -> list[dict[str, float]]:
    return [{"at": number * 100.0, "bytes": value} for number, value in enumerate(values)]


def test_a_leak_shows_through_noise() -> None:
    samples = _samples([1e8 + 100 * number * 96 + CHANCE.uniform(-20_000, 20_000) for number in range(40)])
    (figure,) = growth(samples, "bytes", "RSS", unit="B", limit=48)
    assert figure.value == pytest.approx(96, rel=0.2)
    assert figure.has_failed


def test_caches_that_fill_and_single_outliers_are_no_leak() -> None:
    values = [1e8 + min(number, 8) * 1e6 + CHANCE.uniform(-20_000, 20_000) for number in range(40)]
    values[25] += 5e6
    (figure,) = growth(_samples(values), "bytes", "RSS", unit="B", limit=48)
    assert not figure.has_failed


def test_what_settles_late_can_be_given_more_time() -> None:
    samples = _samples([1e6 * min(number, 50) for number in range(80)])
    (early,) = growth(samples, "bytes", "heap", unit="B", limit=10)
    (late,) = growth(samples, "bytes", "heap", unit="B", limit=10, warm_up=5000)
    assert (early.has_failed, late.has_failed) == (True, False)
    (unjudged,) = growth(samples, "bytes", "heap", unit="B", limit=10, warm_up=8000)
    assert unjudged.value is None


def test_with_few_samples_nothing_is_said() -> None:
    figures = [
        *growth(_samples([1e6 * number for number in range(ENOUGH)]), "bytes", "RSS", unit="B", limit=1),
        *rise(_samples([1.0 * number for number in range(ENOUGH)]), "bytes", "files", limit=1),
    ]
    assert [(figure.value, figure.has_failed) for figure in figures] == [(None, False), (None, False)]


def test_a_rise_of_whole_numbers_is_told() -> None:
    (steady,) = rise(_samples([3.0] + [7.0] * 39), "bytes", "threads", limit=0)
    assert not steady.has_failed
    (rising,) = rise(_samples([float(number // 10) for number in range(40)]), "bytes", "threads", limit=0)
    assert rising.has_failed


def test_a_slope_needs_two_places() -> None:
    with pytest.raises(ValueError, match="different x"):
        slope([(1.0, 1.0), (1.0, 2.0)])
