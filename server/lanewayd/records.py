"""What the store keeps: runs, sessions, transcript entries and tool-call rows. Pure values."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum

from lanewayd.messages import Attachment, Payload, RunError, ToolOutcome, Usage


class RunState(StrEnum):
    """The states of the contract."""

    QUEUED = "queued"
    RUNNING = "running"
    MERGED = "merged"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"

    @property
    def is_ended(self) -> bool:
        return self not in (RunState.QUEUED, RunState.RUNNING, RunState.MERGED)


ALLOWED_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELLED, RunState.MERGED}),
    RunState.RUNNING: frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}),
    RunState.MERGED: frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}),
}
"""The only ways from state to state; an ended run goes nowhere. The store checks each change of a row against it."""


def check_transition(before: RunState, after: RunState) -> None:
    """Raises ValueError unless a run may go from `before` to `after` in one step."""
    if after not in ALLOWED_TRANSITIONS.get(before, frozenset()):
        raise ValueError(f"a run cannot go from {before.value} to {after.value}")


class Disposition(StrEnum):
    """What accepting a message did to it."""

    STARTED = "started"
    QUEUED = "queued"
    STEERED = "steered"
    COLLECTED = "collected"
    INTERRUPTED_PREVIOUS = "interrupted_previous"
    COMPLETED = "completed"


class QueueMode(StrEnum):
    """What a message does to a session that is at work (D-7)."""

    STEER = "steer"
    FOLLOWUP = "followup"
    COLLECT = "collect"
    INTERRUPT = "interrupt"


DEFAULT_AGENT = "main"
AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""An agent id in its canonical form, the one that session keys hold."""

MAIN_LANE = "main"
"""Where runs without a parent and without a wish run."""


class DropPolicy(StrEnum):
    """Which message goes when more wait to be collected than the cap allows. SUMMARIZE: the oldest, and the next turn
    is told in a line what it said."""

    OLD = "old"
    NEW = "new"
    SUMMARIZE = "summarize"


LONGEST_DEBOUNCE_MS = 3_600_000
LARGEST_QUEUE_CAP = 1000
"""What may be chosen of the queue."""


class Priority(IntEnum):
    """Orders sessions, never the messages of one session."""

    BACKGROUND = -1
    NORMAL = 0
    FOREGROUND = 1


class ToolCallState(StrEnum):
    """The life of a tool call (D-2). Started means LAUNCHED."""

    REQUESTED = "requested"
    LAUNCHED = "launched"
    FINISHED = "finished"


class EntryKind(StrEnum):
    """What an entry of a transcript holds; transcript/entries.py knows the bodies."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The part of a run that the caller gave and that does not change."""

    message: str
    agent_id: str
    lane: str
    priority: Priority
    model: str
    timeout_s: float
    """The run's budget of RUNNING time; 0 = none."""
    extra_system_prompt: str = ""
    label: str = ""
    tools_allow: tuple[str, ...] = ()
    tools_deny: tuple[str, ...] = ()
    max_turns: int = 0
    """Model calls at most; 0 = no limit."""
    parent_run_id: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    queue_mode: str = ""
    """A QueueMode: as asked for, "" = not said; of a stored run the one that held."""
    channel: str = ""
    to: str = ""
    account_id: str = ""
    thread_id: str = ""
    provenance_json: str = ""
    traceparent: str = ""
    model_source: str = ""
    """Who named the model (models.resolve.ModelSource): it says whether others may take over."""
    thinking: str = ""
    """A ThinkingLevel; "" = what the session, the agent or the model has for it."""
    max_output_tokens: int = 0
    """Of each model call; 0 = the model's."""
    temperature: float | None = None
    seed: int | None = None
    attachments: tuple[Attachment, ...] = ()
    """Files that came with the message."""
    response_schema_json: str = ""
    """JSON Schema that the answer must fit; "" = none."""
    reasoning: str = ""
    """The ReasoningVisibility of the session, else of the agent: whether the result has the model's reasoning too."""
    trace: bool = False
    """Lines about what is decided for the run go into its log."""
    quiet_s: float = 0.0
    """Of a stored run that is collected: it waits until none has come for so long."""
    begins_anew: bool = False
    """The session is reset where the run starts: the model sees nothing of what came before."""

    @property
    def result_has_reasoning(self) -> bool:
        """Source: spec 08, 2.1; not with thinking switched off (R-8.9)."""
        return self.reasoning == "on" and self.thinking != "off"


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """What somebody has chosen of the queue; what is empty is left to others."""

    mode: str = ""
    """A QueueMode."""
    debounce_ms: int | None = None
    cap: int | None = None
    drop: str = ""
    """A DropPolicy."""


