"""Refused calls as a caller sees them, checked for what every refusal promises (CONTRACT, Errors)."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from tests.fakes.service import RunningService

from laneway.v1 import admin_pb2, agent_pb2, run_pb2, session_pb2

RETRY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
METADATA_KEYS = {"field", "earliest_seq", "latest_seq", "earliest_cursor", "run_id", "holder", "cursor"}


@dataclass
class Refusal:
    """A refusal that has kept the promises of all refusals."""

    status: grpc.StatusCode
    reason: str
    text: str
    metadata: dict[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None


async def refused(call: Awaitable[Any]) -> Refusal:
    """The refusal of `call`, which must be one with a reason; checks its details and sizes."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return checked(raised.value)


async def refused_stream(call: Any) -> Refusal:
    """The refusal that a server stream ends with, after whatever it sent."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        async for _ in call:
            pass
    return checked(raised.value)


def checked(error: grpc.aio.AioRpcError) -> Refusal:
    """The parts of an error, after the checks that hold for all."""
    status = rpc_status.from_call(cast(grpc.Call, error))
    assert status is not None, f"{error.code()} carries no details: {error.details()}"
    text = error.details() or ""
    assert text == status.message
    assert 0 < len(text.encode()) <= 1000
    assert sum(detail.ByteSize() for detail in status.details) <= 4096
    info, request, retry = _details(status.details)
    assert info is not None
    assert info.domain == "laneway"
    assert set(info.metadata) <= METADATA_KEYS
    is_argument = error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (request is not None) == is_argument
    if request is not None:
        assert [violation.field for violation in request.field_violations] == [info.metadata.get("field", "")]
        assert all(violation.description for violation in request.field_violations)
    assert (retry is not None) == (error.code() in RETRY)
    retry_after_s = None if retry is None else retry.retry_delay.ToNanoseconds() / 1e9
    return Refusal(error.code(), info.reason, text, dict(info.metadata), retry_after_s)


def _details(details: Any) -> tuple[Any, Any, Any]:
    """ErrorInfo, BadRequest and RetryInfo; each at most once, and nothing else."""
    kinds = (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo)
    found: list[Any] = [None, None, None]
    for detail in details:
        [index] = [number for number, kind in enumerate(kinds) if detail.Is(kind.DESCRIPTOR)]
        assert found[index] is None
        found[index] = kinds[index]()
        detail.Unpack(found[index])
    return found[0], found[1], found[2]


async def all_that_is_stored(service: RunningService) -> tuple[list[run_pb2.Run], list[session_pb2.Session], str]:
    """Runs, sessions and figures, to be compared before and after a call that must change nothing."""
    runs = await service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=500))
    sessions = await service.sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=500))
    status = await service.admin.GetStatus(admin_pb2.GetStatusRequest())
    figures = f"{sorted(status.runs_by_state.items())} {status.sessions}"
    return list(runs.runs), list(sessions.sessions), figures


async def refused_and_unchanged(service: RunningService, fields: dict[str, Any]) -> Refusal:
    """The refusal of a message; nothing was stored by it, and its key is still free."""
    before = await all_that_is_stored(service)
    refusal = await refused(service.accept(**{"message": "hello", "idempotency_key": "key"} | fields))
    assert await all_that_is_stored(service) == before
    accepted = await service.accept("hello", idempotency_key="key")
    assert not accepted.duplicate
    assert (await service.wait(accepted.run_id)).status == agent_pb2.WAIT_STATUS_OK
    return refusal
