"""Writes down what a run's loop does: events, transcript entries and tool-call rows that belong together in one change.

It has the run's message in progress and its open calls; so it alone can close a run, whatever stopped it: the text so
far is kept once, and every call gets its result.
"""

from collections.abc import Sequence
from dataclasses import replace

from lanewayd.events import (
    Diagnostic,
    EventPayload,
    Lifecycle,
    LifecyclePhase,
    MessageEnded,
    NewEvent,
)
from lanewayd.messages import (
    AssistantMessage,
    RunError,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    Usage,
    cut_utf8,
    valid_text,
)
from lanewayd.models.candidates import Candidate
from lanewayd.records import EntryKind, NewEntry, RunState, ToolCallRow, ToolCallState
from lanewayd.runs.activity import Activity
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.model_trace import SOURCE as MODELS
from lanewayd.runs.model_trace import ModelTrace
from lanewayd.runs.open_calls import OpenCalls
from lanewayd.runs.open_message import OpenMessage
from lanewayd.runs.outcome import MAX_TEXT_BYTES, Outcome, end_of, terminal_of
from lanewayd.runs.runlog import RunLog
from lanewayd.runs.speakers import Speakers
from lanewayd.runs.spending import NOT_SAID, Spending
from lanewayd.store.interface import Injection, RunChange, Started
from lanewayd.tools.interface import ToolResult
from lanewayd.transcript.entries import assistant_body, tool_result_body

NO_CHANGE = RunChange()


