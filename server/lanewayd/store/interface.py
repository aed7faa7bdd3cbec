# ruff: noqa: PLC0414 - the commands on sessions and queues are parts of this contract, kept in files of their own
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
from datetime import datetime, timedelta
from typing import Protocol

from lanewayd.errors import LanewayError
from lanewayd.events import NewEvent, StoredEvent
from lanewayd.messages import Payload, RunError, Usage
from lanewayd.records import (
    FOLLOW_UPS,
    Adapt,
    Entry,
    NewEntry,
    QueueRules,
    Run,
    RunRequest,
    RunState,
    Session,
    ToolCallRow,
)
from lanewayd.store.queue_commands import Injected as Injected
from lanewayd.store.queue_commands import Injection as Injection
from lanewayd.store.queue_commands import InjectMessages as InjectMessages
from lanewayd.store.queue_commands import Waiting as Waiting
from lanewayd.store.session_commands import DeleteSession as DeleteSession
from lanewayd.store.session_commands import ImportSession as ImportSession
from lanewayd.store.session_commands import ResetSession as ResetSession
from lanewayd.store.session_commands import UpdateSession as UpdateSession

# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionSelector:
    """Which session a message goes to. Exactly one of the first two is set, or both and they must agree."""

    session_key: str
    """Canonical key; empty when only `session_id` was given."""
    session_id: str
    """Asked for by the caller; empty = none."""
    agent_id: str
    label: str
    new_session_id: str
    """Used when the key has no session yet."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A caller's key with the hash of the request it stands for. `hash_version` names the way of hashing."""

    key: str
    request_hash: bytes
    hash_version: int
    kept_for: timedelta


@dataclass(frozen=True, slots=True)
class AcceptRun:
    """Make a message durable as a QUEUED run (D-1)."""

    tenant: str
    run_id: str
    session: SessionSelector
    request: RunRequest
    key: IdempotencyKey | None
    now: datetime
    max_depth: int
    queue: QueueRules = FOLLOW_UPS
    adapt: Adapt | None = None
    """Called by the writer for a run that is new. None: the request is the same for each session."""
    refusal: LanewayError | None = None
    """Set: no new run may come in, so only a duplicate is answered, everything else with this."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The stored answer. `run` is set when this command inserted it, and is None for a duplicate."""

    run_id: str
    accepted_at: datetime
    session_key: str
    session_id: str
    agent_id: str
    disposition: str
    queue_position: int
    duplicate: bool
    run: Run | None
    events: tuple[StoredEvent, ...] = ()
    interrupted_run_id: str = ""
    """The running run that this message has marked to be aborted."""
    dropped: tuple[Run, ...] = ()
    """Queued runs that the cap has ended, for this one."""


@dataclass(frozen=True, slots=True)
class StartRun:
    """Take a run for execution: QUEUED becomes RUNNING, or a RUNNING one left by another process is dispatched again.

    Raises RunNotStartable when the run has ended, was cancelled, or (for `recovered`) is not RUNNING any more, and
    when an abort is requested.
    """

    run_id: str
    now: datetime
    recovered: bool
    entries: tuple[NewEntry, ...] = ()
    """The user entry, at the first start."""
    events: tuple[NewEvent, ...] = ()
    collected: tuple[str, ...] = ()
    """Queued runs whose messages stand in the user entry: they become MERGED."""
    dropped_count: int | None = None
    """Dropped messages that the user entry tells of; None = it was not asked for. Another number raises
    CollectionChanged, as does one of `collected` that is not QUEUED any more."""


@dataclass(frozen=True, slots=True)
class Started:
    """The run as it is after the start, with its new claim, attempt and charges."""

    run: Run
    events: tuple[StoredEvent, ...]
    leaf_entry_id: str | None = None
    """Where the session's transcript ended before the start's own entries, "" = it was empty; None without entries."""
    session_usage: Usage | None = None
    """What the session's runs that have ended have used; None = not read."""
    merged: tuple[Run, ...] = ()
    """Those of `collected`."""
    fallback_model: str = ""
    """The model that took over in the session, as its watchers were last told; "" = none."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The result that a terminal event brings into the run's row."""

    state: RunState
    ended_at: datetime
    stop_reason: str
    error: RunError | None = None
    truncated: bool = False
    payloads: tuple[Payload, ...] = ()
    usage: Usage | None = None
    context_tokens: int | None = None
    """Context size of the last model call, kept in the session; None leaves it."""
    output_json: str = ""


