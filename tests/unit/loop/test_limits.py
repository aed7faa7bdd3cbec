"""Turn and time limits."""

import pytest

from lanewayd.loop.limits import no_tools_error, remaining_budget_s, turn_cap_error


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
