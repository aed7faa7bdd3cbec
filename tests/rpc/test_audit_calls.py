"""AdminService.ListAuditRecords over a real channel: what is asked, what is refused, how a record looks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.harness import Harness, refused

from laneway.v1 import admin_pb2
from lanewayd.audit_records import AuditAction, AuditActor, AuditFilter, AuditRecord, AuditStatus

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVER = datetime(1970, 1, 1, tzinfo=UTC)
Request = admin_pb2.ListAuditRecordsRequest
TOOLS = (AuditAction.TOOL_STARTED, AuditAction.TOOL_FINISHED)


def stamp(moment: datetime) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(moment)
    return made


def record(number: int, **fields: Any) -> AuditRecord:
    fields = {"action": AuditAction.RUN_STARTED, "status": AuditStatus.STARTED, **fields}
    return AuditRecord("tenant-a", f"run_1:{number}", NOW, AuditActor.AGENT, ledger_no=number, **fields)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(), AuditFilter(EVER)),
        (
            Request(session_key="Talk", agent_id="Main"),
            AuditFilter(EVER, session_key="agent:main:talk", agent_id="main"),
        ),
        (Request(run_id="run_1", channel="Mail"), AuditFilter(EVER, run_id="run_1", channel="Mail")),
        (Request(status=admin_pb2.AUDIT_STATUS_TIMED_OUT), AuditFilter(EVER, status=AuditStatus.TIMED_OUT)),
        (Request(kind=admin_pb2.AUDIT_KIND_TOOL), AuditFilter(EVER, actions=TOOLS)),
        (
            Request(direction=admin_pb2.AUDIT_DIRECTION_INBOUND),
            AuditFilter(EVER, actions=(AuditAction.MESSAGE_INBOUND_PROCESSED,)),
        ),
        (Request(after=stamp(NOW), before=stamp(NOW)), AuditFilter(NOW, before=NOW)),
    ],
)
async def test_the_filters_are_what_the_request_says(
    harness: Harness, admin: Any, request_: Request, expected: AuditFilter
) -> None:
    await admin.ListAuditRecords(request_)
    assert harness.audit.asked == [("tenant-a", expected)]


async def test_what_no_record_can_be_is_not_looked_for(harness: Harness, admin: Any) -> None:
    harness.audit.kept = [record(1)]
    nothing = Request(kind=admin_pb2.AUDIT_KIND_RUN, direction=admin_pb2.AUDIT_DIRECTION_INBOUND)
    assert await admin.ListAuditRecords(nothing) == admin_pb2.ListAuditRecordsResponse()
    assert harness.audit.asked == []


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (Request(page_size=-1), "FIELD_INVALID", "page_size"),
        (Request(page_token="none"), "PAGE_TOKEN_INVALID", "page_token"),
        (Request(kind=99), "ENUM_UNKNOWN", "kind"),  # type: ignore[arg-type]
        (Request(status=99), "ENUM_UNKNOWN", "status"),  # type: ignore[arg-type]
        (Request(direction=99), "ENUM_UNKNOWN", "direction"),  # type: ignore[arg-type]
        (Request(session_key="a\nb"), "SESSION_KEY_MALFORMED", "session_key"),
        (Request(session_key="agent:main"), "SESSION_KEY_MALFORMED", "session_key"),
        (Request(run_id="x" * 1000), "FIELD_INVALID", "run_id"),
        (Request(agent_id="x" * 1000), "FIELD_INVALID", "agent_id"),
        (Request(channel="x" * 1000), "FIELD_INVALID", "channel"),
        (Request(after=Timestamp(seconds=2**60)), "FIELD_INVALID", "after"),
        (Request(before=Timestamp(nanos=-1)), "FIELD_INVALID", "before"),
        (Request(after=stamp(NOW), before=stamp(NOW - timedelta(seconds=1))), "FIELD_INVALID", "before"),
    ],
)
async def test_a_wrong_field_is_named(admin: Any, request_: Request, reason: str, field: str) -> None:
    refusal = await refused(admin.ListAuditRecords(request_))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert refusal.metadata["field"] == field


async def test_a_record_has_all_its_parts_and_pages_follow_each_other(harness: Harness, admin: Any) -> None:
    message = record(
        2,
        action=AuditAction.MESSAGE_INBOUND_PROCESSED,
        status=AuditStatus.OBSERVED,
        code="DUPLICATE",
        channel="mail",
        account="a",
        conversation="c",
        thread="t",
    )
    tool = record(
        1,
        action=AuditAction.TOOL_FINISHED,
        status=AuditStatus.BLOCKED,
        session_key="agent:main:s",
        session_id="s",
        source_seq=7,
        tool_name="exec",
        tool_call="f",
    )
    harness.audit.kept = [message, tool]
    first = await admin.ListAuditRecords(Request(page_size=1))
    second = await admin.ListAuditRecords(Request(page_size=1, page_token=first.next_page_token))
    assert second.next_page_token == ""
    [shown], [other] = first.records, second.records
    assert (shown.kind, shown.direction) == (admin_pb2.AUDIT_KIND_MESSAGE, admin_pb2.AUDIT_DIRECTION_INBOUND)
    assert (shown.code, shown.channel, shown.account, shown.conversation, shown.thread) == (
        "DUPLICATE",
        "mail",
        "a",
        "c",
        "t",
    )
    assert (other.kind, other.status, other.actor) == (
        admin_pb2.AUDIT_KIND_TOOL,
        admin_pb2.AUDIT_STATUS_BLOCKED,
        admin_pb2.AUDIT_ACTOR_AGENT,
    )
    assert (other.event_id, other.sequence, other.source_seq, other.tool_call) == ("run_1:1", 1, 7, "f")
    assert other.time.ToDatetime(UTC) == NOW


@pytest.mark.parametrize("enum", [AuditAction, AuditStatus, AuditActor])
def test_every_value_has_its_name_on_the_wire(enum: Any) -> None:
    wire = getattr(admin_pb2, enum.__name__)
    prefix = {"AuditAction": "AUDIT_ACTION_", "AuditStatus": "AUDIT_STATUS_", "AuditActor": "AUDIT_ACTOR_"}
    assert {prefix[enum.__name__] + value.name for value in enum} == set(wire.keys()[1:])
