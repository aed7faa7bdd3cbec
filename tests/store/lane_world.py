"""A store without threads and the part of the scheduler that lives in memory: what a model checker steps through.

Every command is one committed transaction of the real store, on a database in memory; `LaneBook` and the decisions of
`queueing/` are the real ones. Only what awaits in the service (supervision, timers) is a method here.
"""

import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from tests.fakes.store_codec import JsonCodec

from lanewayd.events import Lifecycle, LifecyclePhase, MessageEnded, NewEvent
from lanewayd.messages import UserMessage
from lanewayd.queueing.inbox import DroppedMessages, WaitingMessage, collectable, collected_prompt
from lanewayd.records import Disposition, EntryKind, NewEntry, QueueMode, Run, RunState
from lanewayd.runs.lanes import LaneBook, Ticket
from lanewayd.store import reads
from lanewayd.store.commands.dispatch import apply
from lanewayd.store.interface import (
    Accepted,
    Appended,
    AppendToRun,
    Injection,
    InjectMessages,
    RequestAbort,
    RunChange,
    RunEnd,
    SettleRun,
    StartRun,
)
from lanewayd.store.migrate import load_migrations, migrate
from lanewayd.store.named_queries import load_queries
from lanewayd.store.opening import SQL_FOLDER
from lanewayd.store.reader import Snapshot
from lanewayd.store.transaction import Transaction
from lanewayd.transcript.entries import message_of, user_body

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TENANT = "t"
WIDTH = 2


@cache
def _queries() -> dict[str, str]:
    return dict(load_queries(SQL_FOLDER))


@cache
def _empty() -> sqlite3.Connection:
    """A migrated database without rows, to copy."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    sql = _queries()
    migrate(connection, sql, load_migrations(SQL_FOLDER / "migrations"), NOW)
    connection.execute(sql["insert_store"], ("store", 0))
    return connection


class MemoryStore:
    """The store's commands and reads, one after the other."""

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        _empty().backup(connection)
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self._transaction = Transaction(connection, _queries(), codec=JsonCodec(), store_id="store")
        self.snapshot = Snapshot(connection, _queries())

    def do(self, command: object) -> Any:
        """The result of one committed command; what it raises changes nothing."""
        self._transaction.begin()
        try:
            return self._transaction.attempt(apply, command)
        finally:
            self._transaction.store_numbers()
            self._transaction.commit()

    def run(self, run_id: str) -> Run:
        run = reads.run(self.snapshot, TENANT, run_id)
        assert run is not None
        return run

    def texts(self, session_id: str) -> list[str]:
        """What users said in the transcript, oldest first."""
        messages = map(message_of, reads.context(self.snapshot, session_id))
        return [message.text for message in messages if isinstance(message, UserMessage)]

    def close(self) -> None:
        self._connection.close()


