"""Runs, sessions and their answers in wire form. Pure. Each message stays below 1 MiB."""

from google.protobuf import duration_pb2

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.errors import ErrorCode
from lanewayd.messages import valid_text
from lanewayd.records import Run, RunState, Session
from lanewayd.rpc.convert import int32, int64, name, payloads, run_error, run_state, timestamp, usage
from lanewayd.rpc.interface import AcceptedMessage
from lanewayd.rpc.limits import MAX_OUTPUT_BYTES, MAX_TEXT_BYTES
from lanewayd.rpc.structs import struct_of
from lanewayd.runs.interface import AbortReceipt, WaitOutcome, WaitResult

_WAIT_ENDS = {
    RunState.SUCCEEDED: (agent_pb2.WAIT_STATUS_OK, agent_pb2.TIMEOUT_KIND_UNSPECIFIED),
    RunState.FAILED: (agent_pb2.WAIT_STATUS_ERROR, agent_pb2.TIMEOUT_KIND_UNSPECIFIED),
    RunState.CANCELLED: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_CANCELLED),
    RunState.TIMED_OUT: (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_RUN_DEADLINE),
}
_GIVEN_UP = (ErrorCode.RUN_STALLED.value, ErrorCode.RECOVERY_EXHAUSTED.value)


def agent_response(accepted: AcceptedMessage) -> run_pb2.AgentResponse:
    """The answer to an accepted message."""
    return run_pb2.AgentResponse(
        run_id=accepted.run_id,
        accepted_at=timestamp(accepted.accepted_at),
        session_key=valid_text(accepted.session_key),
        session_id=valid_text(accepted.session_id),
        agent_id=valid_text(accepted.agent_id),
        duplicate=accepted.duplicate,
        disposition=f"DISPOSITION_{accepted.disposition.upper()}",
        queue_position=int32(accepted.queue_position),
        reply=valid_text(accepted.reply),
    )


def run_message(run: Run) -> run_pb2.Run:
    """A run as it stands."""
    request = run.request
    return run_pb2.Run(
        run_id=run.run_id,
        session_key=valid_text(run.session_key),
        session_id=valid_text(run.session_id),
        agent_id=name(request.agent_id),
        parent_run_id=name(request.parent_run_id),
        label=name(request.label),
        state=run_state(run.state),
        disposition=f"DISPOSITION_{run.disposition.name}",
        queue_position=int32(run.queue_position) if run.state is RunState.QUEUED else 0,
        accepted_at=timestamp(run.accepted_at),
        started_at=timestamp(run.started_at),
        ended_at=timestamp(run.ended_at),
        error=run_error(run.error),
        stop_reason=name(run.stop_reason),
        truncated=run.truncated,
        payloads=payloads(run.payloads, MAX_TEXT_BYTES - MAX_OUTPUT_BYTES),
        output=struct_of(run.output_json, MAX_OUTPUT_BYTES),
        usage=usage(run.usage),
        merged_into_run_id=_merged_into(run),
        model=name(run.answered_by or request.model) if run.started_at else "",
        attempt=int32(run.attempt),
        last_seq=int64(run.last_seq),
        metadata={name(key): name(value) for key, value in request.metadata.items()},
    )


def wait_response(result: WaitResult) -> agent_pb2.WaitResponse:
    """The result of a wait. The run's state decides; the outcome of the wait counts only for a run that goes on."""
    run = result.run
    draining = result.outcome is WaitOutcome.DRAINING
    goes_on = agent_pb2.TIMEOUT_KIND_DRAINING if draining else agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED
    status, timeout_kind = _WAIT_ENDS.get(run.state, (agent_pb2.WAIT_STATUS_TIMEOUT, goes_on))
    pending = result.pending_error if run.state is RunState.RUNNING else None
    return agent_pb2.WaitResponse(
        run_id=run.run_id,
        status=status,
        timeout_kind=timeout_kind,
        state=run_state(run.state),
        accepted_at=timestamp(run.accepted_at),
        started_at=timestamp(run.started_at),
        ended_at=timestamp(run.ended_at),
        error=run_error(pending or run.error),
        error_pending=pending is not None,
        stop_reason=name(run.stop_reason),
        truncated=run.truncated,
        payloads=payloads(run.payloads, MAX_TEXT_BYTES - MAX_OUTPUT_BYTES),
        output=struct_of(run.output_json, MAX_OUTPUT_BYTES),
        usage=usage(run.usage),
        merged_into_run_id=_merged_into(run),
        liveness=_liveness(run, is_stalled=result.is_stalled),
    )


def _liveness(run: Run, *, is_stalled: bool) -> agent_pb2.Liveness:
    """As the field of WaitResponse says it."""
    if run.state in (RunState.QUEUED, RunState.MERGED):
        return agent_pb2.LIVENESS_PAUSED
    if run.state is RunState.RUNNING:
        return agent_pb2.LIVENESS_BLOCKED if is_stalled else agent_pb2.LIVENESS_WORKING
    if run.state in (RunState.SUCCEEDED, RunState.CANCELLED):
        return agent_pb2.LIVENESS_WORKING
    is_given_up = run.error is not None and run.error.reason in _GIVEN_UP
    return agent_pb2.LIVENESS_ABANDONED if is_given_up else agent_pb2.LIVENESS_BLOCKED


def abort_response(receipt: AbortReceipt) -> agent_pb2.AbortResponse:
    """What an abort has ended."""
    return agent_pb2.AbortResponse(
        aborted_run_ids=receipt.aborted_run_ids,
        cancelled_run_ids=receipt.cancelled_run_ids,
        pending_run_ids=receipt.pending_run_ids,
    )


def session_message(session: Session) -> session_pb2.Session:
    """A session as it stands."""
    settings = session.settings
    last_state = None if session.last_state is None else run_state(session.last_state)
    return session_pb2.Session(
        session_key=valid_text(session.session_key),
        session_id=valid_text(session.session_id),
        agent_id=name(session.agent_id),
        label=name(session.label),
        created_at=timestamp(session.created_at),
        last_interaction_at=timestamp(session.last_interaction_at),
        active_run_id=session.active_run_id,
        queued_runs=int32(session.queued_runs),
        last_run_id=session.last_run_id,
        last_state=last_state,
        model=name(settings.model),
        thinking=f"THINKING_LEVEL_{settings.thinking.upper() or 'UNSPECIFIED'}",
        verbose=f"VERBOSITY_{settings.verbose.upper() or 'UNSPECIFIED'}",
        reasoning=f"REASONING_VISIBILITY_{settings.reasoning.upper() or 'UNSPECIFIED'}",
        trace=settings.trace,
        queue_mode=f"QUEUE_MODE_{settings.queue_mode.upper() or 'UNSPECIFIED'}",
        queue_debounce=_milliseconds(settings.queue_debounce_ms),
        queue_cap=settings.queue_cap or 0,
        queue_drop=f"QUEUE_DROP_{settings.queue_drop.upper() or 'UNSPECIFIED'}",
        usage=usage(session.usage),
        context_tokens=int64(session.context_tokens),
        pinned=session.pinned,
        archived=session.archived,
        parent_session_key=valid_text(session.parent_session_key),
    )


def _milliseconds(number: int | None) -> duration_pb2.Duration | None:
    if number is None:
        return None
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(number)
    return duration


def _merged_into(run: Run) -> str:
    """A message that is only attached to its host (D-7) has not been taken in."""
    return "" if run.state in (RunState.QUEUED, RunState.RUNNING) else run.host_run_id
