"""rpc/run_convert.py and rpc/convert.py: runs, waits and sessions as the contract shows them."""

from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from tests.fakes.rpc_rows import ACCEPTED_AT, make_run, make_session

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import Payload, RunError, Usage
from lanewayd.records import Disposition, RunState
from lanewayd.rpc.convert import duration, payloads, run_state_of, timestamp
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES
from lanewayd.rpc.run_convert import abort_response, run_message, session_message, wait_response
from lanewayd.runs.interface import AbortReceipt, WaitOutcome, WaitResult

_LATER = ACCEPTED_AT + timedelta(seconds=2)
_FAILURE = RunError("PROVIDER_UNAVAILABLE", "Down.", "acme", "m", 503, retryable=True)


def _dict(message: Any) -> dict[str, Any]:
    as_dict: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return as_dict


def test_a_run_that_has_ended_shows_everything() -> None:
    run = make_run(
        state=RunState.FAILED,
        disposition=Disposition.QUEUED,
        queue_position=3,
        started_at=ACCEPTED_AT,
        ended_at=_LATER,
        attempt=2,
        last_seq=9,
        error=_FAILURE,
        stop_reason="error",
        truncated=True,
        payloads=(Payload("So far"), Payload("Down.", is_error=True)),
        usage=Usage(10, 5),
        label="nightly",
        parent_run_id="run_0",
        metadata={"k": "v"},
    )
    assert _dict(run_message(run)) == {
        "run_id": "run_1",
        "session_key": "agent:main:main",
        "session_id": "session-1",
        "agent_id": "main",
        "parent_run_id": "run_0",
        "label": "nightly",
        "state": "RUN_STATE_FAILED",
        "disposition": "DISPOSITION_QUEUED",
        "accepted_at": "2026-01-01T12:00:00.250Z",
        "started_at": "2026-01-01T12:00:00.250Z",
        "ended_at": "2026-01-01T12:00:02.250Z",
        "error": {
            "reason": "PROVIDER_UNAVAILABLE",
            "message": "Down.",
            "provider": "acme",
            "model": "m",
            "http_status": 503,
            "retryable": True,
        },
        "stop_reason": "error",
        "truncated": True,
        "payloads": [
            {"text": "So far", "total_bytes": "6"},
            {"text": "Down.", "total_bytes": "5", "is_error": True},
        ],
        "usage": {"input_tokens": "10", "output_tokens": "5", "total_tokens": "15"},
        "model": "scripted/hello",
        "attempt": 2,
        "last_seq": "9",
        "metadata": {"k": "v"},
    }


def test_a_queued_run_has_its_place_and_neither_model_nor_times() -> None:
    shown = run_message(make_run(queue_position=3))
    assert (shown.queue_position, shown.model, shown.attempt) == (3, "", 0)
    assert not shown.HasField("started_at")
    assert not shown.HasField("ended_at")
    assert not shown.HasField("usage")
    assert not shown.HasField("error")


def test_a_message_that_is_only_attached_is_not_merged_yet() -> None:
    attached = make_run(host_run_id="run_0")
    assert run_message(attached).merged_into_run_id == ""
    for state in (RunState.MERGED, RunState.SUCCEEDED, RunState.CANCELLED):
        assert run_message(make_run(host_run_id="run_0", state=state)).merged_into_run_id == "run_0"


@pytest.mark.parametrize(
    ("state", "outcome", "status", "timeout_kind"),
    [
        (RunState.SUCCEEDED, WaitOutcome.ENDED, "OK", "UNSPECIFIED"),
        (RunState.FAILED, WaitOutcome.ENDED, "ERROR", "UNSPECIFIED"),
        (RunState.CANCELLED, WaitOutcome.ENDED, "TIMEOUT", "CANCELLED"),
        (RunState.TIMED_OUT, WaitOutcome.ENDED, "TIMEOUT", "RUN_DEADLINE"),
        (RunState.QUEUED, WaitOutcome.EXPIRED, "TIMEOUT", "WAIT_EXPIRED"),
        (RunState.RUNNING, WaitOutcome.EXPIRED, "TIMEOUT", "WAIT_EXPIRED"),
        (RunState.MERGED, WaitOutcome.EXPIRED, "TIMEOUT", "WAIT_EXPIRED"),
        (RunState.RUNNING, WaitOutcome.DRAINING, "TIMEOUT", "DRAINING"),
        (RunState.SUCCEEDED, WaitOutcome.EXPIRED, "OK", "UNSPECIFIED"),
        (RunState.SUCCEEDED, WaitOutcome.DRAINING, "OK", "UNSPECIFIED"),
    ],
)
def test_a_wait_answers_as_the_outcome_table_says(
    state: RunState, outcome: WaitOutcome, status: str, timeout_kind: str
) -> None:
    answer = wait_response(WaitResult(outcome, make_run(state=state)))
    assert agent_pb2.WaitStatus.Name(answer.status) == f"WAIT_STATUS_{status}"
    assert agent_pb2.TimeoutKind.Name(answer.timeout_kind) == f"TIMEOUT_KIND_{timeout_kind}"
    assert run_pb2.RunState.Name(answer.state) == f"RUN_STATE_{state.name}"


