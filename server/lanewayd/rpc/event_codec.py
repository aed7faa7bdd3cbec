"""The wire form of events. `WireEventCodec` is what the store encodes with: stored bytes leave as they are. Pure.

No event exceeds 1 MiB: texts are cut at a character, with `truncated` and the full length. Equal events give equal
bytes.
"""

from datetime import datetime
from typing import Any

from laneway.v1 import event_pb2, run_pb2
from lanewayd.events import (
    AssistantDelta,
    Diagnostic,
    EventPayload,
    Lifecycle,
    MessageEnded,
    QueueChange,
    ReasoningDelta,
    ToolProgress,
)
from lanewayd.messages import valid_text
from lanewayd.records import Run, RunState
from lanewayd.rpc.convert import (
    duration,
    int32,
    int64,
    name,
    payload,
    run_error,
    run_state,
    timestamp,
    tool_outcome,
    usage,
)
from lanewayd.rpc.cursors import cursor_text
from lanewayd.rpc.limits import MAX_ERROR_TEXT_BYTES, MAX_TEXT_BYTES
from lanewayd.rpc.run_convert import run_message
from lanewayd.rpc.wire_text import cut, size_bytes

_CURSOR_TAG = bytes([event_pb2.Event.CURSOR_FIELD_NUMBER << 3 | 2])
"""Field 15, length-delimited: still one byte. Arms of stored events have lower numbers, so it comes last."""


class WireEventCodec:
    """Events as `laneway.v1.Event`. Keeps nothing; safe to use from any thread."""

    def encode(
        self, payload: EventPayload, *, run_id: str, seq: int, time: datetime, session_key: str, agent_id: str
    ) -> bytes:
        """The encoded event without its cursor."""
        event = event_pb2.Event(
            run_id=run_id,
            seq=seq,
            time=timestamp(time),
            session_key=valid_text(session_key),
            agent_id=valid_text(agent_id),
        )
        _set_arm(event, payload)
        return event.SerializeToString(deterministic=True)

    def with_cursor(self, encoded: bytes, *, store_id: str, position: int) -> bytes:
        """`encoded` with the cursor of its commit position."""
        cursor = cursor_text(store_id, position).encode()
        return b"".join((encoded, _CURSOR_TAG, bytes([len(cursor)]), cursor))

    def without_results(self, encoded: bytes) -> bytes:
        """A tool event for readers that do not want results; all of them get the same bytes."""
        event = event_pb2.Event.FromString(encoded)
        if event.WhichOneof("payload") != "tool" or not event.tool.HasField("result"):
            return encoded
        event.tool.ClearField("result")
        return event.SerializeToString(deterministic=True)


def accepted_event(answer: run_pb2.AgentResponse) -> bytes:
    """The first message of RunAgent."""
    event = event_pb2.Event(
        run_id=answer.run_id,
        time=answer.accepted_at,
        session_key=answer.session_key,
        agent_id=answer.agent_id,
        accepted=answer,
    )
    return event.SerializeToString(deterministic=True)


def snapshot_event(run: Run, *, first_seq: int, last_seq: int, time: datetime) -> bytes:
    """The first message of a subscription to a run without `after_seq`."""
    event = _about(run, time)
    event.snapshot.CopyFrom(event_pb2.SnapshotEvent(run=run_message(run), first_seq=first_seq, last_seq=last_seq))
    return event.SerializeToString(deterministic=True)


def progress_event(cursor: str, *, time: datetime, run: Run | None = None, session_key: str = "") -> bytes:
    """A sign of life of a subscription to `run`, else to the session `session_key`, else to everything."""
    event = _about(run, time) if run else event_pb2.Event(time=timestamp(time), session_key=valid_text(session_key))
    event.progress.cursor = cursor
    return event.SerializeToString(deterministic=True)


def _about(run: Run, time: datetime) -> event_pb2.Event:
    return event_pb2.Event(
        run_id=run.run_id,
        time=timestamp(time),
        session_key=valid_text(run.session_key),
        agent_id=valid_text(run.request.agent_id),
    )


