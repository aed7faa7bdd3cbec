"""What the handlers need from the service, as protocols; `app` gives the objects.

Every method may also raise `StoreUnavailable`. Session keys are passed as the caller sent them: the service brings
them into canonical form, and refuses what has none with SESSION_KEY_MALFORMED.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from lanewayd.audit_records import AuditFilter, AuditRecord
from lanewayd.events import StoredEvent
from lanewayd.records import Entry, Run, RunState, Session, SessionFilter, SessionPatch
from lanewayd.runs.interface import AbortReceipt, LaneStatus, NewMessage, Progress, Snapshot, WaitResult
from lanewayd.runs.looks import Look


class AcceptedMessage(Protocol):
    """The durable answer to a message; for a duplicate that of the first call."""

    @property
    def run_id(self) -> str: ...
    @property
    def accepted_at(self) -> datetime: ...
    @property
    def session_key(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def disposition(self) -> str: ...
    @property
    def queue_position(self) -> int: ...
    @property
    def duplicate(self) -> bool: ...
    @property
    def reply(self) -> str: ...


class Runs(Protocol):
    """Calls on runs. A cancelled `accept` has no effect on what becomes of the message."""

    async def accept(self, message: NewMessage) -> AcceptedMessage: ...

    async def run(self, tenant: str, run_id: str) -> Run:
        """The run as it stands now, `queue_position` too. Raises RUN_NOT_FOUND."""

    async def runs(  # noqa: PLR0913 - the filters of ListRuns
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
        """Those accepted last first, below `before_no`. Empty parts do not filter."""

    async def wait(self, tenant: str, run_id: str, timeout_s: float) -> WaitResult: ...

    async def abort_run(self, tenant: str, run_id: str, *, stop_reason: str, reason: str) -> AbortReceipt: ...

    async def abort_session(
        self, tenant: str, session_key: str, *, clear_queued: bool, stop_reason: str, reason: str
    ) -> AbortReceipt: ...


class Logs(Protocol):
    """Reading of logs by cursor, without end but for runs. When the server leaves, LanewayError(DRAINING) is raised
    after what is stored was delivered.

    An error may carry in its metadata `position` (where the reader stands), `earliest_position` (the oldest one that
    can be read on from) and `latest_position`: the handler turns the first two into `cursor` and `earliest_cursor`.
    """

    @property
    def store_id(self) -> str: ...

    def follow_run(
        self, tenant: str, run_id: str, after_seq: int | None
    ) -> AsyncIterator[StoredEvent | Snapshot | Progress]:
        """Ends after the terminal event. Raises RUN_NOT_FOUND, CURSOR_PRUNED, CURSOR_AHEAD."""

    def follow_session(
        self, tenant: str, session_key: str, position: int | None
    ) -> AsyncIterator[StoredEvent | Progress]: ...

    def follow_all(self, tenant: str, position: int | None) -> AsyncIterator[StoredEvent | Progress]: ...


class Looks(Protocol):
    """How a session's log is shown to readers who do not say it."""

    async def of(self, tenant: str, session_key: str) -> Look:
        """By its canonical key; a session that is not there looks as its agent says."""


class Sessions(Protocol):
    """Calls on sessions. All but `list` raise SESSION_NOT_FOUND."""

    async def get(self, tenant: str, session_key: str) -> Session: ...

    async def list(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Session]: ...

    async def update(self, tenant: str, session_key: str, patch: SessionPatch) -> Session:
        """The session after it. Raises AGENT_NOT_FOUND, MODEL_UNKNOWN, MODEL_NOT_CONFIGURED, FIELD_INVALID."""

    async def reset(self, tenant: str, session_key: str, *, force: bool) -> tuple[Session, tuple[str, ...]]:
        """Answers with the ids of the runs it aborted. Raises SESSION_ACTIVE."""

    async def delete(self, tenant: str, session_key: str, *, force: bool) -> tuple[str, ...]:
        """Answers with the ids of the runs it aborted. Raises SESSION_ACTIVE."""

    async def entries(
        self, tenant: str, session_key: str, *, after_no: int, limit: int
    ) -> Sequence[tuple[int, Entry]]: ...

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry:
        """Raises ENTRY_NOT_FOUND."""

    async def fork(
        self, tenant: str, session_key: str, *, entry_id: str, new_session_key: str, label: str
    ) -> tuple[Session, int, bool]:
        """The new session, how many entries it got, whether an earlier call has made it. Empty parts: the newest entry,
        a key of the server's. Raises ENTRY_NOT_FOUND, AGENT_NOT_FOUND, FIELD_INVALID (`entry_id`, `new_session_key`).
        """

    def export(self, tenant: str, session_key: str) -> AsyncIterator[str]:
        """One JSON object each, without line end; the header first."""

    async def import_session(self, tenant: str, session_key: str, lines: AsyncIterator[str]) -> tuple[Session, int]:
        """The new session and how many entries it has; all of it or nothing. Raises FIELD_INVALID (`line`,
        `session_key`), SESSION_KEY_MALFORMED, AGENT_NOT_FOUND instead of SESSION_NOT_FOUND."""


class ServiceStatus(Protocol):
    """The service as it stands."""

    @property
    def version(self) -> str: ...
    @property
    def features(self) -> Sequence[str]: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def draining(self) -> bool: ...
    @property
    def lanes(self) -> Sequence[LaneStatus]: ...
    @property
    def runs_by_state(self) -> Mapping[RunState, int]: ...
    @property
    def sessions(self) -> int: ...
    @property
    def subscribers(self) -> int: ...
    @property
    def store_path(self) -> str: ...
    @property
    def store_bytes(self) -> int: ...
    @property
    def commit_ms(self) -> float: ...


class AgentListing(Protocol):
    """A configured agent."""

    @property
    def agent_id(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def tools(self) -> Sequence[str]: ...


class ModelListing(Protocol):
    """A known model. `context_window` 0 = unknown."""

    @property
    def model(self) -> str: ...
    @property
    def api(self) -> str: ...
    @property
    def context_window(self) -> int: ...
    @property
    def available(self) -> bool: ...


class ToolListing(Protocol):
    """A tool that agents can use."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...
    @property
    def source(self) -> str: ...


class AuditRecords(Protocol):
    """The audit ledger."""

    async def records(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        """Newest first, below `before_no`; fewer than `limit`: there are no more."""


class Admin(Protocol):
    """The service as a whole."""

    async def status(self) -> ServiceStatus: ...

    def drain(self) -> None:
        """Begin to leave; returns at once. Repeated calls change nothing."""

    def agents(self) -> Sequence[AgentListing]: ...
    def models(self) -> Sequence[ModelListing]: ...
    def tools(self) -> Sequence[ToolListing]: ...