def test_a_wait_shows_the_failure_that_is_being_recovered_from() -> None:
    pending = wait_response(WaitResult(WaitOutcome.EXPIRED, make_run(state=RunState.RUNNING), _FAILURE))
    assert (pending.error_pending, pending.error.reason) == (True, "PROVIDER_UNAVAILABLE")
    ended = wait_response(WaitResult(WaitOutcome.ENDED, make_run(state=RunState.SUCCEEDED), _FAILURE))
    assert (ended.error_pending, ended.HasField("error")) == (False, False)


def test_a_wait_and_the_run_agree() -> None:
    run = make_run(
        state=RunState.FAILED,
        started_at=ACCEPTED_AT,
        ended_at=_LATER,
        error=_FAILURE,
        stop_reason="error",
        payloads=(Payload("x" * 2_000_000), Payload("Down.", is_error=True)),
        usage=Usage(1, 2),
    )
    shown, answer = run_message(run), wait_response(WaitResult(WaitOutcome.ENDED, run))
    for field in ("run_id", "state", "accepted_at", "started_at", "ended_at", "error", "stop_reason", "usage"):
        assert getattr(shown, field) == getattr(answer, field)
    assert list(shown.payloads) == list(answer.payloads)
    assert shown.ByteSize() <= MAX_MESSAGE_BYTES
    assert answer.ByteSize() <= MAX_MESSAGE_BYTES


def test_payloads_are_cut_together_and_the_last_one_keeps_its_room() -> None:
    shown = payloads((Payload("ü" * 50), Payload("y" * 50), Payload("end", is_error=True)), 63)
    assert [piece.text for piece in shown] == ["ü" * 5, "y" * 50, "end"]
    assert [(piece.truncated, piece.total_bytes) for piece in shown] == [(True, 100), (False, 50), (False, 3)]


def test_an_abort_lists_runs_by_what_became_of_them() -> None:
    receipt = AbortReceipt(aborted_run_ids=("a",), cancelled_run_ids=("b", "c"), pending_run_ids=("d",))
    answer = abort_response(receipt)
    assert (list(answer.aborted_run_ids), list(answer.cancelled_run_ids)) == (["a"], ["b", "c"])
    assert list(answer.pending_run_ids) == ["d"]


def test_a_session_shows_its_figures() -> None:
    session = make_session(
        label="l",
        active_run_id="run_2",
        queued_runs=4,
        last_run_id="run_9",
        last_state=RunState.QUEUED,
        usage=Usage(1, 2),
        context_tokens=99,
    )
    assert _dict(session_message(session)) == {
        "session_key": "agent:main:main",
        "session_id": "session-1",
        "agent_id": "main",
        "label": "l",
        "created_at": "2026-01-01T12:00:00.250Z",
        "last_interaction_at": "2026-01-01T12:00:00.250Z",
        "active_run_id": "run_2",
        "queued_runs": 4,
        "last_run_id": "run_9",
        "last_state": "RUN_STATE_QUEUED",
        "usage": {"input_tokens": "1", "output_tokens": "2", "total_tokens": "3"},
        "context_tokens": "99",
    }
    assert session_message(make_session()).last_state == run_pb2.RUN_STATE_UNSPECIFIED


@pytest.mark.parametrize("state", list(RunState))
def test_states_are_the_same_in_both_directions(state: RunState) -> None:
    assert run_state_of(run_pb2.RunState.Value(f"RUN_STATE_{state.name}"), "states") is state


@pytest.mark.parametrize("number", [0, -1, 99])
def test_a_state_that_no_run_has_is_refused(number: int) -> None:
    with pytest.raises(FieldError) as refused:
        run_state_of(number, "states")
    assert (refused.value.code, refused.value.field) == (ErrorCode.ENUM_UNKNOWN, "states")


def test_times_and_durations_that_are_absent_stay_so() -> None:
    assert timestamp(None) is None
    assert duration(None) is None
    half = duration(0.5)
    assert half is not None
    assert (half.seconds, half.nanos) == (0, 500_000_000)
    longest = duration(float(10**30))
    assert longest is not None
    assert longest.seconds == 315_576_000_000
