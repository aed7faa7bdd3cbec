"""rpc/event_codec.py: every arm, the cursor, verbosity, sizes (B-078) and lone surrogates (B-080)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.rpc_rows import ACCEPTED_AT, STORE_ID, make_event, make_run

from laneway.v1 import event_pb2
from lanewayd.events import (
    AssistantDelta,
    EventPayload,
    Lifecycle,
    LifecyclePhase,
    MessageEnded,
    QueueChange,
    QueuePhase,
    ReasoningDelta,
    ToolPhase,
    ToolProgress,
)
from lanewayd.messages import Payload, RunError, ToolOutcome, Usage
from lanewayd.records import RunState
from lanewayd.rpc.cursors import cursor_text
from lanewayd.rpc.event_codec import WireEventCodec, progress_event, snapshot_event
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES

_CODEC = WireEventCodec()
_HUGE = "ü" * 3_000_000


def _arm(payload: EventPayload) -> dict[str, Any]:
    event = event_pb2.Event.FromString(make_event(payload, seq=1).encoded)
    arm = event.WhichOneof("payload")
    assert arm is not None
    as_dict: dict[str, Any] = MessageToDict(getattr(event, arm), preserving_proto_field_name=True)
    return {arm: as_dict}


def test_an_event_carries_its_run_its_number_and_its_cursor() -> None:
    stored = make_event(AssistantDelta("msg_1", 0, 0, "Hi"), seq=3, position=77)
    event = event_pb2.Event.FromString(stored.encoded)
    assert (event.run_id, event.seq, event.session_key, event.agent_id) == ("run_1", 3, "agent:main:main", "main")
    assert event.time.ToDatetime(tzinfo=ACCEPTED_AT.tzinfo) == ACCEPTED_AT
    assert event.cursor == cursor_text(STORE_ID, 77)


def test_appending_the_cursor_gives_the_same_bytes_as_encoding_it_with_the_rest() -> None:
    encoded = make_event(MessageEnded("msg_1", "assistant", "ent_1", "Hi"), seq=1).encoded
    assert event_pb2.Event.FromString(encoded).SerializeToString(deterministic=True) == encoded


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            AssistantDelta("msg_1", 1, 5, "Hi"),
            {"assistant": {"message_id": "msg_1", "content_index": 1, "offset": "5", "delta": "Hi"}},
        ),
        (ReasoningDelta("msg_1", 0, 0, "Hm"), {"reasoning": {"message_id": "msg_1", "delta": "Hm"}}),
        (
            MessageEnded("msg_1", "assistant", "ent_1", "Hü", stop_reason="stop", usage=Usage(1, 2, 3, 4, 1)),
            {
                "message": {
                    "message_id": "msg_1",
                    "role": "assistant",
                    "entry_id": "ent_1",
                    "text": "Hü",
                    "total_bytes": "3",
                    "stop_reason": "stop",
                    "usage": {
                        "input_tokens": "8",
                        "output_tokens": "2",
                        "cache_read_tokens": "3",
                        "cache_write_tokens": "4",
                        "reasoning_tokens": "1",
                        "total_tokens": "10",
                    },
                }
            },
        ),
        (
            ToolProgress(ToolPhase.START, "call_1", "exec", arguments_json='{"n": 12345678901234567890}'),
            {
                "tool": {
                    "phase": "TOOL_PHASE_START",
                    "call_id": "call_1",
                    "name": "exec",
                    "arguments_json": '{"n": 12345678901234567890}',
                }
            },
        ),
        (
            ToolProgress(
                ToolPhase.RESULT,
                "call_1",
                "exec",
                result=Payload("no", is_error=True),
                is_error=True,
                outcome=ToolOutcome.UNKNOWN,
                duration_s=1.25,
            ),
            {
                "tool": {
                    "phase": "TOOL_PHASE_RESULT",
                    "call_id": "call_1",
                    "name": "exec",
                    "result": {"text": "no", "total_bytes": "2", "is_error": True},
                    "is_error": True,
                    "outcome": "TOOL_OUTCOME_UNKNOWN",
                    "duration": "1.250s",
                }
            },
        ),
        (
            Lifecycle(
                LifecyclePhase.RETRY,
                "running",
                error=RunError("PROVIDER_RATE_LIMITED", "Later.", "acme", "m", 429, retryable=True),
                attempt=2,
                delay_s=2.0,
                void_message_id="msg_1",
                provider="acme",
                model="m",
            ),
            {
                "lifecycle": {
                    "phase": "LIFECYCLE_PHASE_RETRY",
                    "state": "RUN_STATE_RUNNING",
                    "error": {
                        "reason": "PROVIDER_RATE_LIMITED",
                        "message": "Later.",
                        "provider": "acme",
                        "model": "m",
                        "http_status": 429,
                        "retryable": True,
                    },
                    "attempt": 2,
                    "delay": "2s",
                    "void_message_id": "msg_1",
                    "provider": "acme",
                    "model": "m",
                }
            },
        ),
        (
            Lifecycle(
                LifecyclePhase.END,
                "cancelled",
                cancelled=True,
                stop_reason="rpc",
                started_at=ACCEPTED_AT,
                ended_at=ACCEPTED_AT + timedelta(seconds=1),
                usage=Usage(unavailable=True),
            ),
            {
                "lifecycle": {
                    "phase": "LIFECYCLE_PHASE_END",
                    "state": "RUN_STATE_CANCELLED",
                    "cancelled": True,
                    "stop_reason": "rpc",
                    "started_at": "2026-01-01T12:00:00.250Z",
                    "ended_at": "2026-01-01T12:00:01.250Z",
                    "usage": {"unavailable": True},
                }
            },
        ),
        (QueueChange(QueuePhase.QUEUED, position=2), {"queue": {"phase": "QUEUE_PHASE_QUEUED", "position": 2}}),
    ],
)
def test_each_payload_travels_in_its_arm(payload: EventPayload, expected: dict[str, Any]) -> None:
    assert _arm(payload) == expected


@pytest.mark.parametrize("phase", list(LifecyclePhase))
@pytest.mark.parametrize("state", list(RunState))
def test_every_phase_and_state_has_its_wire_value(phase: LifecyclePhase, state: RunState) -> None:
    lifecycle = _arm(Lifecycle(phase, state.value))["lifecycle"]
    assert lifecycle["phase"] == f"LIFECYCLE_PHASE_{phase.name}"
    assert lifecycle["state"] == f"RUN_STATE_{state.name}"


@pytest.mark.parametrize("outcome", list(ToolOutcome))
def test_every_tool_outcome_has_its_wire_value(outcome: ToolOutcome) -> None:
    tool = _arm(ToolProgress(ToolPhase.RESULT, "c", "t", outcome=outcome))["tool"]
    assert tool["outcome"] == f"TOOL_OUTCOME_{outcome.name}"


def test_usage_that_the_provider_did_not_give_is_absent_from_the_end_of_a_message() -> None:
    assert "usage" not in _arm(MessageEnded("m", "assistant", "e", "Hi", usage=Usage(unavailable=True)))["message"]
    assert "usage" not in _arm(MessageEnded("m", "assistant", "e", "Hi"))["message"]


_OVERSIZED: list[EventPayload] = [
    AssistantDelta("m", 0, 0, _HUGE),
    ReasoningDelta("m", 0, 0, _HUGE),
    MessageEnded("m" * 5000, "assistant", "e", _HUGE, stop_reason=_HUGE),
    ToolProgress(ToolPhase.START, _HUGE, _HUGE, arguments_json=_HUGE),
    ToolProgress(ToolPhase.RESULT, "c", "t", arguments_json="x" * 900_000, result=Payload(_HUGE)),
    Lifecycle(
        LifecyclePhase.ERROR, "failed", stop_reason=_HUGE, error=RunError("INTERNAL", _HUGE, _HUGE, _HUGE), model=_HUGE
    ),
]


@pytest.mark.parametrize("payload", _OVERSIZED)
def test_no_event_exceeds_1_mib(payload: EventPayload) -> None:
    assert len(make_event(payload, seq=2**62, position=2**62).encoded) <= MAX_MESSAGE_BYTES


def test_a_text_that_is_cut_says_so_and_how_long_it_is() -> None:
    message = _arm(MessageEnded("m", "assistant", "e", _HUGE))["message"]
    assert message["truncated"] is True
    assert message["total_bytes"] == "6000000"
    assert _HUGE.startswith(message["text"])
    assert len(message["text"].encode()) > 900_000
    result = _arm(ToolProgress(ToolPhase.RESULT, "c", "t", result=Payload(_HUGE)))["tool"]["result"]
    assert (result["truncated"], result["total_bytes"]) == (True, "6000000")


def test_the_length_that_the_service_knows_of_a_text_it_has_cut_is_kept() -> None:
    cut = MessageEnded("m", "assistant", "e", "begin", truncated=True, total_bytes=5_000_000)
    assert _arm(cut)["message"]["total_bytes"] == "5000000"
    result = Payload("begin", truncated=True, total_bytes=5_000_000)
    tool = _arm(ToolProgress(ToolPhase.RESULT, "c", "t", result=result))["tool"]
    assert (tool["result"]["truncated"], tool["result"]["total_bytes"]) == (True, "5000000")


def test_arguments_that_do_not_fit_are_left_out_whole() -> None:
    assert "arguments_json" not in _arm(ToolProgress(ToolPhase.START, "c", "t", arguments_json=_HUGE))["tool"]


def test_the_text_of_an_error_has_at_most_1000_bytes() -> None:
    error = _arm(Lifecycle(LifecyclePhase.ERROR, "failed", error=RunError("INTERNAL", _HUGE)))["lifecycle"]["error"]
    assert error["message"] == "ü" * 500


_BAD = "a\udc80b"
_WITH_SURROGATES: list[EventPayload] = [
    AssistantDelta(_BAD, 0, 0, _BAD),
    ReasoningDelta(_BAD, 0, 0, _BAD),
    MessageEnded(_BAD, "assistant", "e", _BAD, stop_reason=_BAD),
    ToolProgress(ToolPhase.START, _BAD, _BAD, arguments_json=_BAD),
    ToolProgress(ToolPhase.RESULT, _BAD, _BAD, result=Payload(_BAD, is_error=True)),
    Lifecycle(LifecyclePhase.ERROR, "failed", stop_reason=_BAD, error=RunError("INTERNAL", _BAD, _BAD, _BAD)),
]


@pytest.mark.parametrize("payload", _WITH_SURROGATES)
def test_b080_lone_surrogates_leave_as_replacement_characters(payload: EventPayload) -> None:
    assert "a\ufffdb" in str(_arm(payload))


def test_numbers_of_a_provider_that_fit_no_field_do_not_stop_an_event() -> None:
    usage = Usage(input_tokens=10**30, output_tokens=-5)
    message = _arm(MessageEnded("m", "assistant", "e", "Hi", usage=usage))["message"]
    assert message["usage"] == {"input_tokens": str(2**63 - 1), "total_tokens": str(2**63 - 1)}


def test_readers_without_results_get_tool_events_without_them() -> None:
    call = ToolProgress(ToolPhase.RESULT, "c", "t", result=Payload("secret"), outcome=ToolOutcome.OK, duration_s=1)
    stored = make_event(call, seq=1)
    shown = _CODEC.without_results(stored.encoded)
    assert b"secret" not in shown
    assert shown == _CODEC.without_results(stored.encoded)
    assert shown == make_event(replace(call, result=None), seq=1).encoded
    for other in (ToolProgress(ToolPhase.START, "c", "t", "{}"), AssistantDelta("m", 0, 0, "x")):
        encoded = make_event(other, seq=1).encoded
        assert _CODEC.without_results(encoded) == encoded


def test_a_snapshot_carries_the_run_and_stays_below_1_mib() -> None:
    run = make_run(
        state=RunState.SUCCEEDED,
        payloads=(Payload(_HUGE),),
        metadata={f"{number:0512d}": "ü" * 256 for number in range(32)},
        label="l" * 512,
    )
    encoded = snapshot_event(run, first_seq=5, last_seq=9, time=ACCEPTED_AT)
    event = event_pb2.Event.FromString(encoded)
    assert len(encoded) <= MAX_MESSAGE_BYTES
    assert (event.seq, event.cursor, event.run_id, event.agent_id) == (0, "", "run_1", "main")
    assert (event.snapshot.first_seq, event.snapshot.last_seq) == (5, 9)
    assert event.snapshot.run.payloads[0].truncated


def test_a_progress_names_the_run_or_the_session_or_nothing() -> None:
    parse = event_pb2.Event.FromString
    of_run = parse(progress_event("c", time=ACCEPTED_AT, run=make_run()))
    assert (of_run.run_id, of_run.session_key, of_run.agent_id) == ("run_1", "agent:main:main", "main")
    of_session = parse(progress_event("c", time=ACCEPTED_AT, session_key="k"))
    assert (of_session.run_id, of_session.session_key, of_session.agent_id) == ("", "k", "")
    of_all = parse(progress_event("c", time=ACCEPTED_AT))
    assert (of_all.run_id, of_all.session_key, of_all.progress.cursor, of_all.seq) == ("", "", "c", 0)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)), st.integers(), st.floats(0, 1e18))
def test_any_texts_and_numbers_of_a_tool_call_encode(text: str, other: str, number: int, duration_s: float) -> None:
    call = ToolProgress(
        ToolPhase.RESULT, text, other, text, Payload(other, total_bytes=abs(number) % 2**60), duration_s=duration_s
    )
    assert make_event(call, seq=1).encoded
