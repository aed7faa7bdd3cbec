"""What the rpc layer says to the run service and hears from it. Values only; the service is runs/registry.py (calls on
runs) and runs/followers.py (reading logs)."""

from dataclasses import dataclass, field
from enum import StrEnum

from lanewayd.messages import RunError
from lanewayd.records import Priority, Run


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file that comes with a message. `mime_type` is empty when nobody knows it."""

    name: str
    mime_type: str
    data: bytes
    blob_hash: str
    """SHA-256 of the content, hex."""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A checked `AgentRequest`: sizes, enums and durations are valid, nothing is resolved yet.

    Empty strings mean absent. `timeout_s`: None = the agent's default, 0 = no deadline.
    """

    tenant: str
    message: str
    request_hash: bytes
    """Hash over all fields of the request but the key, as sent."""
    hash_version: int
    idempotency_key: str = ""
    agent_id: str = ""
    session_key: str = ""
    session_id: str = ""
    model: str = ""
    timeout_s: float | None = None
    lane: str = ""
    priority: Priority = Priority.FOREGROUND
    queue_mode: str = ""
    channel: str = ""
    to: str = ""
    account_id: str = ""
    thread_id: str = ""
    extra_system_prompt: str = ""
    label: str = ""
    tools_allow: tuple[str, ...] = ()
    tools_deny: tuple[str, ...] = ()
    max_turns: int = 0
    thinking: str = ""
    """A ThinkingLevel."""
    max_output_tokens: int = 0
    temperature: float | None = None
    seed: int | None = None
    response_schema_json: str = ""
    parent_run_id: str = ""
    provenance_json: str = ""
    traceparent: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    attachments: tuple[NewAttachment, ...] = ()


class WaitOutcome(StrEnum):
    """How a wait came back. ENDED: the run's state says the rest."""

    ENDED = "ended"
    EXPIRED = "expired"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The run as it is now. `pending_error` is the last failure while a retry is coming (`error_pending`)."""

    outcome: WaitOutcome
    run: Run
    pending_error: RunError | None = None
    is_stalled: bool = False
    """The run is at work and does not get on."""


@dataclass(frozen=True, slots=True)
class AbortReceipt:
    """Ids by what became of the runs (D-20): `aborted` ran, `cancelled` were queued, `pending` still unwind."""

    aborted_run_ids: tuple[str, ...] = ()
    cancelled_run_ids: tuple[str, ...] = ()
    pending_run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """First item of a run subscription without a cursor."""

    run: Run
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Nothing happened for a while; `position` is where the reader stands (commit order)."""

    position: int


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One global lane now."""

    name: str
    width: int
    active: int
    queued: int
