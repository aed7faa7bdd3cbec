# ruff: noqa: PLC0414 - the commands are parts of this contract, kept in files of their own
"""The store's contract: what the service asks of a database, and what it can rely on.

Writes are commands. Each is one savepoint of a group that is committed and synced together: a command that is refused
leaves no trace and does not harm its neighbours; when a COMMIT fails, every command of the group raises
`StoreUnavailable` and none of it is stored. A write returns only after its group is durable. Before its awaiting
caller wakes, its result is given to the `CommitListener`, on the event loop's thread, in commit order.

Reads see committed data only. Rows of another tenant do not exist for a caller.
Unless said otherwise a missing row is `None`, and foreign database errors arrive as `StoreUnavailable`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from lanewayd.events import StoredEvent
from lanewayd.records import Entry, Run, RunState, Session, SessionFilter, ToolCallRow
from lanewayd.store.queue_commands import Injected as Injected
from lanewayd.store.queue_commands import Injection as Injection
from lanewayd.store.queue_commands import InjectMessages as InjectMessages
from lanewayd.store.queue_commands import Waiting as Waiting
from lanewayd.store.retention_commands import FindUnnamedBlobs as FindUnnamedBlobs
from lanewayd.store.retention_commands import Prune as Prune
from lanewayd.store.retention_commands import Pruned as Pruned
from lanewayd.store.run_commands import AbortRequested as AbortRequested
from lanewayd.store.run_commands import Accepted as Accepted
from lanewayd.store.run_commands import AcceptRun as AcceptRun
from lanewayd.store.run_commands import Appended as Appended
from lanewayd.store.run_commands import AppendToRun as AppendToRun
from lanewayd.store.run_commands import IdempotencyKey as IdempotencyKey
from lanewayd.store.run_commands import RequestAbort as RequestAbort
from lanewayd.store.run_commands import RunChange as RunChange
from lanewayd.store.run_commands import RunEnd as RunEnd
from lanewayd.store.run_commands import SessionSelector as SessionSelector
from lanewayd.store.run_commands import SettleRun as SettleRun
from lanewayd.store.run_commands import Started as Started
from lanewayd.store.run_commands import StartRun as StartRun
from lanewayd.store.session_commands import DeleteSession as DeleteSession
from lanewayd.store.session_commands import Forked as Forked
from lanewayd.store.session_commands import ForkSession as ForkSession
from lanewayd.store.session_commands import ImportSession as ImportSession
from lanewayd.store.session_commands import ResetSession as ResetSession
from lanewayd.store.session_commands import UpdateSession as UpdateSession
from lanewayd.store.session_upkeep_commands import ArchiveSurplus as ArchiveSurplus
from lanewayd.store.session_upkeep_commands import CrowdedTenant as CrowdedTenant
from lanewayd.store.session_upkeep_commands import DropPastTranscript as DropPastTranscript
from lanewayd.store.session_upkeep_commands import DropSession as DropSession
from lanewayd.store.session_upkeep_commands import Unused as Unused
from lanewayd.store.session_upkeep_commands import UnusedKind as UnusedKind
from lanewayd.store.text_commands import TextCommand as TextCommand


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; empty parts do not filter."""

    session_key: str = ""
    states: tuple[RunState, ...] = ()
    agent_id: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order, and where the log begins and ends at the moment of the read."""

    events: tuple[StoredEvent, ...]
    earliest: int
    """run: first_seq; session and all: the lowest position that is still complete."""
    latest: int
    """run: last_seq; session and all: the last committed position."""
    position: int = 0
    """The last committed position."""
    has_ended: bool = False
    """run: it has ended; nothing follows `latest`."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What GetStatus shows of the store."""

    path: str
    size_bytes: int
    commit_ms: float
    """Moving average of the time from the first command of a group to its durability."""
    sessions: int
    runs_by_state: dict[RunState, int] = field(default_factory=dict)


