"""The calls of a run's last assistant message whose results are not in the transcript yet: what each is up to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewayd.events import ToolPhase, ToolProgress
from lanewayd.messages import Payload, ToolCall, ToolOutcome, ToolResultMessage, valid_text
from lanewayd.records import ToolCallRow, ToolCallState
from lanewayd.runs.call_rows import (
    RESTART_TEXT,
    UNKNOWN_TEXT,
    call_of,
    finished_row,
    known_result,
    result_event,
    stopped_result,
    with_cause,
)
from lanewayd.runs.collaborators import EventSanitiser
from lanewayd.tools.interface import ToolResult


@dataclass(slots=True)
class _OpenCall:
    row: ToolCallRow
    is_shown: bool = False
    output: str = ""
    """What it had produced when it last told."""
    result: ToolResultMessage | None = None


@dataclass(slots=True)
class CallChange:
    """Rows as they are now, and the events that say so."""

    rows: list[ToolCallRow]
    events: list[ToolProgress]


class OpenCalls:
    """Owner of the calls from `begin` or `take_over` until `settle`. Each change is stored by the caller."""

    def __init__(self, sanitiser: EventSanitiser) -> None:
        self._sanitiser = sanitiser
        self._calls: dict[str, _OpenCall] = {}

    def begin(self, rows: Sequence[ToolCallRow]) -> None:
        """The calls of a new message, all REQUESTED."""
        self._calls = {row.call_id: _OpenCall(row) for row in rows}

    def take_over(self, rows: Sequence[ToolCallRow]) -> list[tuple[ToolCall, ToolResult]]:
        """The calls as an earlier dispatch left them; those of unknown outcome, with the result that says so (D-2)."""
        self._calls = {
            row.call_id: _OpenCall(
                row,
                is_shown=row.state is not ToolCallState.REQUESTED,
                result=known_result(row) if row.state is ToolCallState.FINISHED else None,
            )
            for row in rows
        }
        unknown = ToolResult(UNKNOWN_TEXT, is_error=True, outcome=ToolOutcome.UNKNOWN)
        return [(call_of(call.row), unknown) for call in self._launched()]

    def settle(self) -> None:
        """All results are in the transcript."""
        self._calls = {}

    @property
    def results(self) -> list[ToolResultMessage]:
        """Those that are known, in request order."""
        return [call.result for call in self._calls.values() if call.result is not None]

    def launch(self, calls: Sequence[ToolCall], *, durable: bool) -> CallChange:
        """The calls begin; with `durable` their rows are LAUNCHED, else they stay as they are."""
        change = CallChange([], [])
        for call in calls:
            open_call = self._calls[call.call_id]
            open_call.is_shown = True
            change.events.append(self._start_event(call))
            if durable:
                open_call.row = replace(open_call.row, state=ToolCallState.LAUNCHED)
                change.rows.append(open_call.row)
        return change

    def update(self, call: ToolCall, text: str) -> ToolProgress:
        """The call has produced `text` so far."""
        text = self._calls[call.call_id].output = valid_text(text)
        return ToolProgress(ToolPhase.UPDATE, call.call_id, call.name, result=Payload(self._sanitiser.shown(text)))

    def finish(self, call: ToolCall, result: ToolResult, *, duration_s: float | None) -> CallChange:
        """The call has its result. `duration_s`: None = nobody saw it end."""
        open_call = self._calls[call.call_id]
        text = valid_text(result.text)
        message = ToolResultMessage(call.call_id, call.name, text, result.is_error, result.outcome)
        return self._finished(open_call, message, duration_s)

    def cut(self) -> list[tuple[ToolCall, ToolResult]]:
        """The launched calls that a restart has stopped, each with the result that says so (D-18)."""
        return [
            (
                call_of(call.row),
                ToolResult(with_cause(RESTART_TEXT, call.output), is_error=True, outcome=ToolOutcome.ABORTED),
            )
            for call in self._launched()
        ]

    def stop(self) -> CallChange:
        """Every call without a result gets one: the run is over."""
        change = CallChange([], [])
        for call in self._calls.values():
            if call.result is None:
                if not call.is_shown:
                    change.events.append(self._start_event(call_of(call.row)))
                stopped = self._finished(call, stopped_result(call.row, call.output), None)
                change.rows += stopped.rows
                change.events += stopped.events
        return change

    def _launched(self) -> list[_OpenCall]:
        calls = self._calls.values()
        return [call for call in calls if call.result is None and call.row.state is ToolCallState.LAUNCHED]

    def _start_event(self, call: ToolCall) -> ToolProgress:
        arguments = self._sanitiser.arguments_json(call.arguments_json)
        return ToolProgress(ToolPhase.START, call.call_id, call.name, arguments_json=arguments)

    def _finished(self, call: _OpenCall, result: ToolResultMessage, duration_s: float | None) -> CallChange:
        call.result = result
        call.row = finished_row(call.row, result)
        return CallChange([call.row], [result_event(result, self._sanitiser.shown(result.text), duration_s)])