class RunRecorder:
    """Implements loop.interface.Recorder over a run's log."""

    def __init__(
        self, started: Started, log: RunLog, collaborators: Collaborators, *, activity: Activity | None = None
    ) -> None:
        """`activity`: hears of each sign of life; None = nobody looks."""
        run = self._run = started.run
        self._log = log
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._watches = collaborators.watches
        self._model_trace = ModelTrace(run.request)
        self._activity = activity or Activity(collaborators.clock)
        self._has_pending_error = False
        self._started_s = self._clock.monotonic()
        self._message = OpenMessage(
            log=log,
            clock=self._clock,
            ids=self._ids,
            interval_s=collaborators.settings.delta_interval_s,
            emit=lambda events, open_message_id: self._append(
                *events, change=RunChange(open_message_id=open_message_id)
            ),
        )
        self._last_text = ""
        self._last_entry_id = ""
        self._calls = OpenCalls(collaborators.sanitiser)
        self._spending = Spending(run.void_usage)
        self._speakers = Speakers(selected=run.request.model, answered_by=run.answered_by, told=started.fallback_model)
        self._is_closed = False

    @property
    def used_s(self) -> float:
        """The budget used so far, by all dispatches."""
        return self._run.used_s + self._clock.monotonic() - self._started_s

    @property
    def last_entry_id(self) -> str:
        """The run's last entry in the transcript, stored or on its way; "" before the first of this dispatch."""
        return self._last_entry_id

    @property
    def last_text(self) -> str:
        """What the run said last: the message in progress, else the last one that ended."""
        return self._message.text or self._last_text

    def resume(self, rows: Sequence[ToolCallRow], *, last_text: str, usage: Usage) -> list[ToolResultMessage]:
        """Go on where an earlier dispatch stood: take over its open calls, return the results that are known.

        A launched call gets the result "outcome unknown" here (D-2); the caller gives idempotent ones as REQUESTED.
        """
        self._last_text = last_text
        self._spending.resume(usage, was_cut=bool(self._run.open_message_id))
        for call, result in self._calls.take_over(rows):
            self.tool_finished(call, result, duration_s=0.0, really_ran=False)
        return self._calls.results

    # --- what the loop tells (loop.interface.Recorder) ---------------------------------------------------------------

    def calling(self, candidate: Candidate, *, instead_of: RunError | None, attempt: int) -> None:
        self._activity.calls_model()
        self._announce(candidate, instead_of, attempt)
        if self._run.request.trace and (line := self._model_trace.line(candidate, instead_of)):
            self._append(Diagnostic(MODELS, line))

    def _announce(self, candidate: Candidate, instead_of: RunError | None, attempt: int) -> None:
        self._speakers.begins(candidate)
        if instead_of is None:
            return
        announcement = self._speakers.takes_over(instead_of)
        if announcement is None:
            if attempt > 1:
                self.retry(instead_of, attempt=attempt, delay_s=0.0)
            return
        self._spending.void()
        self._append(
            replace(announcement, void_message_id=self._message.void()),
            change=RunChange(open_message_id="", fallback_model=candidate.reference),
        )
        self._pend(instead_of)

    def text(self, content_index: int, text: str) -> None:
        self._activity.progressed("text")
        self._got_over_error()
        self._message.show(False, content_index, valid_text(text))

    def reasoning(self, content_index: int, text: str) -> None:
        self._activity.progressed("reasoning")
        self._got_over_error()
        self._message.show(True, content_index, valid_text(text))

    def block_ended(self) -> None:
        self._message.flush()

    def message_ended(self, message: AssistantMessage) -> None:
        self._activity.answered()
        self.block_ended()
        self._got_over_error()
        entry_id = self._ids.entry()
        rows = tuple(
            ToolCallRow(
                self._run.run_id,
                call.call_id,
                entry_id,
                index,
                call.name,
                call.arguments_json,
                ToolCallState.REQUESTED,
            )
            for index, call in enumerate(message.tool_calls)
        )
        body = assistant_body(message, self._message.message_id)
        announcements, change = self._speakers.answered(
            RunChange(
                entries=(self._entry(entry_id, EntryKind.ASSISTANT, body),),
                tool_calls=rows,
                open_message_id="",
                got_on=not rows,
            )
        )
        self._append(self._ended_event(message, entry_id), *announcements, change=change)
        self._calls.begin(rows)
        self._last_text = message.text
        self._spending.keep(message.usage)
        self._message.next()

    @property
    def usage(self) -> Usage:
        return self._spending.total

    def call_failed(self, usage: Usage) -> None:
        self._spending.fail(usage)

    def retry(self, error: RunError, *, attempt: int, delay_s: float, corrections: int | None = None) -> None:
        self._activity.is_alive()
        self._spending.void()
        self._append(
            Lifecycle(
                LifecyclePhase.RETRY,
                RunState.RUNNING.value,
                error=error,
                attempt=attempt,
                delay_s=delay_s,
                void_message_id=self._message.void(),
                provider=error.provider,
                model=error.model,
            ),
            change=RunChange(open_message_id="", corrections=corrections),
        )
        self._pend(error)

    async def launch(self, calls: Sequence[ToolCall], *, durable: bool) -> None:
        self._activity.launched(calls)
        if not durable:
            # No effect of a call without its message in the transcript: after a power cut nobody would know of it.
            await self._log.stored()
        launched = self._calls.launch(calls, durable=durable)
        self._append(*launched.events, change=RunChange(tool_calls=tuple(launched.rows)))
        if durable:
            await self._log.stored()

    def tool_update(self, call: ToolCall, text: str) -> None:
        self._activity.progressed("tool_output")
        self._append(self._calls.update(call, text))

    def tool_finished(self, call: ToolCall, result: ToolResult, *, duration_s: float, really_ran: bool) -> None:
        self._activity.came_back(call)
        finished = self._calls.finish(call, result, duration_s=duration_s)
        got_on = really_ran and result.outcome is not ToolOutcome.ABORTED
        self._append(*finished.events, change=RunChange(tool_calls=tuple(finished.rows), got_on=got_on))

    def batch_settled(self, results: Sequence[ToolResultMessage]) -> None:
        self._append(change=RunChange(entries=tuple(self._result_entry(result) for result in results)))
        self._calls.settle()

    async def inject(self, injections: Sequence[Injection]) -> tuple[str, ...]:
        """Take in messages that wait for the run; the ids of those that were. Raises ClaimLost."""
        taken = await self._log.inject(injections)
        self._activity.progressed("steered")
        for injection in injections:
            if injection.run_id in taken:
                self._last_entry_id = injection.entry.entry_id
        return taken

    def tell(self, diagnostic: Diagnostic) -> None:
        """A line about the run itself, as part of its log."""
        self._append(diagnostic)

    # --- closing -----------------------------------------------------------------------------------------------------

    def hand_over(self, *, is_cut: bool) -> None:
        """Leave the run to the next process (D-18). `is_cut`: its launched calls were stopped: that is their result."""
        self._message.close()
        if is_cut:
            for call, result in self._calls.cut():
                self.tool_finished(call, result, duration_s=0.0, really_ran=False)
        self._append(change=RunChange(handed_over=True))
        self._is_closed = True

    def reopen(self) -> None:
        """The end was refused: the run goes on."""
        self._is_closed = self._activity.has_ended = False

    def close(self, outcome: Outcome) -> None:
        """Append the end: text in progress as a message, a result for every open call, the terminal event - one change.

        A run that did not succeed shows what it said last. The usage is that of all its calls.
        """
        self._message.close()
        if self._spending.open is None and self._message.is_begun:
            self._spending.fail(NOT_SAID)
        outcome = replace(outcome, usage=self._spending.total)
        if outcome.state is not RunState.SUCCEEDED:
            outcome = replace(outcome, text=self.last_text)
        entries, said = self._say_rest(is_error=outcome.error is not None)
        stopped = self._calls.stop()
        ended_at = self._clock.now()
        self._append(
            *said,
            *stopped.events,
            terminal_of(outcome, self._run, ended_at),
            change=RunChange(
                entries=(*entries, *(self._result_entry(result) for result in self._calls.results)),
                tool_calls=tuple(stopped.rows),
                open_message_id="",
                got_on=outcome.state is RunState.SUCCEEDED,
                end=end_of(outcome, ended_at),
            ),
        )
        self._is_closed = True
        self._activity.ended()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _say_rest(self, *, is_error: bool) -> tuple[list[NewEntry], list[EventPayload]]:
        """The message in progress as far as it came: as an entry, if it has text, and the events that are due."""
        events = self._message.rest()
        partial = self._message.text
        if not partial.strip():
            return [], events
        stop = StopReason.ERROR if is_error else StopReason.ABORTED
        speaker, usage = self._speakers.speaker, self._spending.open or Usage()
        message = AssistantMessage((Text(partial),), speaker.provider, speaker.model, stop, usage)
        entry_id = self._ids.entry()
        body = assistant_body(message, self._message.message_id)
        return [self._entry(entry_id, EntryKind.ASSISTANT, body)], [*events, self._ended_event(message, entry_id)]

    def _ended_event(self, message: AssistantMessage, entry_id: str) -> MessageEnded:
        cut = cut_utf8(message.text, MAX_TEXT_BYTES)
        return MessageEnded(
            self._message.message_id,
            "assistant",
            entry_id,
            cut.text,
            truncated=cut.truncated,
            total_bytes=cut.total_bytes,
            stop_reason=message.stop_reason.value,
            usage=None if message.usage.unavailable else message.usage,
        )

    def _result_entry(self, result: ToolResultMessage) -> NewEntry:
        return self._entry(self._ids.entry(), EntryKind.TOOL_RESULT, tool_result_body(result))

    def _entry(self, entry_id: str, kind: EntryKind, body_json: str) -> NewEntry:
        return NewEntry(entry_id, self._clock.now(), kind, body_json)

    def _append(self, *payloads: EventPayload, change: RunChange = NO_CHANGE) -> None:
        """`change` with these events, and with what every step of the run notes."""
        if self._is_closed:
            return  # a tool that did not let go in time has nothing more to say
        if change.entries:
            self._last_entry_id = change.entries[-1].entry_id
        now = change.end.ended_at if change.end is not None else self._clock.now()
        is_step = bool(change.entries or change.tool_calls or change.handed_over or change.end is not None)
        self._log.append(
            replace(
                change,
                events=tuple(NewEvent(now, payload) for payload in payloads),
                used_s=self.used_s if is_step else None,
                void_usage=self._spending.take_unstored(),
            )
        )

    def _pend(self, error: RunError) -> None:
        self._has_pending_error = True
        self._watches.set_pending_error(self._run.run_id, error)

    def _got_over_error(self) -> None:
        if self._has_pending_error:
            self._has_pending_error = False
            self._watches.set_pending_error(self._run.run_id, None)