class Store(Protocol):
    """See the module. `store_id` is valid after `open`."""

    @property
    def store_id(self) -> str:
        """Identity of this database, made once; also the home's id."""

    async def accept(self, command: AcceptRun) -> Accepted:
        """Raises IDEMPOTENCY_KEY_REUSED, SESSION_NOT_FOUND, RUN_NOT_FOUND (parent), NESTED_IN_SESSION, QUEUE_FULL,
        FIELD_INVALID (depth, or an agent that does not own the session)."""

    async def start(self, command: StartRun) -> Started: ...
    async def append(self, command: AppendToRun) -> Appended: ...
    async def inject(self, command: InjectMessages) -> Injected: ...
    async def settle(self, command: SettleRun) -> Appended: ...
    async def request_abort(self, command: RequestAbort) -> AbortRequested: ...
    async def update_session(self, command: UpdateSession) -> Session: ...
    async def reset_session(self, command: ResetSession) -> Session: ...
    async def delete_session(self, command: DeleteSession) -> tuple[str, ...]:
        """The blobs that nobody names any more."""

    async def unnamed_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        """Those of `hashes` that no row names, after all that was given to write before."""

    async def import_session(self, command: ImportSession) -> Session: ...
    async def fork_session(self, command: ForkSession) -> Forked: ...
    async def prune(self, command: Prune) -> Pruned: ...
    async def drop_session(self, command: DropSession) -> tuple[str, ...] | None: ...
    async def drop_past_transcript(self, command: DropPastTranscript) -> tuple[str, ...] | None: ...
    async def archive_surplus(self, command: ArchiveSurplus) -> int: ...

    async def answer(self, tenant: str, key: IdempotencyKey, now: datetime) -> Accepted | None:
        """The stored answer of a known key, as a duplicate gets it. Raises IDEMPOTENCY_KEY_REUSED."""

    async def run(self, tenant: str, run_id: str) -> Run | None: ...
    async def runs(self, tenant: str, which: RunFilter, *, before_no: int | None, limit: int) -> list[Run]:
        """Newest first by `accepted_no`; only those below `before_no`."""

    async def waiting_behind(self, run: Run, limit: int) -> Waiting:
        """What may be collected with `run`, of its session."""

    async def unended_runs(self) -> list[Run]:
        """All runs of all tenants that have not ended, oldest first."""

    async def tool_calls(self, run_id: str) -> list[ToolCallRow]:
        """In request order."""

    async def session(self, tenant: str, session_key: str) -> Session | None: ...
    async def session_key_of(self, tenant: str, session_id: str) -> str | None:
        """The key that owns a session id."""

    async def sessions(
        self, tenant: str, which: SessionFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> list[Session]:
        """Newest interaction first, then by key; only those after `before` in that order."""

    async def context(self, session_id: str) -> list[Entry]:
        """The path from the root to the leaf that a model may see, oldest first: from the last reset entry on."""

    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]:
        """All entries of a session, oldest first, each with its number for paging. [] for an unknown session."""

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry | None: ...
    async def transcript(self, session_id: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]:
        """As `entries`, of a session id, also of one whose key has gone on."""

    async def unused_sessions(self, unused: Unused, limit: int) -> list[Session]:
        """The longest unused first, without the figures of their runs."""

    async def past_transcripts(self, limit: int) -> list[Session]:
        """Earlier session ids of keys, as sessions that were created when the id began; the first to end first."""

    async def crowded_tenants(self, max_sessions: int) -> list[CrowdedTenant]: ...
    async def used_bytes(self) -> int:
        """Of the database, without what it keeps free for later, and of the files of attachments."""

    async def run_events(self, tenant: str, run_id: str, *, after_seq: int, limit: int) -> EventPage | None:
        """None for an unknown run."""

    async def session_events(self, tenant: str, session_key: str, *, after: int, limit: int) -> EventPage: ...
    async def all_events(self, tenant: str, *, after: int, limit: int) -> EventPage: ...
    async def session_start_position(self, tenant: str, session_key: str) -> int:
        """The position before the first event of the oldest unended run of the session, else of its last run; 0 for a
        session without runs."""

    async def blobs_of(self, tenant: str, hashes: Collection[str]) -> frozenset[str]:
        """Those of `hashes` that a run or a forked session of the tenant names."""

    async def last_position(self) -> int: ...
    async def figures(self) -> StoreFigures: ...
    async def close(self) -> None:
        """Commit what was submitted, checkpoint, close. Idempotent."""
