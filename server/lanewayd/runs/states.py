"""The states of a run and the only ways between them. Pure."""

from lanewayd.records import RunState

ALLOWED: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELLED, RunState.MERGED}),
    RunState.RUNNING: frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}),
    RunState.MERGED: frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.TIMED_OUT: frozenset(),
}


def check_transition(before: RunState, after: RunState) -> None:
    """Raises ValueError unless a run may go from `before` to `after` in one step."""
    if after not in ALLOWED[before]:
        raise ValueError(f"a run cannot go from {before.value} to {after.value}")
