"""A tool call's row, its result message and its event: one made from the other. Pure."""

from dataclasses import replace

from lanewayd.events import ToolPhase, ToolProgress
from lanewayd.messages import Payload, ToolCall, ToolOutcome, ToolResultMessage
from lanewayd.records import ToolCallRow, ToolCallState

UNKNOWN_TEXT = (
    "outcome unknown: the server stopped while this call was running, so it may or may not have had its effect; "
    "check before doing it again"
)
ABORTED_TEXT = "aborted: the run was stopped before this call had a result"
RESTART_TEXT = "stopped by a restart of the server before it had finished; what it did until then stands"


def call_of(row: ToolCallRow) -> ToolCall:
    """The call as the model asked for it."""
    return ToolCall(row.call_id, row.name, row.arguments_json)


def known_result(row: ToolCallRow) -> ToolResultMessage:
    """The result that a FINISHED row holds."""
    return ToolResultMessage(row.call_id, row.name, row.result_text, row.is_error, row.outcome or ToolOutcome.OK)


def stopped_result(row: ToolCallRow, output: str = "") -> ToolResultMessage:
    """The result of a call that nobody waits for any more; it keeps the output so far (R-6.20)."""
    return ToolResultMessage(row.call_id, row.name, with_cause(ABORTED_TEXT, output), True, ToolOutcome.ABORTED)


def with_cause(cause: str, output: str) -> str:
    """The output a stopped call had produced, then why there is no more."""
    return f"{output}\n[{cause}]" if output else cause


def finished_row(row: ToolCallRow, result: ToolResultMessage) -> ToolCallRow:
    """The row with its result."""
    return replace(
        row,
        state=ToolCallState.FINISHED,
        result_text=result.text,
        is_error=result.is_error,
        outcome=result.outcome,
    )


def requested_again(row: ToolCallRow) -> ToolCallRow:
    """The row as if it had not been launched, for an idempotent tool."""
    return replace(row, state=ToolCallState.REQUESTED)


def result_event(result: ToolResultMessage, shown: str, duration_s: float | None) -> ToolProgress:
    """The event that ends a call; `shown` is the text as a watcher may see it."""
    payload = Payload(
        shown,
        truncated=shown != result.text,
        total_bytes=len(result.text.encode("utf-8", "replace")),
        is_error=result.is_error,
    )
    return ToolProgress(
        ToolPhase.RESULT,
        result.call_id,
        result.name,
        result=payload,
        is_error=result.is_error,
        outcome=result.outcome,
        duration_s=duration_s,
    )
