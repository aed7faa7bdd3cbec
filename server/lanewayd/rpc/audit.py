"""Audit records and the filters of their list, wire <-> domain. Pure."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from laneway.v1 import admin_pb2
from lanewayd.audit_records import AuditAction, AuditDirection, AuditFilter, AuditKind, AuditRecord, AuditStatus
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import valid_text
from lanewayd.rpc.convert import check_enum, int32, int64, name, timestamp
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.request_fields import check_session_key, check_size
from lanewayd.sessions.keys import canonical_key, normal_agent_id

_REDACTION = "metadata_only"
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = ("agent_id", "run_id", "channel")


def audit_filter(request: admin_pb2.ListAuditRecordsRequest, limits: Limits) -> AuditFilter | None:
    """What the request asks for; None: no record can pass. Raises FieldError."""
    for field in _NAMES:
        check_size(getattr(request, field), field, limits.name_bytes)
    check_session_key(request.session_key, limits)
    check_enum(admin_pb2.AuditKind, request.kind, "kind")
    check_enum(admin_pb2.AuditStatus, request.status, "status")
    check_enum(admin_pb2.AuditDirection, request.direction, "direction")
    after, before = _moment(request, "after"), _moment(request, "before")
    if after is not None and before is not None and before < after:
        raise FieldError(ErrorCode.FIELD_INVALID, "before", "before lies before after.")
    actions = _actions(request)
    if not actions:
        return None
    status = admin_pb2.AuditStatus.Name(request.status).removeprefix("AUDIT_STATUS_").lower()
    return AuditFilter(
        after=after or _EVER,
        before=before,
        agent_id=normal_agent_id(request.agent_id) if request.agent_id else "",
        session_key=canonical_key(request.session_key) if request.session_key else "",
        run_id=request.run_id,
        channel=request.channel,
        status=AuditStatus(status) if request.status else None,
        actions=() if len(actions) == len(AuditAction) else actions,
    )


def audit_message(record: AuditRecord) -> admin_pb2.AuditRecord:
    """The wire form."""
    action = record.action
    return admin_pb2.AuditRecord(
        event_id=name(record.event_id),
        sequence=int64(record.ledger_no),
        schema_version=int32(record.schema_version),
        time=timestamp(record.at),
        actor=f"AUDIT_ACTOR_{record.actor.name}",
        kind=f"AUDIT_KIND_{action.kind.name}",
        action=f"AUDIT_ACTION_{action.name}",
        status=f"AUDIT_STATUS_{record.status.name}",
        code=name(record.code),
        source_seq=int64(record.source_seq),
        redaction=_REDACTION,
        agent_id=name(record.agent_id),
        session_key=valid_text(record.session_key),
        session_id=name(record.session_id),
        run_id=name(record.run_id),
        tool_name=name(record.tool_name),
        tool_call=record.tool_call,
        direction=f"AUDIT_DIRECTION_{action.direction.name}" if action.direction is not None else None,
        channel=name(record.channel),
        account=record.account,
        conversation=record.conversation,
        thread=record.thread,
    )


def _actions(request: admin_pb2.ListAuditRecordsRequest) -> tuple[AuditAction, ...]:
    """The actions of the wanted kind and direction."""
    kind = admin_pb2.AuditKind.Name(request.kind).removeprefix("AUDIT_KIND_").lower()
    direction = admin_pb2.AuditDirection.Name(request.direction).removeprefix("AUDIT_DIRECTION_").lower()
    return tuple(
        action
        for action in AuditAction
        if (not request.kind or action.kind is AuditKind(kind))
        and (not request.direction or action.direction is AuditDirection(direction))
    )


def _moment(request: admin_pb2.ListAuditRecordsRequest, field: str) -> datetime | None:
    """A time that a caller sent; None for none. Raises FieldError (FIELD_INVALID) outside the years 1 to 9999."""
    if not request.HasField(field):
        return None
    stamp: Timestamp = getattr(request, field)
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} is no time between the years 1 and 9999.") from None
