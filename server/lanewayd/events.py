"""The events of a run's log, as the service thinks of them; rpc/event_codec.py gives them their wire form.

Each payload class is one arm of the contract's `Event`. An event gets its number from its run's only writer.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lanewayd.messages import Payload, RunError, ToolOutcome, Usage


class EventKind(StrEnum):
    """The arm of an event, as stored and filtered."""

    LIFECYCLE = "lifecycle"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    MESSAGE = "message"
    TOOL = "tool"
    QUEUE = "queue"
    DIAGNOSTIC = "diagnostic"


class LifecyclePhase(StrEnum):
    """END and ERROR are terminal: the log holds exactly one of them, last."""

    START = "start"
    RETRY = "retry"
    FALLBACK = "fallback"
    FALLBACK_CLEARED = "fallback_cleared"
    RECOVERED = "recovered"
    END = "end"
    ERROR = "error"


class ToolPhase(StrEnum):
    """RESULT ends a call."""

    START = "start"
    UPDATE = "update"
    RESULT = "result"


class QueuePhase(StrEnum):
    """What happened to a message that had to wait."""

    QUEUED = "queued"
    STARTED = "started"
    STEERED = "steered"
    INJECTED = "injected"
    COLLECTED = "collected"
    DETACHED = "detached"
    DROPPED = "dropped"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The run's state changed. `state` is the RunState value after it."""

    phase: LifecyclePhase
    state: str
    cancelled: bool = False
    stop_reason: str = ""
    error: RunError | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    usage: Usage | None = None
    attempt: int = 0
    delay_s: float | None = None
    void_message_id: str = ""
    provider: str = ""
    model: str = ""

    @property
    def is_terminal(self) -> bool:
        return self.phase in (LifecyclePhase.END, LifecyclePhase.ERROR)


@dataclass(frozen=True, slots=True)
class AssistantDelta:
    """More visible text. `offset` counts UTF-8 bytes of this content block before `delta`."""

    message_id: str
    content_index: int
    offset: int
    delta: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning text; fields as AssistantDelta."""

    message_id: str
    content_index: int
    offset: int
    delta: str


@dataclass(frozen=True, slots=True)
class MessageEnded:
    """A message is complete and stands in the transcript as `entry_id`. `role` is user or assistant."""

    message_id: str
    role: str
    entry_id: str
    text: str
    truncated: bool = False
    total_bytes: int = 0
    stop_reason: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """One step of a tool call. `result` is set in UPDATE (text so far) and RESULT."""

    phase: ToolPhase
    call_id: str
    name: str
    arguments_json: str = ""
    result: Payload | None = None
    is_error: bool = False
    outcome: ToolOutcome | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A waiting message's fate. `position` = queued runs of the session ahead."""

    phase: QueuePhase
    host_run_id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class SessionDiagnosis:
    """How a session does that has been silent, or what recovery does with it; see diagnostics.liveness."""

    event: str
    reason: str
    classification: str
    state: str
    age_s: float
    progress_age_s: float
    progress_reason: str
    queue_depth: int
    work: str
    tool_name: str = ""
    call_id: str = ""
    tool_age_s: float = 0.0
    action: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A line of a part of the service or an extension about its own work, for sessions with `trace`; of liveness, with
    `diagnosis`, for all."""

    source: str
    text: str
    diagnosis: SessionDiagnosis | None = None


EventPayload = Lifecycle | AssistantDelta | ReasoningDelta | MessageEnded | ToolProgress | QueueChange | Diagnostic

_KINDS: dict[type, EventKind] = {
    Lifecycle: EventKind.LIFECYCLE,
    AssistantDelta: EventKind.ASSISTANT,
    ReasoningDelta: EventKind.REASONING,
    MessageEnded: EventKind.MESSAGE,
    ToolProgress: EventKind.TOOL,
    QueueChange: EventKind.QUEUE,
    Diagnostic: EventKind.DIAGNOSTIC,
}


def kind_of(payload: EventPayload) -> EventKind:
    """The arm `payload` travels in."""
    return _KINDS[type(payload)]


def is_terminal(payload: EventPayload) -> bool:
    """Whether `payload` ends its run's log."""
    return isinstance(payload, Lifecycle) and payload.is_terminal


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event its writer has not numbered yet."""

    time: datetime
    payload: EventPayload


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as stored: `encoded` is the wire form with its cursor, the same bytes for every reader.

    `position` orders events of all runs by commit; `seq` orders those of one run, from 1 without gaps.
    """

    position: int
    run_id: str
    session_key: str
    tenant: str
    seq: int
    kind: EventKind
    is_last: bool
    encoded: bytes
