"""How a run ended, as its row and its terminal event say it. Pure. Source: CONTRACT, Outcomes; D-17."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from lanewayd.errors import ErrorCode
from lanewayd.events import Lifecycle, LifecyclePhase
from lanewayd.loop.answer_text import object_json
from lanewayd.messages import AssistantMessage, Payload, Reasoning, RunError, StopReason, Usage, cut_utf8, valid_text
from lanewayd.records import Run, RunRequest, RunState
from lanewayd.store.interface import RunEnd

MAX_TEXT_BYTES = 512 * 1024
"""Of a text inside one server message, which stays below 1 MiB."""


class StopCause(StrEnum):
    """Why a run is stopped from outside."""

    ABORT = "abort"
    DEADLINE = "deadline"
    DRAIN = "drain"
    STALLED = "stalled"
    """It made no progress (spec 02, 8.3)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run's end before it is written. `text` is what the run said last, whole."""

    state: RunState
    stop_reason: str
    text: str = ""
    reasoning: str = ""
    """What the model thought before it, for results that have it."""
    error: RunError | None = None
    truncated: bool = False
    usage: Usage | None = None
    """None: what the run's recorder knows."""
    context_tokens: int | None = None
    output_json: str = ""


def finished(message: AssistantMessage, request: RunRequest) -> Outcome:
    """The model gave its answer; cut by its output limit it is still a success, `truncated`.

    With a schema in `request` it has been checked, and holds the object that the caller asked for.
    """
    return Outcome(
        RunState.SUCCEEDED,
        valid_text(message.provider_stop or message.stop_reason.value),
        text=valid_text(message.text),
        reasoning=valid_text(_reasoning_of(message)) if request.result_has_reasoning else "",
        truncated=message.stop_reason is StopReason.LENGTH,
        output_json=object_json(message.text) if request.response_schema_json else "",
        context_tokens=None if message.usage.unavailable else message.usage.context_tokens,
    )


def failed(error: RunError) -> Outcome:
    """The run ended with an error that no retry follows."""
    return Outcome(RunState.FAILED, "error", error=error)


def failed_inside() -> Outcome:
    """A fault of ours; the log holds it."""
    return failed(
        RunError(ErrorCode.INTERNAL.value, "the server failed inside; its log holds the fault under this run's id")
    )


def aborted(stop_reason: str) -> Outcome:
    """Somebody stopped the run."""
    return Outcome(RunState.CANCELLED, stop_reason)


def stalled(silent_in: str) -> Outcome:
    """The run was stopped for its silence; `silent_in` says for how long and in what."""
    return failed(
        RunError(
            ErrorCode.RUN_STALLED.value,
            f"the run was stopped after {silent_in} without any progress; send the message again, or raise the limits"
            " in [diagnostics]",
            retryable=True,
        )
    )


def deadline_passed(timeout_s: float) -> Outcome:
    """The run used its budget up."""
    error = RunError(
        ErrorCode.RUN_DEADLINE.value,
        f"the run was stopped after {timeout_s:g} s of work, its time limit; give a longer timeout or ask for less",
    )
    return Outcome(RunState.TIMED_OUT, "deadline", error=error)


def recovery_exhausted(max_attempts: int) -> Outcome:
    """The server died `max_attempts` times in a row while the run was at work."""
    error = RunError(
        ErrorCode.RECOVERY_EXHAUSTED.value,
        f"the server stopped {max_attempts} times while this run was executing, so it is not tried again; "
        "look at what its last tool call did, then send the message anew",
    )
    return Outcome(RunState.FAILED, "error", error=error)


def end_of(outcome: Outcome, ended_at: datetime) -> RunEnd:
    """The columns of the row."""
    return RunEnd(
        state=outcome.state,
        ended_at=ended_at,
        stop_reason=outcome.stop_reason,
        error=outcome.error,
        truncated=outcome.truncated,
        payloads=_payloads(outcome),
        usage=outcome.usage,
        context_tokens=outcome.context_tokens,
        output_json=outcome.output_json,
    )


def terminal_of(outcome: Outcome, run: Run, ended_at: datetime) -> Lifecycle:
    """The terminal event: ERROR for a failure or a passed deadline, else END."""
    is_error = outcome.state in (RunState.FAILED, RunState.TIMED_OUT)
    return Lifecycle(
        phase=LifecyclePhase.ERROR if is_error else LifecyclePhase.END,
        state=outcome.state.value,
        cancelled=outcome.state is RunState.CANCELLED,
        stop_reason=outcome.stop_reason,
        error=outcome.error,
        started_at=run.started_at,
        ended_at=ended_at,
        usage=outcome.usage,
        attempt=run.attempt,
    )


def _reasoning_of(message: AssistantMessage) -> str:
    return "\n\n".join(block.text for block in message.content if isinstance(block, Reasoning) and block.text)


def _payloads(outcome: Outcome) -> tuple[Payload, ...]:
    payloads = [replace(cut_utf8(outcome.reasoning, MAX_TEXT_BYTES), is_reasoning=True)] if outcome.reasoning else []
    if outcome.text:
        payloads.append(cut_utf8(outcome.text, MAX_TEXT_BYTES))
    if outcome.state is RunState.FAILED and outcome.error is not None:
        payloads.append(replace(cut_utf8(outcome.error.message, MAX_TEXT_BYTES), is_error=True))
    return tuple(payloads)
