"""What sessions need from the rest of the service; app gives it."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from lanewayd.records import Entry, Session, SessionFilter, SessionPatch


class SessionStore(Protocol):
    """The store, as far as sessions go."""

    async def session(self, tenant: str, session_key: str) -> Session | None: ...
    async def sessions(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> list[Session]: ...
    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]: ...
    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry | None: ...


class SessionWriter(Protocol):
    """Changes a session, under its write lock but for `update`; so the others also raise SESSION_ACTIVE, SESSION_BUSY.
    All raise SESSION_NOT_FOUND."""

    async def update(self, tenant: str, session_key: str, patch: SessionPatch) -> Session:
        """Runs of the session may be at work: what is set is no part of its transcript."""

    async def reset(self, tenant: str, session_key: str) -> Session: ...
    async def delete(self, tenant: str, session_key: str) -> None: ...

    async def fork(
        self, tenant: str, session_key: str, *, entry_id: str, new_session_key: str, label: str
    ) -> tuple[Session, int, bool]:
        """Write a new session, whatever runs in this one: that session, how many entries it got, whether it was there
        already. Empty `entry_id` = the newest; empty `new_session_key` = one of its own. Raises ENTRY_NOT_FOUND,
        AGENT_NOT_FOUND, FIELD_INVALID (`entry_id`, `new_session_key`), SESSION_KEY_MALFORMED, never SESSION_ACTIVE."""


class SessionModels(Protocol):
    """What a session may have set of models. Both raise AGENT_NOT_FOUND when the settings have the agent no more."""

    def settable_model(self, agent_id: str, reference: str) -> str:
        """`provider/model`, checked as that of a message. Raises MODEL_UNKNOWN, MODEL_NOT_CONFIGURED."""

    def check_settable_thinking(self, agent_id: str, model: str, level: str) -> None:
        """Raises FIELD_INVALID (`thinking`) for a level that the model does not have; `model` "" = the agent's."""


class SessionStopper(Protocol):
    """Ends all runs of a session."""

    async def stop(self, tenant: str, session_key: str, *, stop_reason: str) -> tuple[str, ...]:
        """The ids of the runs it ended; returns when none of them is at work."""


class Exporter(Protocol):
    """Writes a transcript in the exchange format."""

    def lines(self, session: Session) -> AsyncGenerator[str, None]:
        """JSON lines without their line end (spec 03, 7.2)."""


class Transcript(Protocol):
    """A transcript that was read and is not stored."""

    @property
    def session_key(self) -> str:
        """The key it had; empty = unknown."""

    @property
    def entries(self) -> Sequence[object]:
        """Oldest first."""


class Importer(Protocol):
    """Reads transcripts in the exchange format, and makes sessions of them. What `read` gave goes into `create`."""

    async def read(self, lines: AsyncIterator[str]) -> Any:
        """A Transcript. Raises FIELD_INVALID (`line`)."""

    async def create(self, tenant: str, session_key: str, transcript: Any) -> Session:
        """Raises FIELD_INVALID (`session_key`: it is taken), SESSION_KEY_MALFORMED, AGENT_NOT_FOUND."""
