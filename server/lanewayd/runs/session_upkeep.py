"""Keeps the sessions within the bounds of the settings (spec 03, 7.6): what is old or too much is put away or removed.

Reads never remove anything, and nothing is asked of a message: a sweep goes over the sessions from time to time. Never
removed or archived by it: pinned sessions, sessions with a run that has not ended and, unless the settings say
otherwise, those that a channel has spoken in; the store may stay above its bounds for them (R-3.69).
"""

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from lanewayd.errors import LanewayError
from lanewayd.records import Session
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.transcript_lines import transcript_lines
from lanewayd.store.interface import ArchiveSurplus, DropPastTranscript, DropSession, Unused, UnusedKind
from lanewayd.transcript.archives import ArchiveFile

logger = logging.getLogger(__name__)

ONE_OFF_AGE = timedelta(hours=24)
"""Sessions of messages that named none are kept so long, however many there are (R-3.72)."""
PAGE_SESSIONS = 100
MAX_REMOVED = 2000
"""Transcripts that one sweep takes out of the store; the rest goes with the next, which then comes at once: other
retention waits for a sweep."""


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """What sessions may take. None = no bound."""

    unused_for: timedelta | None
    """Then a session is removed."""
    max_sessions: int | None
    """Of each tenant, that are not archived."""
    recent: timedelta
    """Sessions in which a user has spoken within it are not archived for being too many."""
    archives_age: timedelta | None
    """Then the file of a transcript that left the store is removed."""
    max_bytes: int | None
    """Of database, attachments and archived transcripts."""
    high_water_bytes: int
    """Where removing for `max_bytes` ends."""
    spares_external: bool = True
    """Sessions that a channel has spoken in stay."""
    only_warns: bool = False
    interval: timedelta = timedelta(minutes=30)


class ArchiveWriter(Protocol):
    """See transcript/archives.py."""

    async def write(
        self, tenant: str, session_key: str, session_id: str, lines: AsyncIterator[str], *, now: datetime
    ) -> Path: ...
    async def remove(self, path: Path) -> None: ...
    async def oldest_first(self) -> list[ArchiveFile]: ...


