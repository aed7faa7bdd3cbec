"""Limits of turns, tokens, costs and time."""

import pytest

from lanewayd.loop.limits import Allowance, Budget, budget_error, no_tools_error, remaining_budget_s, turn_cap_error
from lanewayd.messages import Usage


@pytest.mark.parametrize(("turns", "max_turns"), [(0, 0), (1_000, 0), (0, 1), (4, 5)])
def test_a_run_below_its_cap_may_go_on(turns: int, max_turns: int) -> None:
    assert turn_cap_error(turns, max_turns) is None


@pytest.mark.parametrize(("turns", "max_turns"), [(1, 1), (5, 5), (9, 5)])
def test_a_run_at_its_cap_ends_with_a_reason(turns: int, max_turns: int) -> None:
    error = turn_cap_error(turns, max_turns)
    assert error is not None
    assert error.reason == "MAX_TURNS"
    assert str(turns) in error.message


def test_a_run_without_tools_ends_with_a_reason() -> None:
    assert no_tools_error().reason == "TOOLS_EMPTY"


@pytest.mark.parametrize(
    ("timeout_s", "used_s", "remaining_s"),
    [(0.0, 1e9, None), (60.0, 0.0, 60.0), (60.0, 45.5, 14.5), (60.0, 60.0, 0.0), (60.0, 99.0, 0.0)],
)
def test_the_budget_is_what_is_left_of_the_time_limit(
    timeout_s: float, used_s: float, remaining_s: float | None
) -> None:
    assert remaining_budget_s(timeout_s, used_s) == remaining_s


TOKENS, COST = Allowance(max_tokens=100), Allowance(max_cost_usd=2.0)
FREE = Allowance()


@pytest.mark.parametrize(
    ("budget", "used"),
    [
        (Budget(), Usage(10**9, cost_usd=1e9)),
        (Budget(TOKENS), Usage()),
        (Budget(TOKENS), Usage(60, 39)),
        (Budget(COST), Usage(10**9, cost_usd=1.99)),
        (Budget(COST), Usage(10**9)),
        (Budget(COST), Usage(10**9, cost_usd=1.99, is_cost_partial=True)),
        (Budget(TOKENS), Usage(unavailable=True)),
        (Budget(FREE, TOKENS, Usage(50)), Usage(49)),
        (Budget(FREE, COST, Usage(50, cost_usd=1.0)), Usage(49, cost_usd=0.9)),
    ],
    ids=[
        "no limit",
        "nothing used",
        "below the tokens",
        "below the cost",
        "no price is known",
        "the known part is below",
        "usage not said",
        "session below the tokens",
        "session below the cost",
    ],
)
def test_a_run_within_its_budget_may_make_another_call(budget: Budget, used: Usage) -> None:
    assert budget_error(budget, used) is None


@pytest.mark.parametrize(
    ("budget", "used", "says"),
    [
        (Budget(TOKENS), Usage(60, 20, 15, 5), ("the run", "limits.max_tokens", "is 100", "used 100")),
        (Budget(TOKENS), Usage(6000, unavailable=True), ("the run", "limits.max_tokens", "is 100", "used 6,000")),
        (Budget(COST), Usage(1, cost_usd=2.0), ("the run", "limits.max_cost_usd", "is $2", "cost $2")),
        (Budget(COST), Usage(1, cost_usd=2.5, is_cost_partial=True), ("limits.max_cost_usd", "is $2", "cost $2.5")),
        (Budget(FREE, TOKENS, Usage(60)), Usage(40), ("the session", "limits.session.max_tokens", "used 100")),
        (Budget(FREE, TOKENS, Usage(100)), Usage(), ("the session", "limits.session.max_tokens", "used 100")),
        (
            Budget(FREE, COST, Usage(1, cost_usd=1.5)),
            Usage(1, cost_usd=1.0),
            ("the session", "limits.session.max_cost_usd", "is $2", "cost $2.5"),
        ),
    ],
    ids=["tokens", "known tokens", "cost", "known cost", "session tokens", "session before", "session cost"],
)
def test_a_budget_that_is_used_up_names_setting_limit_and_use(
    budget: Budget, used: Usage, says: tuple[str, ...]
) -> None:
    error = budget_error(budget, used)
    assert error is not None
    assert error.reason == "BUDGET_EXCEEDED"
    assert [part for part in says if part not in error.message] == []
