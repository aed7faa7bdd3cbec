"""The service behind the handlers, played: it says what a test tells it to, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.fakes.rpc_rows import ACCEPTED_AT, STORE_ID, make_run, make_session

from lanewayd.audit_records import AuditFilter, AuditRecord
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import StoredEvent
from lanewayd.records import Entry, Run, RunState, Session, SessionFilter, SessionPatch
from lanewayd.runs.interface import (
    AbortReceipt,
    LaneStatus,
    NewMessage,
    Progress,
    Snapshot,
    WaitOutcome,
    WaitResult,
)
from lanewayd.runs.looks import Look

LogItem = StoredEvent | Snapshot | Progress


@dataclass(frozen=True)
class FakeAnswer:
    """The answer to an accepted message."""

    run_id: str = "run_1"
    accepted_at: datetime = ACCEPTED_AT
    session_key: str = "agent:main:main"
    session_id: str = "session-1"
    agent_id: str = "main"
    disposition: str = "started"
    queue_position: int = 0
    duplicate: bool = False
    reply: str = ""


@dataclass
class FakeRuns:
    """Implements rpc.interface.Runs. `error` is raised by every call."""

    answer: FakeAnswer = field(default_factory=FakeAnswer)
    stored: list[Run] = field(default_factory=lambda: [make_run()])
    error: Exception | None = None
    accepted: list[NewMessage] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    wait_outcome: WaitOutcome = WaitOutcome.EXPIRED
    receipt: AbortReceipt = field(default_factory=AbortReceipt)

    async def accept(self, message: NewMessage) -> FakeAnswer:
        self._fail()
        self.accepted.append(message)
        return self.answer

    async def run(self, tenant: str, run_id: str) -> Run:
        self._fail()
        self.asked.append(("run", tenant, run_id))
        for run in self.stored:
            if run.run_id == run_id:
                return run
        raise LanewayError(ErrorCode.RUN_NOT_FOUND, f"There is no run {run_id}.", metadata={"run_id": run_id})

    async def runs(
        self,
        tenant: str,
        *,
        session_key: str,
        states: tuple[RunState, ...],
        agent_id: str,
        label: str,
        before_no: int | None,
        limit: int,
    ) -> Sequence[Run]:
        self._fail()
        self.asked.append(("runs", tenant, session_key, states, agent_id, label))
        newest_first = sorted(self.stored, key=lambda run: -run.accepted_no)
        return [run for run in newest_first if before_no is None or run.accepted_no < before_no][:limit]

    async def wait(self, tenant: str, run_id: str, timeout_s: float) -> WaitResult:
        run = await self.run(tenant, run_id)
        self.asked.append(("wait", tenant, run_id, timeout_s))
        return WaitResult(self.wait_outcome, run)

    async def abort_run(self, tenant: str, run_id: str, *, stop_reason: str, reason: str) -> AbortReceipt:
        self._fail()
        self.asked.append(("abort_run", tenant, run_id, stop_reason, reason))
        return self.receipt

    async def abort_session(
        self, tenant: str, session_key: str, *, clear_queued: bool, stop_reason: str, reason: str
    ) -> AbortReceipt:
        self._fail()
        self.asked.append(("abort_session", tenant, session_key, clear_queued, stop_reason, reason))
        return self.receipt

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class FakeLogs:
    """Implements rpc.interface.Logs: each follower gets what is put into `items`; an exception is raised, None ends."""

    def __init__(self) -> None:
        self.items: asyncio.Queue[LogItem | Exception | None] = asyncio.Queue()
        self.asked: list[tuple[Any, ...]] = []
        self.opened = asyncio.Event()
        self.closed = asyncio.Event()
        self.open_count = 0

    @property
    def store_id(self) -> str:
        return STORE_ID

    def put(self, *items: LogItem | Exception | None) -> None:
        """Give `items` to the follower."""
        for item in items:
            self.items.put_nowait(item)

    def follow_run(self, tenant: str, run_id: str, after_seq: int | None) -> AsyncIterator[LogItem]:
        return self._follow(("run", tenant, run_id, after_seq))

    def follow_session(
        self, tenant: str, session_key: str, position: int | None
    ) -> AsyncIterator[StoredEvent | Progress]:
        return self._follow(("session", tenant, session_key, position))

    def follow_all(self, tenant: str, position: int | None) -> AsyncIterator[StoredEvent | Progress]:
        return self._follow(("all", tenant, position))

    async def _follow(self, asked: tuple[Any, ...]) -> AsyncIterator[Any]:
        self.asked.append(asked)
        self.open_count += 1
        self.opened.set()
        try:
            while (item := await self.items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.open_count -= 1
            self.closed.set()


@dataclass
class FakeLooks:
    """Implements rpc.interface.Looks: one look for all sessions."""

    look: Look = field(default_factory=lambda: Look(shows_results=False, shows_reasoning=True))

    async def of(self, tenant: str, session_key: str) -> Look:
        return self.look


@dataclass
class FakeSessions:
    """Implements rpc.interface.Sessions for the sessions and entries it is given."""

    stored: list[Session] = field(default_factory=lambda: [make_session()])
    stored_entries: list[Entry] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    aborted: tuple[str, ...] = ()
    error: LanewayError | None = None
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    async def get(self, tenant: str, session_key: str) -> Session:
        self.asked.append(("get", tenant, session_key))
        for session in self.stored:
            if session.session_key == session_key:
                return session
        raise LanewayError(ErrorCode.SESSION_NOT_FOUND, f"There is no session {session_key}.")

    async def list(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Session]:
        ordered = sorted(self.stored, key=lambda session: session.session_key)
        ordered.sort(key=lambda session: session.last_interaction_at, reverse=True)
        places = [(session.last_interaction_at, session.session_key) for session in ordered]
        start = 0 if before is None else places.index(before) + 1
        return ordered[start : start + limit]

    async def update(self, tenant: str, session_key: str, patch: SessionPatch) -> Session:
        self.asked.append(("update", tenant, session_key, patch))
        return patch.applied_to(await self.get(tenant, session_key))

    async def reset(self, tenant: str, session_key: str, *, force: bool) -> tuple[Session, tuple[str, ...]]:
        self.asked.append(("reset", tenant, session_key, force))
        if self.error is not None:
            raise self.error
        return await self.get(tenant, session_key), self.aborted

    async def delete(self, tenant: str, session_key: str, *, force: bool) -> tuple[str, ...]:
        self.asked.append(("delete", tenant, session_key, force))
        if self.error is not None:
            raise self.error
        return self.aborted

    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> Sequence[tuple[int, Entry]]:
        await self.get(tenant, session_key)
        return list(enumerate(self.stored_entries, start=1))[after_no : after_no + limit]

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry:
        await self.get(tenant, session_key)
        for entry in self.stored_entries:
            if entry.entry_id == entry_id:
                return entry
        raise LanewayError(ErrorCode.ENTRY_NOT_FOUND, "The session has no such entry.")

    async def fork(
        self, tenant: str, session_key: str, *, entry_id: str, new_session_key: str, label: str
    ) -> tuple[Session, int, bool]:
        self.asked.append(("fork", tenant, session_key, entry_id, new_session_key, label))
        return await self.get(tenant, session_key), 3, False

    async def export(self, tenant: str, session_key: str) -> AsyncIterator[str]:
        await self.get(tenant, session_key)
        for line in self.lines:
            yield line

    async def import_session(self, tenant: str, session_key: str, lines: AsyncIterator[str]) -> tuple[Session, int]:
        """Keeps the lines; returns when all are there."""
        self.asked.append(("import", tenant, session_key))
        self.lines = []
        async for line in lines:
            self.lines.append(line)
        return self.stored[0], len(self.lines)


@dataclass(frozen=True)
class FakeListing:
    """An agent, model or tool; each reads the fields it knows."""

    agent_id: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    api: str = "openai_chat"
    context_window: int = 0
    available: bool = True
    name: str = ""
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    source: str = "builtin"


@dataclass
class FakeAudit:
    """Implements rpc.interface.AuditRecords over records that a test gives, newest first; remembers what was asked."""

    kept: Sequence[AuditRecord] = ()
    asked: list[tuple[str, AuditFilter]] = field(default_factory=list)

    async def records(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        self.asked.append((tenant, which))
        return [record for record in self.kept if before_no is None or record.ledger_no < before_no][:limit]


@dataclass
class FakeAdmin:
    """Implements rpc.interface.Admin, and is the status it answers with."""

    version: str = "0.1.0"
    features: tuple[str, ...] = ()
    started_at: datetime = ACCEPTED_AT
    draining: bool = False
    lanes: tuple[LaneStatus, ...] = ()
    runs_by_state: Mapping[RunState, int] = field(default_factory=dict)
    sessions: int = 0
    subscribers: int = 0
    store_path: str = "/home/laneway.db"
    store_bytes: int = 0
    commit_ms: float = 0.0
    listings: tuple[FakeListing, ...] = ()

    async def status(self) -> "FakeAdmin":
        return self

    def drain(self) -> None:
        self.draining = True

    def agents(self) -> Sequence[FakeListing]:
        return self.listings

    def models(self) -> Sequence[FakeListing]:
        return self.listings

    def tools(self) -> Sequence[FakeListing]:
        return self.listings