@dataclass
class Lanes:
    """What a process knows and a crash takes away."""

    book: LaneBook = field(default_factory=lambda: LaneBook({"main": WIDTH}))
    attached: dict[str, dict[str, Run]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    recovered: dict[str, Run] = field(default_factory=dict)
    admitted: dict[str, bool] = field(default_factory=dict)
    """Runs whose turn has come and which have not been started; whether they are recovered."""
    at_work: dict[str, Run] = field(default_factory=dict)
    """Started by this process, with their claim."""

    def heard_accepted(self, result: Accepted) -> None:
        """As RunRegistry and Scheduler do."""
        run = result.run
        assert run is not None
        self.attach(run) if run.host_run_id else self.enqueue(run)
        for dropped in result.dropped:
            self.waits_no_more(dropped)

    def attach(self, run: Run) -> None:
        self.attached.setdefault(run.host_run_id, {})[run.run_id] = run

    def enqueue(self, run: Run) -> None:
        is_held = run.request.queue_mode == QueueMode.COLLECT and run.disposition is not Disposition.STARTED
        if is_held:
            self.held.add(run.run_id)
        self.book.enqueue(ticket(run, is_held=is_held))

    def resume(self, run: Run) -> None:
        """Another process left it at work."""
        self.recovered[run.run_id] = run
        self.book.enqueue(ticket(run), is_first=True)

    def waits_no_more(self, run: Run) -> None:
        for waiting in self.attached.values():
            waiting.pop(run.run_id, None)
        self.held.discard(run.run_id)
        self.book.cancel(run.run_id)

    def heard_end(self, result: Appended) -> None:
        assert result.run is not None
        self.book.ended(result.run.run_id)
        self.attached.pop(result.run.run_id, None)
        for run in result.detached:
            self.book.enqueue(ticket(run))

    def admit(self) -> list[Ticket]:
        admitted = self.book.admit()
        for one in admitted:
            self.admitted[one.run_id] = self.recovered.pop(one.run_id, None) is not None
        return admitted

    def leave(self, run_id: str) -> None:
        """The run's supervision is over."""
        self.at_work.pop(run_id, None)
        self.admitted.pop(run_id, None)
        self.book.release(run_id)


def ticket(run: Run, *, is_held: bool = False) -> Ticket:
    return Ticket(
        run.run_id, run.tenant, run.session_key, run.request.lane, accepted_no=run.accepted_no, is_held=is_held
    )


@dataclass(frozen=True)
class Opening:
    """What was read before a start; by the time of the start it may not hold any more."""

    members: tuple[str, ...]
    command: StartRun


def opening(store: MemoryStore, run_id: str) -> Opening:
    """As runs/starting.py makes it, for a run that waited for its turn."""
    run = store.run(run_id)
    members: tuple[Run, ...] = ()
    text, dropped_count = run.request.message, None
    if run.request.queue_mode == QueueMode.COLLECT:
        waiting = reads.waiting_behind(store.snapshot, run, 99)
        members = waiting.runs[: collectable(run.request, [each.request for each in waiting.runs])]
        dropped_count = waiting.dropped_count
        text = collected_prompt(
            [WaitingMessage(each.run_id, each.request.message) for each in (run, *members)],
            DroppedMessages(dropped_count, tuple(each.request.message for each in waiting.dropped)),
        )
    entry = NewEntry(f"entry of {run_id}", NOW, EntryKind.USER, user_body(UserMessage(text)))
    start = Lifecycle(LifecyclePhase.START, RunState.RUNNING.value, started_at=NOW)
    names = tuple(each.run_id for each in members)
    return Opening(
        names,
        StartRun(
            run_id,
            NOW,
            recovered=False,
            entries=(entry,),
            events=(NewEvent(NOW, start),),
            collected=names,
            dropped_count=dropped_count,
        ),
    )


def start_recovered(run_id: str) -> StartRun:
    recovered = Lifecycle(LifecyclePhase.RECOVERED, RunState.RUNNING.value)
    return StartRun(run_id, NOW, recovered=True, events=(NewEvent(NOW, recovered),))


def injection(host: Run, waiting: list[Run]) -> InjectMessages:
    """What takes `waiting` into `host`."""
    return InjectMessages(
        host.run_id,
        host.claim,
        NOW,
        tuple(
            Injection(
                each.run_id,
                NewEntry(f"entry of {each.run_id}", NOW, EntryKind.USER, user_body(UserMessage(each.request.message))),
                NewEvent(NOW, MessageEnded(f"message of {each.run_id}", "user", f"entry of {each.run_id}", "")),
            )
            for each in waiting
        ),
    )


def _end(state: RunState) -> RunChange:
    phase = LifecyclePhase.END if state in (RunState.SUCCEEDED, RunState.CANCELLED) else LifecyclePhase.ERROR
    terminal = Lifecycle(phase, state.value, cancelled=state is RunState.CANCELLED, stop_reason="x", ended_at=NOW)
    return RunChange(events=(NewEvent(NOW, terminal),), end=RunEnd(state, NOW, "x"))


def ending(store: MemoryStore, host: Run, state: RunState) -> AppendToRun:
    """The end of a run that this process executes."""
    return AppendToRun(host.run_id, host.claim, store.run(host.run_id).last_seq + 1, (_end(state),))


def settling(run_id: str, state: RunState) -> SettleRun:
    """The end of a run that nobody executes."""
    return SettleRun(run_id, _end(state))


def abort_of(*, run_id: str = "", session_key: str = "", clear_queued: bool = False) -> RequestAbort:
    return RequestAbort(TENANT, NOW, "rpc", run_id=run_id, session_key=session_key, clear_queued=clear_queued)
