"""Sessions as callers see them: look up, list, update, reset, delete, read, export, import (D-21)."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import datetime

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.records import Entry, Session, SessionFilter, SessionPatch
from lanewayd.sessions.interface import (
    Exporter,
    Importer,
    SessionModels,
    SessionStopper,
    SessionStore,
    SessionWriter,
    Transcript,
)
from lanewayd.sessions.keys import agent_of, canonical_key

NumberedEntries = list[tuple[int, Entry]]


class Sessions:
    """The session service. Keys are taken as the caller wrote them."""

    def __init__(
        self,
        *,
        store: SessionStore,
        writer: SessionWriter,
        stopper: SessionStopper,
        exporter: Exporter,
        importer: Importer,
        models: SessionModels,
    ) -> None:
        self._store = store
        self._writer = writer
        self._stopper = stopper
        self._exporter = exporter
        self._importer = importer
        self._models = models

    async def get(self, tenant: str, session_key: str) -> Session:
        """The session. Raises SESSION_NOT_FOUND, SESSION_KEY_MALFORMED."""
        key = canonical_key(session_key)
        session = await self._store.session(tenant, key)
        if session is None:
            raise LanewayError(ErrorCode.SESSION_NOT_FOUND, f"there is no session {key}")
        return session

    async def list(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> list[Session]:
        """Newest interaction first; only those after `before` in that order."""
        return await self._store.sessions(tenant, which, before=before, limit=limit)

    async def update(self, tenant: str, session_key: str, patch: SessionPatch) -> Session:
        """Set what `patch` names; the session after it.

        Raises SESSION_NOT_FOUND, SESSION_KEY_MALFORMED, AGENT_NOT_FOUND, MODEL_UNKNOWN, MODEL_NOT_CONFIGURED,
        FIELD_INVALID (`thinking`).
        """
        session = await self.get(tenant, session_key)
        return await self._writer.update(tenant, session.session_key, self._checked(session, patch))

    def _checked(self, session: Session, patch: SessionPatch) -> SessionPatch:
        """The patch with its model in canonical form. A level is checked for the model that the session then has; one
        that was set before is not: where it does not fit, a run takes the nearest (R-4.21, R-4.22)."""
        if patch.sets("model"):
            model = self._models.settable_model(session.agent_id, patch.settings.model)
            patch = replace(patch, settings=replace(patch.settings, model=model))
        if patch.sets("thinking"):
            after = patch.applied_to(session).settings
            self._models.check_settable_thinking(session.agent_id, after.model, after.thinking)
        return patch

    async def reset(self, tenant: str, session_key: str, *, force: bool) -> tuple[Session, tuple[str, ...]]:
        """Begin a fresh window under the same id; what was said before stays readable.

        With `force` its runs are aborted first, else they are SESSION_ACTIVE. Returns the session and the ids of the
        runs that were aborted.
        """
        session = await self.get(tenant, session_key)
        stopped: tuple[str, ...] = ()
        while True:
            if force:
                stopped += await self._stopper.stop(tenant, session.session_key, stop_reason="reset")
            try:
                return await self._writer.reset(tenant, session.session_key), stopped
            except LanewayError as error:
                if not force or error.code is not ErrorCode.SESSION_ACTIVE:
                    raise  # with force: a message came in between; it is stopped too

    async def delete(self, tenant: str, session_key: str, *, force: bool) -> tuple[str, ...]:
        """Remove the session and what it holds. `force` and the answer as for `reset`.

        When another call removes it meanwhile, the runs that this one has ended are answered all the same.
        """
        session = await self.get(tenant, session_key)
        stopped: tuple[str, ...] = ()
        while True:
            if force:
                stopped += await self._stopper.stop(tenant, session.session_key, stop_reason="deleted")
            try:
                await self._writer.delete(tenant, session.session_key)
            except LanewayError as error:
                if error.code is ErrorCode.SESSION_NOT_FOUND and stopped:
                    return stopped
                if not force or error.code is not ErrorCode.SESSION_ACTIVE:
                    raise
            else:
                return stopped

    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> NumberedEntries:
        """Oldest first, each with its number for paging. Raises SESSION_NOT_FOUND."""
        session = await self.get(tenant, session_key)
        return await self._store.entries(tenant, session.session_key, after_no=after_no, limit=limit)

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry:
        """Raises SESSION_NOT_FOUND, ENTRY_NOT_FOUND."""
        session = await self.get(tenant, session_key)
        entry = await self._store.entry(tenant, session.session_key, entry_id)
        if entry is None:
            raise LanewayError(ErrorCode.ENTRY_NOT_FOUND, "the session has no such entry")
        return entry

    async def fork(
        self, tenant: str, session_key: str, *, entry_id: str, new_session_key: str, label: str
    ) -> tuple[Session, int, bool]:
        """A new session that goes on from an entry of this one; see SessionWriter."""
        key = canonical_key(session_key)
        new_key = _key_beside(key, new_session_key) if new_session_key else ""
        return await self._writer.fork(tenant, key, entry_id=entry_id, new_session_key=new_key, label=label)

    async def export(self, tenant: str, session_key: str) -> AsyncGenerator[str, None]:
        """One JSON line after the other: a header, then the entries, oldest first. Raises SESSION_NOT_FOUND."""
        session = await self.get(tenant, session_key)
        async for line in self._exporter.lines(session):
            yield line

    async def import_session(self, tenant: str, session_key: str, lines: AsyncIterator[str]) -> tuple[Session, int]:
        """Make a session of the lines of an export, all of it or nothing; the session and how many entries it has.

        Without `session_key` it gets the key of the header. Raises FIELD_INVALID (`line`: one is bad; `session_key`:
        there is none, or it is taken), SESSION_KEY_MALFORMED, AGENT_NOT_FOUND.
        """
        if session_key:
            await self._check_free(tenant, canonical_key(session_key))  # before a long file is read in vain
        transcript: Transcript = await self._importer.read(lines)
        named = session_key or transcript.session_key
        if not named:
            raise FieldError(ErrorCode.FIELD_INVALID, "session_key", "the header names no session key; give one")
        await self._check_free(tenant, canonical_key(named))  # before the lock: a run of the session may hold it
        session = await self._importer.create(tenant, canonical_key(named), transcript)
        return session, len(transcript.entries)

    async def _check_free(self, tenant: str, key: str) -> None:
        if await self._store.session(tenant, key) is not None:
            raise FieldError(
                ErrorCode.FIELD_INVALID,
                "session_key",
                f"there is a session {key}; import under another key, or delete it first",
            )


def _key_beside(key: str, new_session_key: str) -> str:
    """The canonical form of `new_session_key` among the sessions of the agent of `key`. Raises FieldError."""
    try:
        return canonical_key(new_session_key, agent_of(key))
    except FieldError as error:
        raise FieldError(error.code, "new_session_key", error.message) from None
