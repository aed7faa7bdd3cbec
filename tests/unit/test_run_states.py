"""The table of a run's states."""

import itertools

import pytest

from lanewayd.records import ALLOWED_TRANSITIONS, RunState, check_transition

ENDS = {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}
WAYS = {
    (RunState.QUEUED, RunState.RUNNING),
    (RunState.QUEUED, RunState.CANCELLED),
    (RunState.QUEUED, RunState.MERGED),
    *((RunState.RUNNING, end) for end in ENDS),
    *((RunState.MERGED, end) for end in ENDS),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(RunState, RunState)))
def test_a_run_goes_only_the_ways_of_the_table(before: RunState, after: RunState) -> None:
    if (before, after) in WAYS:
        check_transition(before, after)
    else:
        with pytest.raises(ValueError, match=f"cannot go from {before.value} to {after.value}"):
            check_transition(before, after)


def test_the_states_without_a_way_out_are_the_ended_ones() -> None:
    assert {state for state in RunState if not ALLOWED_TRANSITIONS.get(state)} == ENDS
    assert {state for state in RunState if state.is_ended} == ENDS
