"""The store on SQLite: one thread writes and checkpoints, another one reads."""

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from lanewayd.audit_records import AuditFilter, AuditPage, AuditRecord
from lanewayd.clock import Clock, SystemClock
from lanewayd.records import Entry, Run, Session, SessionFilter, ToolCallRow
from lanewayd.store import reads, upkeep_reads
from lanewayd.store.audit_commands import AUDIT_STEP_ROWS, AppendAudit, ProvideAuditKey, PruneAudit
from lanewayd.store.audit_reads import audit_page
from lanewayd.store.commands.accept import stored_answer
from lanewayd.store.commands.dispatch import apply
from lanewayd.store.credential_commands import PinCredential, SaveCredentialHealth
from lanewayd.store.interface import (
    AbortRequested,
    Accepted,
    AcceptRun,
    Appended,
    AppendToRun,
    ArchiveSurplus,
    CrowdedTenant,
    DeleteSession,
    DropPastTranscript,
    DropSession,
    EventPage,
    FindUnnamedBlobs,
    Forked,
    ForkSession,
    IdempotencyKey,
    ImportSession,
    Injected,
    InjectMessages,
    Prune,
    Pruned,
    RequestAbort,
    ResetSession,
    RunFilter,
    SettleRun,
    Started,
    StartRun,
    StoreFigures,
    Unused,
    UpdateSession,
    Waiting,
)
from lanewayd.store.opening import Opened, OpenOptions, open_database, size_on_disk
from lanewayd.store.reader import Reader
from lanewayd.store.transaction import Transaction
from lanewayd.store.writer import Writer, WriterLimits
from lanewayd.store.writer_interface import CommitGate, CommitListener, EventCodec