NO_CHOICE = QueueChoice()


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What holds for a message where neither the request nor its session says so (D-7)."""

    mode: QueueMode = QueueMode.FOLLOWUP
    cap: int = 20
    """Messages of a session that wait to be collected, at most."""
    drop: DropPolicy = DropPolicy.SUMMARIZE
    quiet_s: float = 0.5
    """Messages are collected until none has come for so long."""
    can_join: Callable[[RunRequest, RunRequest], bool] = lambda _host, _message: False
    """Whether a run at work can take a message in: its request, that of the message. Pure."""

    def chosen(self, choice: QueueChoice) -> "QueueRules":
        """These rules, where the choice says nothing else."""
        return replace(
            self,
            mode=QueueMode(choice.mode) if choice.mode else self.mode,
            cap=self.cap if choice.cap is None else choice.cap,
            drop=DropPolicy(choice.drop) if choice.drop else self.drop,
            quiet_s=self.quiet_s if choice.debounce_ms is None else choice.debounce_ms / 1000,
        )


FOLLOW_UPS = QueueRules()


@dataclass(frozen=True, slots=True)
class Run:
    """One run's row. Changed by store commands only, which the run registry and the run's log give."""

    run_id: str
    accepted_no: int
    """Order of acceptance over all runs, given by the store's writer."""
    tenant: str
    session_key: str
    session_id: str
    request: RunRequest
    state: RunState
    disposition: Disposition
    queue_position: int
    """Queued runs of the session ahead: at acceptance in what a command returns, now in what is read."""
    accepted_at: datetime
    depth: int = 0
    """0 for a run without parent, else the parent's depth + 1."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    claim: int = 0
    """Raised at each start; a write with another claim is refused."""
    attempt: int = 0
    """Dispatches so far."""
    charges: int = 0
    """Recovery attempts charged since the run last got on (D-2)."""
    handed_over: bool = False
    """Parked or cut by a drain: its next dispatch is not charged."""
    used_s: float = 0.0
    """Budget used, as of the last entry."""
    open_message_id: str = ""
    """The assistant message whose deltas are stored but whose end is not."""
    abort_requested_at: datetime | None = None
    abort_stop_reason: str = ""
    abort_reason: str = ""
    host_run_id: str = ""
    intake_open: bool = False
    first_seq: int = 1
    last_seq: int = 0
    event_bytes: int = 0
    pruned_position: int = 0
    error: RunError | None = None
    stop_reason: str = ""
    truncated: bool = False
    payloads: tuple[Payload, ...] = ()
    answered_by: str = ""
    """`provider/model` of the last message, when it is not the selected model's."""
    usage: Usage | None = None
    output_json: str = ""
    """The answer as an object, if the request has a schema."""
    corrections: int = 0
    """How often its answer did not fit the schema and was asked for again."""
    void_usage: Usage = field(default_factory=Usage)
    """What calls used that left no entry: they failed and were tried again."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What UpdateSession has set for a session; "" or None = not set: the agent's setting holds."""

    model: str = ""
    """As `provider/model`."""
    thinking: str = ""
    """A ThinkingLevel."""
    verbose: str = ""
    """A Verbosity."""
    reasoning: str = ""
    """A ReasoningVisibility."""
    trace: bool | None = None
    queue_mode: str = ""
    queue_debounce_ms: int | None = None
    queue_cap: int | None = None
    queue_drop: str = ""
    """A DropPolicy."""

    @property
    def queue(self) -> QueueChoice:
        """What the session has chosen of the queue."""
        return QueueChoice(self.queue_mode, self.queue_debounce_ms, self.queue_cap, self.queue_drop)


Adapt = Callable[[RunRequest, SessionSettings], RunRequest]
"""What a request is for a session with these settings. Pure; what it raises refuses the message."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session's row, with the figures the contract shows beside it."""

    tenant: str
    session_key: str
    session_id: str
    agent_id: str
    created_at: datetime
    last_interaction_at: datetime
    label: str = ""
    leaf_entry_id: str = ""
    active_run_id: str = ""
    queued_runs: int = 0
    last_run_id: str = ""
    last_state: RunState | None = None
    usage: Usage = field(default_factory=Usage)
    context_tokens: int = 0
    settings: SessionSettings = field(default_factory=SessionSettings)
    pinned: bool = False
    archived: bool = False
    parent_session_key: str = ""
    """That it was forked from; "" = none."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions a list shows; None does not filter."""

    archived: bool | None = None
    pinned: bool | None = None


@dataclass(frozen=True, slots=True)
class SessionPatch:
    """What one update changes: the fields of Session and SessionSettings that `paths` names get the values that stand
    here, the others stay as they are."""

    paths: frozenset[str]
    settings: SessionSettings = field(default_factory=SessionSettings)
    label: str = ""
    pinned: bool = False
    archived: bool = False

    def sets(self, setting: str) -> bool:
        """Whether the field of SessionSettings gets a value, and is not cleared or left."""
        return setting in self.paths and getattr(self.settings, setting) not in ("", None)

    def applied_to(self, session: Session) -> Session:
        """The session after the update."""
        new = self.settings
        settings = {path: getattr(new, path) for path in self.paths if hasattr(new, path)}
        marks = {path: getattr(self, path) for path in self.paths if path not in settings}
        return replace(session, settings=replace(session.settings, **settings), **marks)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a transcript. `body_json` is built and read by transcript/entries.py only."""

    entry_id: str
    parent_entry_id: str
    session_id: str
    run_id: str
    time: datetime
    kind: EntryKind
    body_json: str


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to append; the store gives it the session's leaf as parent and makes it the leaf."""

    entry_id: str
    time: datetime
    kind: EntryKind
    body_json: str


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """One tool call of a run, in request order by (`entry_id`'s order, `call_index`)."""

    run_id: str
    call_id: str
    entry_id: str
    """The assistant entry that asks for it."""
    call_index: int
    name: str
    arguments_json: str
    state: ToolCallState
    result_text: str = ""
    is_error: bool = False
    outcome: ToolOutcome | None = None