@dataclass(frozen=True, slots=True)
class RunChange:
    """What a run does in one transaction: events with the state changes they report. Any part may be empty."""

    events: tuple[NewEvent, ...] = ()
    entries: tuple[NewEntry, ...] = ()
    tool_calls: tuple[ToolCallRow, ...] = ()
    """REQUESTED inserts a row; LAUNCHED and FINISHED update the row of (run, call_id)."""
    used_s: float | None = None
    """New value of the used budget; None leaves it."""
    open_message_id: str | None = None
    """New value; None leaves it, "" = no message is open."""
    got_on: bool = False
    """A final answer or a really executed tool result: the recovery charges go back to 0."""
    handed_over: bool = False
    void_usage: Usage | None = None
    """New value of `Run.void_usage`; None leaves it."""
    fallback_model: str | None = None
    """What watchers of the session are told of who answers; "" = the selected model again; None leaves it."""
    answered_by: str | None = None
    """New value; None leaves it."""
    end: RunEnd | None = None


@dataclass(frozen=True, slots=True)
class AppendToRun:
    """Append changes to a run's log, in order. Raises ClaimLost unless the row is RUNNING with this claim and its
    last_seq + 1 equals `first_seq`, IntakeNotEmpty when it would end well while messages wait to be taken in."""

    run_id: str
    claim: int
    first_seq: int
    changes: tuple[RunChange, ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """The events as stored, in order. `run` is the whole row when one of the changes ended the run, else None."""

    events: tuple[StoredEvent, ...]
    """Those of `settled` too."""
    run: Run | None
    settled: tuple[Run, ...] = ()
    """Messages that the run had taken in, and which ended with it."""
    detached: tuple[Run, ...] = ()
    """Messages that the run was to take in, and which are queued again."""


@dataclass(frozen=True, slots=True)
class SettleRun:
    """End a run that nobody executes (in recovery): raises the claim and appends `change`, whose `end` is set.

    Raises RunNotStartable when it has ended.
    """

    run_id: str
    change: RunChange


@dataclass(frozen=True, slots=True)
class RequestAbort:
    """Mark runs to be aborted (D-20). Queued ones end at once as CANCELLED, running ones get `abort_requested_at`.

    One of `run_id`, `session_key` is set. `clear_queued` applies to `session_key`. Raises RUN_NOT_FOUND for an unknown
    `run_id`; an unknown session is an empty receipt. A repeated request keeps the first mark.
    """

    tenant: str
    now: datetime
    stop_reason: str
    reason: str = ""
    run_id: str = ""
    session_key: str = ""
    clear_queued: bool = False


@dataclass(frozen=True, slots=True)
class AbortRequested:
    """`cancelled` have ended in this transaction (with their terminal events); `running` are still to be stopped."""

    cancelled: tuple[Run, ...]
    running: tuple[str, ...]
    events: tuple[StoredEvent, ...]


@dataclass(frozen=True, slots=True)
class Prune:
    """Apply retention; one bounded step. Of unended runs only events beyond `max_events_per_run` go, the oldest."""

    now: datetime
    events_max_age: timedelta
    max_events_per_run: int
    events_max_bytes: int
    runs_max_age: timedelta
    max_rows: int = 5000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a step removed. `is_done` = another step would find nothing now."""

    events: int
    runs: int
    keys: int
    is_done: bool
    run_ids: tuple[str, ...] = ()
    """Runs that lost events or their row."""
    blobs: tuple[str, ...] = ()
    """Files that nobody names any more."""


@dataclass(frozen=True, slots=True)
class FindUnnamedBlobs:
    """Asks which of `hashes` no row names; a command, so that it comes behind those given before."""

    hashes: tuple[str, ...]


# --- reads ----------------------------------------------------------------------------------------------------------


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
    async def prune(self, command: Prune) -> Pruned: ...

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

    async def sessions(self, tenant: str, *, before: tuple[datetime, str] | None, limit: int) -> list[Session]:
        """Newest interaction first, then by key; only those after `before` in that order."""

    async def context(self, session_id: str) -> list[Entry]:
        """The path from the root to the leaf that a model may see, oldest first: from the last reset entry on."""

    async def entries(self, tenant: str, session_key: str, *, after_no: int, limit: int) -> list[tuple[int, Entry]]:
        """All entries of a session, oldest first, each with its number for paging. [] for an unknown session."""

    async def entry(self, tenant: str, session_key: str, entry_id: str) -> Entry | None: ...
    async def run_events(self, tenant: str, run_id: str, *, after_seq: int, limit: int) -> EventPage | None:
        """None for an unknown run."""

    async def session_events(self, tenant: str, session_key: str, *, after: int, limit: int) -> EventPage: ...
    async def all_events(self, tenant: str, *, after: int, limit: int) -> EventPage: ...
    async def session_start_position(self, tenant: str, session_key: str) -> int:
        """The position before the first event of the oldest unended run of the session, else of its last run; 0 for a
        session without runs."""

    async def blobs_of(self, tenant: str, hashes: Collection[str]) -> frozenset[str]:
        """Those of `hashes` that a run of the tenant came with."""

    async def last_position(self) -> int: ...
    async def figures(self) -> StoreFigures: ...
    async def close(self) -> None:
        """Commit what was submitted, checkpoint, close. Idempotent."""
