"""Hears of commits and tells the audit ledger what was done (spec 03, 10): only what is durable is recorded."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from lanewayd.audit.activity import (
    Pseudonyms,
    RunFacts,
    acts_of_tools,
    is_direct,
    message_processed,
    run_finished,
    run_started,
)
from lanewayd.audit.ledger import AuditLedger
from lanewayd.audit_records import AuditRecord
from lanewayd.events import Lifecycle, LifecyclePhase, NewEvent, StoredEvent, ToolPhase, ToolProgress
from lanewayd.records import Run
from lanewayd.store.interface import (
    Accepted,
    AcceptRun,
    Appended,
    AppendToRun,
    RunChange,
    SettleRun,
    Started,
    StartRun,
)


class MessageAuditing(StrEnum):
    """Which messages are recorded (R-3.75)."""

    OFF = "off"
    DIRECT = "direct"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class AuditScope:
    """What is recorded. `pseudonyms` None: no messages, whatever `messages` says."""

    is_enabled: bool
    messages: MessageAuditing = MessageAuditing.OFF
    pseudonyms: Pseudonyms | None = None


class Auditing:
    """Turns commits into records. Owner of what it knows of the runs at work, so that it need not look them up."""

    def __init__(self, scope: AuditScope, *, ledger: AuditLedger, tool_of: Callable[[str], str]) -> None:
        """`tool_of`: the tool that a model means by a name, "" for one that it made up."""
        self._scope = scope
        self._ledger = ledger
        self._tool_of = tool_of
        self._running: dict[str, RunFacts] = {}

    def committed(self, command: object, result: object, ended: Iterable[Run]) -> None:
        """`command` is durable with this result; `ended` are the runs that ended by it."""
        if not self._scope.is_enabled:
            return
        if isinstance(command, AppendToRun) and isinstance(result, Appended):
            # Nearly all commits are these, and nearly none of them holds anything to record.
            if (facts := self._running.get(command.run_id)) is not None:
                self._tools(facts, command.changes, result.events)
        elif isinstance(command, StartRun) and isinstance(result, Started):
            self._started(command, result)
        elif isinstance(command, SettleRun) and isinstance(result, Appended) and result.run is not None:
            self._tools(RunFacts.of(result.run), (command.change,), result.events)
        elif isinstance(command, AcceptRun) and isinstance(result, Accepted):
            self._accepted(command, result)
        for run in ended:
            self._running.pop(run.run_id, None)
            self._ledger.add((run_finished(run),))

    def _started(self, command: StartRun, result: Started) -> None:
        run = result.run
        self._running[run.run_id] = RunFacts.of(run)
        seqs = [event.seq for event in result.events if event.run_id == run.run_id]
        for event, seq in zip(command.events, seqs, strict=False):
            if isinstance(event.payload, Lifecycle) and event.payload.phase is LifecyclePhase.START:
                self._ledger.add((run_started(run, seq),))

    def _tools(self, run: RunFacts, changes: Iterable[RunChange], stored: tuple[StoredEvent, ...]) -> None:
        # The events of the run come first, in the order in which they were given.
        place = 0
        for change in changes:
            if any(_is_act(event) for event in change.events):
                seqs = (event.seq for event in stored[place:])
                records = acts_of_tools(run, list(zip(change.events, seqs, strict=False)), tool_of=self._tool_of)
                self._ledger.add(records)
            place += len(change.events)

    def _accepted(self, command: AcceptRun, result: Accepted) -> None:
        scope = self._scope
        if not result.run_id or scope.pseudonyms is None or scope.messages is MessageAuditing.OFF:
            return
        if scope.messages is MessageAuditing.DIRECT and not is_direct(result.session_key):
            return
        self._ledger.add((_message(command, result, scope.pseudonyms),))


def _message(command: AcceptRun, result: Accepted, pseudonyms: Pseudonyms) -> AuditRecord:
    return message_processed(
        command.tenant,
        result.run_id,
        command.now,
        command.request,
        pseudonyms=pseudonyms,
        is_duplicate=result.duplicate,
    )


def _is_act(event: NewEvent) -> bool:
    return isinstance(event.payload, ToolProgress) and event.payload.phase is not ToolPhase.UPDATE
