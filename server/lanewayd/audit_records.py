"""What the audit ledger keeps, a part of the vocabulary beside `records`. Pure values; see spec 03, 10."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AuditKind(StrEnum):
    """The families of audit records."""

    RUN = "run"
    TOOL = "tool"
    MESSAGE = "message"


class AuditDirection(StrEnum):
    """Of messages: from a caller, or to one."""

    INBOUND = "inbound"
    OUTBOUND = "outbound"


class AuditAction(StrEnum):
    """What is recorded (R-3.74). Outbound messages come with deliveries."""

    RUN_STARTED = "run_started"
    RUN_FINISHED = "run_finished"
    TOOL_STARTED = "tool_started"
    TOOL_FINISHED = "tool_finished"
    MESSAGE_INBOUND_PROCESSED = "message_inbound_processed"

    @property
    def kind(self) -> AuditKind:
        return AuditKind(self.value.partition("_")[0])

    @property
    def direction(self) -> AuditDirection | None:
        """None: it is no message."""
        return AuditDirection(self.value.split("_")[1]) if self.kind is AuditKind.MESSAGE else None


class AuditStatus(StrEnum):
    """How it went, as of the record (R-3.77). BLOCKED: a policy kept it from being done. OBSERVED: it was seen, without
    an effect of its own."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    OBSERVED = "observed"


class AuditActor(StrEnum):
    """Who did it: a client's call, the agent in its run, or the service by its own rules."""

    CALLER = "caller"
    AGENT = "agent"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What was done, when, in what and with what result; never what was said (R-3.76, R-3.78). Empty = not known, or
    not of this action. Made by audit/activity.py only."""

    tenant: str
    event_id: str
    """The same for the same act."""
    at: datetime
    actor: AuditActor
    action: AuditAction
    status: AuditStatus
    code: str = ""
    """Why it did not succeed: a reason of the contract or a word of ours."""
    source_seq: int = 0
    """Its event in the run's log; 0 = there is none."""
    agent_id: str = ""
    session_key: str = ""
    session_id: str = ""
    run_id: str = ""
    tool_name: str = ""
    tool_call: str = ""
    """A fingerprint of the call's id, which a model chose."""
    channel: str = ""
    account: str = ""
    conversation: str = ""
    thread: str = ""
    """These three are pseudonyms."""
    schema_version: int = 1
    ledger_no: int = 0
    """Rising in each tenant, given by the store."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which records a list shows; empty parts do not filter."""

    after: datetime
    """These two are inclusive."""
    before: datetime | None = None
    agent_id: str = ""
    session_key: str = ""
    run_id: str = ""
    channel: str = ""
    status: AuditStatus | None = None
    actions: tuple[AuditAction, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Records, newest first. `next_no`: the ledger goes on below this number; 0 = there is no more."""

    records: tuple[AuditRecord, ...]
    next_no: int
