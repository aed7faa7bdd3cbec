"""The run service's side of sessions: stop their runs, write under their lock, export and import their entries.

Implements the protocols of sessions/interface.py, which may not know of runs, locks or transcripts.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

from lanewayd.errors import ErrorCode, FieldError, LanewayError, StoreUnavailable
from lanewayd.records import EntryKind, NewEntry, Session, SessionPatch
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.registry import RunRegistry
from lanewayd.runs.transcript_lines import transcript_lines
from lanewayd.sessions.keys import agent_of, fork_key
from lanewayd.store.interface import DeleteSession, Forked, ForkSession, ImportSession, ResetSession, UpdateSession
from lanewayd.transcript.entries import blobs_named_by, reset_body
from lanewayd.transcript.importing import TranscriptReader

MAX_FORK_ENTRIES = 20_000
MAX_FORK_BYTES = 64 * 1024 * 1024
"""What one transaction copies at most, as much as an import may bring."""


class SessionControl:
    """See the module."""

    def __init__(self, collaborators: Collaborators, registry: RunRegistry) -> None:
        self._store = collaborators.store
        self._blobs = collaborators.blobs
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._locks = collaborators.locks
        self._workshop = collaborators.workshop
        self._archives = collaborators.archives
        self._registry = registry

    async def stop(self, tenant: str, session_key: str, *, stop_reason: str) -> tuple[str, ...]:
        """Abort queued runs, then the running one. Raises SESSION_ACTIVE when one does not let go in time."""
        receipt = await self._registry.abort_session(
            tenant, session_key, clear_queued=True, stop_reason=stop_reason, reason=""
        )
        if receipt.pending_run_ids:
            raise LanewayError(
                ErrorCode.SESSION_ACTIVE,
                "a run of the session is still being stopped; try again in a moment",
                metadata={"run_id": receipt.pending_run_ids[0]},
            )
        return receipt.aborted_run_ids + receipt.cancelled_run_ids

    async def update(self, tenant: str, session_key: str, patch: SessionPatch) -> Session:
        """Set what the patch names, beside whatever runs in the session. Raises SESSION_NOT_FOUND."""
        return await self._store.update_session(UpdateSession(tenant, session_key, patch, self._clock.now()))

    async def reset(self, tenant: str, session_key: str) -> Session:
        """Append the entry that begins a fresh window. Raises SESSION_NOT_FOUND, SESSION_ACTIVE, SESSION_BUSY."""
        await self._check_idle(tenant, session_key)
        held = await self._locks.acquire(tenant, session_key, run_id="")
        try:
            entry = NewEntry(self._ids.entry(), self._clock.now(), EntryKind.RESET, reset_body())
            return await self._store.reset_session(ResetSession(tenant, session_key, entry))
        finally:
            await self._locks.release(held)

    async def delete(self, tenant: str, session_key: str) -> None:
        """Remove the session. Raises as `reset`."""
        await self._check_idle(tenant, session_key)
        held = await self._locks.acquire(tenant, session_key, run_id="")
        try:
            self._blobs.suspect(await self._store.delete_session(DeleteSession(tenant, session_key)))
            with suppress(StoreUnavailable):  # the session is gone; retention sweeps again
                await self._blobs.sweep(self._store.unnamed_blobs)
            await self._archives.remove_all(tenant, session_key)
        finally:
            await self._locks.release(held)

    async def lines(self, session: Session) -> AsyncGenerator[str, None]:
        """The transcript as JSON lines, read in pages."""
        async for line in transcript_lines(self._store, session, self._workshop.workspace(session.agent_id)):
            yield line

    async def read(self, lines: AsyncIterator[str]) -> TranscriptReader:
        """All lines of an export, checked. Raises FIELD_INVALID (`line`)."""
        transcript = TranscriptReader(self._ids.entry, self._ids.message)
        async for line in lines:
            transcript.feed(line)
        transcript.finish()
        return transcript

    async def create(self, tenant: str, session_key: str, transcript: TranscriptReader) -> Session:
        """A new session with what was read. Raises FIELD_INVALID (`session_key`: it is taken), SESSION_KEY_MALFORMED,
        AGENT_NOT_FOUND, SESSION_BUSY."""
        command = ImportSession(
            tenant=tenant,
            session_key=session_key,
            session_id=self._ids.session(),
            agent_id=self._registry.owner_of(session_key),
            created_at=transcript.finish(),
            now=self._clock.now(),
            entries=tuple(transcript.entries),
        )
        held = await self._locks.acquire(tenant, session_key, run_id="")
        try:
            return await self._store.import_session(command)
        finally:
            await self._locks.release(held)

    async def fork(
        self, tenant: str, session_key: str, *, entry_id: str, new_session_key: str, label: str
    ) -> tuple[Session, int, bool]:
        """See sessions.interface.SessionWriter. The lock is that of the new session: the other one is only read."""
        session_id = self._ids.session()
        new_key = new_session_key or fork_key(agent_of(session_key), session_id)
        self._check_owner(new_key, is_named=bool(new_session_key))
        command = ForkSession(
            tenant=tenant,
            session_key=session_key,
            entry_id=entry_id,
            new_session_key=new_key,
            new_session_id=session_id,
            label=label,
            now=self._clock.now(),
            max_entries=MAX_FORK_ENTRIES,
            max_bytes=MAX_FORK_BYTES,
            new_entry_id=self._ids.entry,
            blobs_named_by=blobs_named_by,
        )
        forked = await self._forked(command)
        return forked.session, forked.entries, forked.is_duplicate

    async def _forked(self, command: ForkSession) -> Forked:
        if await self._store.session(command.tenant, command.new_session_key) is not None:
            return await self._store.fork_session(command)  # writes nothing; a run of that session may hold the lock
        held = await self._locks.acquire(command.tenant, command.new_session_key, run_id="")
        try:
            return await self._store.fork_session(command)
        finally:
            await self._locks.release(held)

    def _check_owner(self, key: str, *, is_named: bool) -> None:
        """The key may have a session. Raises AGENT_NOT_FOUND, FieldError on the field that is at fault."""
        try:
            self._registry.owner_of(key)
        except FieldError as error:
            field = "new_session_key" if is_named else "session_key"
            raise FieldError(error.code, field, error.message) from None

    async def _check_idle(self, tenant: str, session_key: str) -> None:
        """A session at work is refused before its lock is waited for: its run holds it."""
        session = await self._store.session(tenant, session_key)
        if session is not None and (session.active_run_id or session.queued_runs):
            raise LanewayError(
                ErrorCode.SESSION_ACTIVE,
                "the session has runs that have not ended; abort them, or ask with force",
                metadata={"run_id": session.active_run_id} if session.active_run_id else {},
            )
