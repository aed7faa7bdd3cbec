"""What runs do, as audit records: who, what, when, with what result. Pure; it sees texts and takes none of them.

A record holds ids, names that the settings or the service gave, closed words, and pseudonyms. What callers and models
write is in none: prompts, answers, arguments, results, file names, addresses, texts of errors (R-3.78).
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lanewayd.audit_records import AuditAction, AuditActor, AuditRecord, AuditStatus
from lanewayd.events import NewEvent, ToolPhase, ToolProgress
from lanewayd.messages import ToolOutcome
from lanewayd.records import Run, RunRequest, RunState

_RUN_STATUS = {
    RunState.SUCCEEDED: AuditStatus.SUCCEEDED,
    RunState.FAILED: AuditStatus.FAILED,
    RunState.CANCELLED: AuditStatus.CANCELLED,
    RunState.TIMED_OUT: AuditStatus.TIMED_OUT,
}
_TOOL_STATUS = {
    ToolOutcome.OK: (AuditStatus.SUCCEEDED, ""),
    ToolOutcome.ERROR: (AuditStatus.FAILED, "TOOL_ERROR"),
    ToolOutcome.BLOCKED: (AuditStatus.BLOCKED, "TOOL_BLOCKED"),
    ToolOutcome.SKIPPED: (AuditStatus.CANCELLED, "TOOL_SKIPPED"),
    ToolOutcome.ABORTED: (AuditStatus.CANCELLED, "TOOL_ABORTED"),
    ToolOutcome.UNKNOWN: (AuditStatus.UNKNOWN, "TOOL_OUTCOME_UNKNOWN"),
}
_STOPS_OF_CALLERS = frozenset({"rpc", "stop_word", "interrupt", "reset", "deleted"})
_CODE = re.compile(r"[A-Za-z][A-Za-z_]{1,39}")
_FINGERPRINT_BYTES = 8
_PSEUDONYM_BYTES = 16
UNKNOWN_TOOL = "unknown"
"""Stands for a name that a model made up."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What all records of a run's acts share."""

    tenant: str
    run_id: str
    agent_id: str
    session_key: str
    session_id: str

    @classmethod
    def of(cls, run: Run) -> "RunFacts":
        return cls(run.tenant, run.run_id, run.request.agent_id, run.session_key, run.session_id)


def run_started(run: Run, seq: int) -> AuditRecord:
    """A run's first dispatch. `seq`: of its event."""
    at = run.started_at or run.accepted_at
    return _of_run(RunFacts.of(run), at, AuditAction.RUN_STARTED, AuditStatus.STARTED, seq=seq)


def run_finished(run: Run) -> AuditRecord:
    """A run that has ended, whether it was ever started or not."""
    code, actor = "", AuditActor.AGENT
    if run.state is RunState.CANCELLED:
        code = run.stop_reason
        actor = AuditActor.CALLER if code in _STOPS_OF_CALLERS else AuditActor.SERVICE
    elif run.state is not RunState.SUCCEEDED:
        code = run.error.reason if run.error is not None else ""
        actor = AuditActor.SERVICE if run.state is RunState.TIMED_OUT else AuditActor.AGENT
    at = run.ended_at or run.accepted_at
    record = _of_run(RunFacts.of(run), at, AuditAction.RUN_FINISHED, _RUN_STATUS[run.state], seq=run.last_seq)
    return replace(record, actor=actor, code=code if _CODE.fullmatch(code) else "")


def acts_of_tools(
    run: RunFacts, steps: Sequence[tuple[NewEvent, int]], *, tool_of: Callable[[str], str]
) -> list[AuditRecord]:
    """The records of the tool events among `steps`, which were stored by one change of a run: each with its number.

    A start together with its result is of a call that was never launched: it has only an end. `tool_of`: the tool that
    a model means by a name, "" for one that it made up.
    """
    told = [(event.time, seq, event.payload) for event, seq in steps if isinstance(event.payload, ToolProgress)]
    ended = {step.call_id for _, _, step in told if step.phase is ToolPhase.RESULT}
    records = []
    for at, seq, step in told:
        if step.phase is ToolPhase.RESULT:
            status, code = _TOOL_STATUS[step.outcome or ToolOutcome.UNKNOWN]
            action = AuditAction.TOOL_FINISHED
        elif step.phase is ToolPhase.START and step.call_id not in ended:
            status, code, action = AuditStatus.STARTED, "", AuditAction.TOOL_STARTED
        else:
            continue
        records.append(
            replace(
                _of_run(run, at, action, status, seq=seq),
                code=code,
                tool_name=tool_of(step.name) or UNKNOWN_TOOL,
                tool_call=_fingerprint(run.run_id, step.call_id),
            )
        )
    return records


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Gives identifiers of other platforms names that cannot be turned back without trying (R-3.79)."""

    secret: bytes

    def of(self, kind: str, tenant: str, identifier: str) -> str:
        """The same for the same identifier of the same kind and tenant; "" for none."""
        if not identifier:
            return ""
        material = b"\0".join(part.encode("utf-8", "surrogatepass") for part in (kind, tenant, identifier))
        return hmac.digest(self.secret, material, "sha256")[:_PSEUDONYM_BYTES].hex()


def message_processed(
    tenant: str,
    run_id: str,
    at: datetime,
    request: RunRequest,
    *,
    pseudonyms: Pseudonyms,
    is_duplicate: bool,
) -> AuditRecord:
    """A message is accepted, or was before. Says nothing of its session."""

    def pseudonym(kind: str, identifier: str) -> str:
        return pseudonyms.of(kind, tenant, identifier)

    return AuditRecord(
        tenant=tenant,
        event_id=f"{run_id}:message" + (f":{at.isoformat()}" if is_duplicate else ""),
        at=at,
        actor=AuditActor.CALLER,
        action=AuditAction.MESSAGE_INBOUND_PROCESSED,
        status=AuditStatus.OBSERVED if is_duplicate else AuditStatus.SUCCEEDED,
        code="DUPLICATE" if is_duplicate else "",
        agent_id=request.agent_id,
        run_id=run_id,
        channel=request.channel,
        account=pseudonym("account", request.account_id),
        conversation=pseudonym("conversation", request.to),
        thread=pseudonym("thread", request.thread_id),
    )


def is_direct(session_key: str) -> bool:
    """Whether the canonical key proves a conversation with one person (R-1.28): `agent:A:direct:<peer>`, with a channel
    or a channel and an account before it."""
    parts = session_key.split(":")[2:]
    kind = next((part for part in parts[:3] if part in ("direct", "group", "channel")), "")
    return kind == "direct" and parts[-1] != "direct"


def _of_run(run: RunFacts, at: datetime, action: AuditAction, status: AuditStatus, *, seq: int) -> AuditRecord:
    """A record of the agent's own doing."""
    return AuditRecord(
        tenant=run.tenant,
        event_id=f"{run.run_id}:{seq}",
        at=at,
        actor=AuditActor.AGENT,
        action=action,
        status=status,
        source_seq=seq,
        agent_id=run.agent_id,
        session_key=run.session_key,
        session_id=run.session_id,
        run_id=run.run_id,
    )


def _fingerprint(run_id: str, call_id: str) -> str:
    """The same for both records of a call, and no text of the model that chose its id."""
    material = f"{run_id}\0{call_id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(material, digest_size=_FINGERPRINT_BYTES).hexdigest()
