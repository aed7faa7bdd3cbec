"""The commands on runs, from their acceptance to their end; a part of store/interface.py. Pure values."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lanewayd.errors import LanewayError
from lanewayd.events import NewEvent, StoredEvent
from lanewayd.messages import Payload, RunError, Usage
from lanewayd.records import (
    FOLLOW_UPS,
    NO_CHOICE,
    Adapt,
    NewEntry,
    QueueChoice,
    QueueRules,
    Run,
    RunRequest,
    RunState,
    ToolCallRow,
)
from lanewayd.store.text_commands import TextCommand


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
    is_stale: Callable[[datetime, datetime], bool] | None = None
    """Called by the writer with the times at which the session began and its last user spoke: whether this message
    begins a new one under its key. Pure. None: it never does."""
    is_interaction: bool = True
    """A user speaks: it keeps the session fresh."""
    said_queue: QueueChoice = NO_CHOICE
    """What the text of the message says of the queue, for itself."""
    forgets_queue: bool = False
    """What the session has chosen of the queue does not count for the message."""
    text_command: TextCommand | None = None
    """Set: the message is answered without a run, whose id and request are then not used."""
    refusal: LanewayError | None = None
    """Set: no new run may come in, so only a duplicate is answered, everything else with this."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The stored answer. `run` is set when this command inserted it, and is None for a duplicate and for a message that
    is answered without a run: its `run_id` is empty."""

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
    reply: str = ""
    """What answers a message without a run."""
    stopped: "AbortRequested | None" = None
    """What such a message has stopped."""


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
    """Where the session's transcript ended before the start's own entries, "" = it was empty, or is reset by them; None
    without entries."""
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
    corrections: int | None = None
    """New value of `Run.corrections`; None leaves it."""
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