def _set_arm(event: event_pb2.Event, payload: EventPayload) -> None:
    match payload:
        case AssistantDelta():
            event.assistant.CopyFrom(event_pb2.AssistantEvent(**_delta(payload)))
        case ReasoningDelta():
            event.reasoning.CopyFrom(event_pb2.ReasoningEvent(**_delta(payload)))
        case MessageEnded():
            event.message.CopyFrom(_message(payload))
        case ToolProgress():
            event.tool.CopyFrom(_tool(payload))
        case Lifecycle():
            event.lifecycle.CopyFrom(_lifecycle(payload))
        case Diagnostic():
            event.diagnostic.CopyFrom(_diagnostic(payload))
        case QueueChange():
            event.queue.CopyFrom(
                event_pb2.QueueEvent(
                    phase=f"QUEUE_PHASE_{payload.phase.name}",
                    host_run_id=payload.host_run_id,
                    position=int32(payload.position),
                )
            )


def _delta(piece: AssistantDelta | ReasoningDelta) -> dict[str, Any]:
    # A longer delta is split before it gets a seq; cut here it would leave a gap that `offset` and the whole text of
    # the message's end show, which is better than a stream that ends.
    return {
        "message_id": name(piece.message_id),
        "content_index": int32(piece.content_index),
        "offset": int64(piece.offset),
        "delta": cut(piece.delta, MAX_TEXT_BYTES),
    }


def _message(ended: MessageEnded) -> event_pb2.MessageEvent:
    whole = valid_text(ended.text)
    text = cut(whole, MAX_TEXT_BYTES)
    return event_pb2.MessageEvent(
        message_id=name(ended.message_id),
        role=ended.role,
        entry_id=ended.entry_id,
        text=text,
        truncated=ended.truncated or len(text) < len(whole),
        total_bytes=int64(max(ended.total_bytes, size_bytes(whole))),
        stop_reason=name(ended.stop_reason),
        usage=None if ended.usage is None or ended.usage.unavailable else usage(ended.usage),
    )


def _tool(step: ToolProgress) -> event_pb2.ToolEvent:
    arguments = valid_text(step.arguments_json)
    # Half a JSON text is none: arguments that do not fit are left out whole.
    if size_bytes(arguments) > MAX_TEXT_BYTES:
        arguments = ""
    event = event_pb2.ToolEvent(
        phase=f"TOOL_PHASE_{step.phase.name}",
        call_id=name(step.call_id),
        name=name(step.name),
        arguments_json=arguments,
        is_error=step.is_error,
        outcome=tool_outcome(step.outcome),
        duration=duration(step.duration_s),
    )
    if step.result is not None:
        event.result.CopyFrom(payload(step.result, MAX_TEXT_BYTES - size_bytes(arguments)))
    return event


def _lifecycle(change: Lifecycle) -> event_pb2.LifecycleEvent:
    return event_pb2.LifecycleEvent(
        phase=f"LIFECYCLE_PHASE_{change.phase.name}",
        state=run_state(RunState(change.state)),
        cancelled=change.cancelled,
        stop_reason=name(change.stop_reason),
        error=run_error(change.error),
        started_at=timestamp(change.started_at),
        ended_at=timestamp(change.ended_at),
        usage=usage(change.usage),
        attempt=int32(change.attempt),
        delay=duration(change.delay_s),
        void_message_id=name(change.void_message_id),
        provider=name(change.provider),
        model=name(change.model),
    )


def _diagnostic(payload: Diagnostic) -> event_pb2.DiagnosticEvent:
    found = payload.diagnosis
    line = event_pb2.DiagnosticEvent(source=name(payload.source), text=cut(payload.text, MAX_ERROR_TEXT_BYTES))
    if found is not None:
        line.diagnosis.CopyFrom(
            event_pb2.SessionDiagnosis(
                event=found.event,
                reason=found.reason,
                classification=found.classification,
                state=found.state,
                age=duration(found.age_s),
                last_progress_age=duration(found.progress_age_s),
                last_progress_reason=found.progress_reason,
                queue_depth=int32(found.queue_depth),
                active_work=found.work,
                tool_name=name(found.tool_name),
                call_id=name(found.call_id),
                tool_age=duration(found.tool_age_s) if found.call_id else None,
                action=found.action,
                outcome=found.outcome,
            )
        )
    return line