class SqliteStore:
    """Implements `Store`. Use it on the event loop it was opened on, and close it there."""

    def __init__(self, opened: Opened, writer: Writer) -> None:
        """For `open` only."""
        self._path = opened.path
        self._store_id = opened.store_id
        self._writer = writer
        self._reader = Reader(opened.reading, opened.sql)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        codec: EventCodec,
        clock: Clock | None = None,
        gate: CommitGate | None = None,
        limits: WriterLimits | None = None,
        options: OpenOptions | None = None,
    ) -> "SqliteStore":
        """Open or create the database at `path`, whose folder exists.

        Raises StartupError: written by a newer version, damaged, not Laneway's, not writable.
        """
        clock = clock or SystemClock()
        opened = await asyncio.to_thread(open_database, path, options or OpenOptions(), clock.now())
        transaction = Transaction(opened.writing, opened.sql, codec=codec, store_id=opened.store_id)
        writer = Writer(transaction, apply, clock=clock, gate=gate, limits=limits or WriterLimits())
        return cls(opened, writer)

    @property
    def store_id(self) -> str:
        return self._store_id

    @property
    def listener(self) -> CommitListener | None:
        """Who hears of commits; may be set at any time."""
        return self._writer.listener

    @listener.setter
    def listener(self, listener: CommitListener | None) -> None:
        self._writer.listener = listener

    def tell_commits(self, on_committed: Callable[[int, float], None]) -> None:
        """Each durable group is told, on the writer's thread: its number of commands, seconds since the first came."""
        self._writer.on_committed = on_committed

    @property
    def failing_since(self) -> float | None:
        """Since when (monotonic) no group could be committed; None while the store works."""
        return self._writer.failing_since

    # --- writes ---

    async def accept(self, command: AcceptRun) -> Accepted:
        result: Accepted = await self._writer.write(command)
        return result

    async def start(self, command: StartRun) -> Started:
        result: Started = await self._writer.write(command)
        return result

    async def append(self, command: AppendToRun) -> Appended:
        result: Appended = await self._writer.write(command)
        return result

    async def inject(self, command: InjectMessages) -> Injected:
        result: Injected = await self._writer.write(command)
        return result

    async def settle(self, command: SettleRun) -> Appended:
        result: Appended = await self._writer.write(command)
        return result

    async def request_abort(self, command: RequestAbort) -> AbortRequested:
        result: AbortRequested = await self._writer.write(command)
        return result

    async def update_session(self, command: UpdateSession) -> Session:
        result: Session = await self._writer.write(command)
        return result

    async def reset_session(self, command: ResetSession) -> Session:
        result: Session = await self._writer.write(command)
        return result

    async def prune(self, command: Prune) -> Pruned:
        result: Pruned = await self._writer.write(command)
        return result

    async def delete_session(self, command: DeleteSession) -> tuple[str, ...]:
        result: tuple[str, ...] = await self._writer.write(command)
        return result

    async def unnamed_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        result: frozenset[str] = await self._writer.write(FindUnnamedBlobs(tuple(hashes)))
        return result

    async def import_session(self, command: ImportSession) -> Session:
        result: Session = await self._writer.write(command)
        return result

    async def fork_session(self, command: ForkSession) -> Forked:
        result: Forked = await self._writer.write(command)
        return result

    async def drop_session(self, command: DropSession) -> tuple[str, ...] | None:
        result: tuple[str, ...] | None = await self._writer.write(command)
        return result

    async def drop_past_transcript(self, command: DropPastTranscript) -> tuple[str, ...] | None:
        result: tuple[str, ...] | None = await self._writer.write(command)
        return result

    async def archive_surplus(self, command: ArchiveSurplus) -> int:
        result: int = await self._writer.write(command)
        return result

    # --- reads ---

    async def answer(self, tenant: str, key: IdempotencyKey, now: datetime) -> Accepted | None:
        return await self._reader.read(lambda snapshot: stored_answer(snapshot, tenant, key, now))

    async def run(self, tenant: str, run_id: str) -> Run | None:
        return await self._reader.read(lambda snapshot: reads.run(snapshot, tenant, run_id))

    async def runs(self, tenant: str, which: RunFilter, *, before_no: int | None, limit: int) -> list[Run]:
        return await self._reader.read(lambda snapshot: reads.runs(snapshot, tenant, which, before_no, limit))

    async def waiting_behind(self, run: Run, limit: int) -> Waiting:
        return await self._reader.read(lambda snapshot: reads.waiting_behind(snapshot, run, limit))

    async def blobs_of(self, tenant: str, hashes: Collection[str]) -> frozenset[str]:
        return await self._reader.read(lambda snapshot: reads.blobs_of(snapshot, tenant, hashes))

    async def unended_runs(self) -> list[Run]:
        return await self._reader.read(reads.unended_runs)

    async def tool_calls(self, run_id: str) -> list[ToolCallRow]:
        return await self._reader.read(lambda snapshot: reads.tool_calls(snapshot, run_id))

    async def session(self, tenant: str, session_key: str) -> Session | None:
        return await self._reader.read(lambda snapshot: reads.session(snapshot, tenant, session_key))

    async def session_key_of(self, tenant: str, session_id: str) -> str | None:
        return await self._reader.read(lambda snapshot: reads.session_key_of(snapshot, tenant, session_id))

    async def sessions(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> list[Session]:
        return await self._reader.read(lambda snapshot: reads.sessions(snapshot, tenant, which, before, limit))

    async def context(self, session_id: str) -> list[Entry]:
        return await self._reader.read(lambda snapshot: reads.context(snapshot, session_id))

    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]:
        return await self._reader.read(lambda snapshot: reads.entries(snapshot, tenant, session_key, after_no, limit))

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry | None:
        return await self._reader.read(lambda snapshot: reads.entry(snapshot, tenant, session_key, entry_id))

    async def transcript(self, session_id: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]:
        return await self._reader.read(lambda snapshot: upkeep_reads.transcript(snapshot, session_id, after_no, limit))

    async def unused_sessions(self, unused: Unused, limit: int) -> list[Session]:
        return await self._reader.read(lambda snapshot: upkeep_reads.unused_sessions(snapshot, unused, limit))

    async def past_transcripts(self, limit: int) -> list[Session]:
        return await self._reader.read(lambda snapshot: upkeep_reads.past_transcripts(snapshot, limit))

    async def crowded_tenants(self, max_sessions: int) -> list[CrowdedTenant]:
        return await self._reader.read(lambda snapshot: upkeep_reads.crowded_tenants(snapshot, max_sessions))

    async def used_bytes(self) -> int:
        return await self._reader.read(upkeep_reads.used_bytes)

    async def run_events(self, tenant: str, run_id: str, *, after_seq: int, limit: int) -> EventPage | None:
        return await self._reader.read(lambda snapshot: reads.run_events(snapshot, tenant, run_id, after_seq, limit))

    async def session_events(self, tenant: str, session_key: str, *, after: int, limit: int) -> EventPage:
        return await self._reader.read(
            lambda snapshot: reads.session_events(snapshot, tenant, session_key, after, limit)
        )

    async def all_events(self, tenant: str, *, after: int, limit: int) -> EventPage:
        return await self._reader.read(lambda snapshot: reads.all_events(snapshot, tenant, after, limit))

    async def session_start_position(self, tenant: str, session_key: str) -> int:
        return await self._reader.read(lambda snapshot: reads.session_start_position(snapshot, tenant, session_key))

    async def last_position(self) -> int:
        return await self._reader.read(reads.last_position)

    # --- credentials ---

    async def credential_health(self) -> list[tuple[str, str, str]]:
        return await self._reader.read(reads.credential_health)

    async def save_credential_health(self, provider: str, profile: str, state_json: str) -> None:
        await self._writer.write(SaveCredentialHealth(provider, profile, state_json))

    async def credential_pin(self, session_id: str, provider: str) -> str:
        return await self._reader.read(lambda snapshot: reads.credential_pin(snapshot, session_id, provider))

    async def pin_credential(self, session_id: str, provider: str, profile: str) -> None:
        await self._writer.write(PinCredential(session_id, provider, profile))

    # --- audit ledger ---

    async def append_audit(self, records: tuple[AuditRecord, ...], max_rows: int) -> None:
        await self._writer.write(AppendAudit(records, max_rows))

    async def prune_audit(self, oldest: datetime, max_rows: int) -> bool:
        removed: int = await self._writer.write(PruneAudit(oldest, max_rows))
        return removed < AUDIT_STEP_ROWS

    async def audit_key(self, new_secret: bytes) -> bytes | None:
        secret: bytes | None = await self._writer.write(ProvideAuditKey(new_secret))
        return secret

    async def audit_page(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int, max_rows: int
    ) -> AuditPage:
        return await self._reader.read(lambda snapshot: audit_page(snapshot, tenant, which, before_no, limit, max_rows))

    # --- the store itself ---

    async def figures(self) -> StoreFigures:
        sessions, runs_by_state = await self._reader.read(
            lambda snapshot: (reads.count_sessions(snapshot), reads.count_runs_by_state(snapshot))
        )
        return StoreFigures(
            path=str(self._path),
            size_bytes=size_on_disk(self._path),
            commit_ms=self._writer.commit_ms,
            sessions=sessions,
            runs_by_state=runs_by_state,
        )

    async def close(self) -> None:
        # The reader first: the writer's last checkpoint wants the log for itself.
        await self._reader.close()
        await self._writer.close()
