"""What a call cost, and how costs of several add up (spec 08, section 8)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewayd.messages import LongPrompts, Prices, Usage
from lanewayd.models.costs import cost_usd, priced

PRICES = Prices(input=1.0, output=10.0, cache_read=0.1, cache_write=1.25)
DEARER = replace(PRICES, long_prompts=LongPrompts(100_000, input_factor=2.0, output_factor=1.5))


@pytest.mark.parametrize(
    ("usage", "prices", "expected"),
    [
        (Usage(1_000_000), PRICES, 1.0),
        (Usage(0, 2_000_000), PRICES, 20.0),
        (Usage(cache_read_tokens=1_000_000), PRICES, 0.1),
        (Usage(cache_write_tokens=1_000_000), PRICES, 1.25),
        (Usage(1000, 100, 4000, 200), PRICES, 0.001 + 0.001 + 0.0004 + 0.00025),
        (Usage(1000, 100, reasoning_tokens=100), PRICES, 0.002),
        (Usage(1000, 100), Prices(input=0, output=0), 0.0),
        (Usage(1000, 100), Prices(input=1.0, output=10.0), 0.002),
        (Usage(1000, 100, 1), Prices(input=1.0, output=10.0), None),
        (Usage(100_000, 1000), DEARER, 0.1 + 0.01),
        (Usage(100_001, 1000), DEARER, 0.200002 + 0.015),
        (Usage(1, 1000, 100_000), DEARER, 0.000002 + 0.015 + 0.02),
        (Usage(1, 0, 0, 100_000), DEARER, 0.000002 + 0.25),
        (Usage(1000, 100_001), DEARER, 0.001 + 1.00001),
        (Usage(1000, 100), Prices(input=1.0), None),
        (Usage(1000, 100), Prices(), None),
        (Usage(), PRICES, None),
        (Usage(unavailable=True), PRICES, None),
        (Usage(1000, unavailable=True), PRICES, 0.001),
    ],
    ids=[
        "input",
        "output",
        "cache read",
        "cache write",
        "all kinds",
        "reasoning is output",
        "free",
        "kinds that were not used need no price",
        "a used kind without a price",
        "a prompt at the limit",
        "a prompt above it",
        "what is read from the cache counts for the limit",
        "what is written to it too",
        "a long answer is no long prompt",
        "output without a price",
        "no price",
        "nothing used",
        "usage not said",
        "what was said before the stream broke off",
    ],
)
def test_a_cost_is_tokens_times_the_price_of_a_million(usage: Usage, prices: Prices, expected: float | None) -> None:
    cost = cost_usd(usage, prices)
    assert cost == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("calls", "known", "whole"),
    [
        ([], None, None),
        ([priced(Usage(1_000_000), PRICES)] * 2, 2.0, 2.0),
        ([Usage(5), Usage(5)], None, None),
        ([priced(Usage(1_000_000), PRICES), Usage(5)], 1.0, None),
        ([Usage(5), priced(Usage(1_000_000), PRICES), Usage()], 1.0, None),
        ([Usage(), priced(Usage(1_000_000), PRICES), Usage(unavailable=True)], 1.0, 1.0),
    ],
    ids=["none", "all known", "none known", "one unknown", "unknown first", "a call that used nothing that is known"],
)
def test_costs_add_up_and_are_whole_only_if_every_price_was_known(
    calls: list[Usage], known: float | None, whole: float | None
) -> None:
    total = sum(calls, Usage())
    assert (total.cost_usd, total.whole_cost_usd) == (known, whole)
    assert total.lacks_prices == any(call.lacks_prices for call in calls)


_USAGES = st.builds(
    Usage,
    input_tokens=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    unavailable=st.booleans(),
    cost_usd=st.none() | st.integers(0, 9).map(float),
)


@given(st.lists(_USAGES, max_size=6), st.integers(0, 6))
def test_a_sum_of_sums_is_the_sum(calls: list[Usage], cut: int) -> None:
    assert sum(calls[:cut], Usage()) + sum(calls[cut:], Usage()) == sum(calls, Usage())