class SessionUpkeep:
    """One sweep at a time, at most one each interval."""

    def __init__(self, bounds: SessionBounds, collaborators: Collaborators, archives: ArchiveWriter) -> None:
        self._bounds = bounds
        self._store = collaborators.store
        self._blobs = collaborators.blobs
        self._clock = collaborators.clock
        self._locks = collaborators.locks
        self._workspace: Callable[[str], str] = collaborators.workshop.workspace
        self._archives = archives
        self._next_at_s = collaborators.clock.monotonic()
        self._left = 0
        """What this sweep may still take out."""

    async def sweep(self) -> None:
        """Apply all bounds if it is time to. Raises StoreUnavailable."""
        if self._clock.monotonic() < self._next_at_s:
            return
        self._next_at_s = self._clock.monotonic() + self._bounds.interval.total_seconds()
        await self.apply()
        if self._left == 0:
            self._next_at_s = self._clock.monotonic()

    async def apply(self) -> None:
        """Apply all bounds. Raises StoreUnavailable. What cannot be archived stays, and does not keep the rest from
        being done: a full disk is when room must be made."""
        bounds, self._left = self._bounds, MAX_REMOVED
        if bounds.only_warns:
            await self._warn()
            return
        try:
            await self._archive()
        except OSError as error:
            logger.warning("sessions cannot be archived", extra={"error": str(error)})
        if bounds.max_sessions is not None:
            await self._thin_out(bounds.max_sessions)
        if bounds.archives_age is not None:
            await self._remove_old_archives(self._clock.now() - bounds.archives_age)
        if bounds.max_bytes is not None and await self._taken_bytes() > bounds.max_bytes:
            await self._make_room(bounds.high_water_bytes)

    async def _archive(self) -> None:
        """What leaves the store with a file. Raises OSError."""
        await self._archive_past_transcripts()
        if self._bounds.unused_for is None:
            return
        unused = Unused(self._clock.now() - self._bounds.unused_for, self._bounds.spares_external)
        await self._remove(unused, limit=MAX_REMOVED, is_archived=True)

    async def _archive_past_transcripts(self) -> None:
        """Transcripts whose key has gone on leave the store."""
        while past := await self._store.past_transcripts(min(self._left, PAGE_SESSIONS)):
            self._left -= len(past)
            for session in past:
                path = await self._write_archive(session)
                blobs = await self._store.drop_past_transcript(DropPastTranscript(session.session_id))
                if blobs is None:
                    await self._archives.remove(path)  # the session was deleted meanwhile
                else:
                    self._blobs.suspect(blobs)

    async def _thin_out(self, max_sessions: int) -> None:
        bounds, now = self._bounds, self._clock.now()
        for crowd in await self._store.crowded_tenants(max_sessions):
            one_offs = Unused(now - ONE_OFF_AGE, bounds.spares_external, UnusedKind.ONE_OFF, crowd.tenant)
            await self._remove(one_offs, limit=crowd.sessions - max_sessions, is_archived=False)
            command = ArchiveSurplus(crowd.tenant, max_sessions, now - bounds.recent, bounds.spares_external)
            while archived := await self._store.archive_surplus(command):
                logger.info("sessions archived", extra={"sessions": archived})

    async def _remove_old_archives(self, before: datetime) -> None:
        for file in await self._archives.oldest_first():
            if file.written_at_s < before.timestamp():
                await self._archives.remove(file.path)

    async def _make_room(self, high_water_bytes: int) -> None:
        """What is archived goes: files first, then sessions, the longest unused first. They are not archived again."""
        files = await self._archives.oldest_first()
        taken_bytes = await self._store.used_bytes() + sum(file.size_bytes for file in files)
        for file in files:
            if taken_bytes <= high_water_bytes:
                return
            await self._archives.remove(file.path)
            taken_bytes -= file.size_bytes
        archived = Unused(self._clock.now(), self._bounds.spares_external, UnusedKind.ARCHIVED)
        while await self._store.used_bytes() > high_water_bytes:
            if not await self._remove(archived, limit=1, is_archived=False):
                if self._left:
                    logger.warning("more bytes than allowed, and nothing left to remove")
                return

    async def _taken_bytes(self) -> int:
        return await self._store.used_bytes() + sum(file.size_bytes for file in await self._archives.oldest_first())

    async def _remove(self, unused: Unused, *, limit: int, is_archived: bool) -> int:
        """Remove up to `limit` of these sessions, as far as the sweep may; how many were. `is_archived`: each gets a
        file first."""
        removed = 0
        while removed < limit and self._left:
            page = await self._store.unused_sessions(unused, min(limit - removed, self._left, PAGE_SESSIONS))
            gone = sum([await self._remove_one(session, unused, is_archived=is_archived) for session in page])
            removed += gone
            self._left -= gone
            if not gone:
                break
        if removed:
            logger.info("sessions removed", extra={"sessions": removed, "kind": unused.kind.value})
        return removed

    async def _remove_one(self, session: Session, unused: Unused, *, is_archived: bool) -> bool:
        """False when somebody uses it after all."""
        try:
            held = await self._locks.acquire(session.tenant, session.session_key, run_id="")
        except LanewayError:
            return False  # another process writes to it
        try:
            path = await self._write_archive(session) if is_archived and session.leaf_entry_id else None
            blobs = await self._store.drop_session(DropSession(session, unused))
            if blobs is None and path is not None:
                await self._archives.remove(path)
        finally:
            await self._locks.release(held)
        self._blobs.suspect(blobs or ())
        return blobs is not None

    async def _write_archive(self, session: Session) -> Path:
        lines = transcript_lines(self._store, session, self._workspace(session.agent_id))
        return await self._archives.write(
            session.tenant, session.session_key, session.session_id, lines, now=self._clock.now()
        )

    async def _warn(self) -> None:
        """Say what would be done."""
        bounds, now = self._bounds, self._clock.now()
        figures: dict[str, int] = {}
        if bounds.unused_for is not None:
            unused = Unused(now - bounds.unused_for, bounds.spares_external)
            figures["unused"] = len(await self._store.unused_sessions(unused, PAGE_SESSIONS))
        if bounds.max_sessions is not None:
            crowds = await self._store.crowded_tenants(bounds.max_sessions)
            figures["too_many"] = sum(crowd.sessions - bounds.max_sessions for crowd in crowds)
        if bounds.max_bytes is not None:
            figures["bytes_over"] = max(0, await self._taken_bytes() - bounds.max_bytes)
        if any(figures.values()):
            logger.warning("sessions are over their bounds", extra=figures)
