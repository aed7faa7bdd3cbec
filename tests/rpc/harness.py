"""A server with the service behind it played, and how a caller reads a refusal."""

from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from tests.fakes.fake_clock import FakeClock
from tests.fakes.rpc_rows import STORE_ID
from tests.fakes.rpc_service import FakeAdmin, FakeAudit, FakeLogs, FakeLooks, FakeRuns, FakeSessions

from lanewayd.rpc.admin import AdminHandlers
from lanewayd.rpc.agent import AgentHandlers
from lanewayd.rpc.health import HealthHandlers
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.server import SERVICE_NAMES, build_server, server_options
from lanewayd.rpc.sessions import SessionHandlers


@dataclass
class Harness:
    """A server without address, and the service that it asks."""

    runs: FakeRuns = field(default_factory=FakeRuns)
    logs: FakeLogs = field(default_factory=FakeLogs)
    looks: FakeLooks = field(default_factory=FakeLooks)
    sessions: FakeSessions = field(default_factory=FakeSessions)
    admin: FakeAdmin = field(default_factory=FakeAdmin)
    audit: FakeAudit = field(default_factory=FakeAudit)
    health: HealthHandlers = field(default_factory=lambda: HealthHandlers(SERVICE_NAMES))
    clock: FakeClock = field(default_factory=FakeClock)
    limits: Limits = field(default_factory=Limits)

    def server(self, options: list[tuple[str, int]] | None = None) -> grpc.aio.Server:
        """A server that has not been started."""
        return build_server(
            agent=AgentHandlers(
                runs=self.runs, logs=self.logs, looks=self.looks, admin=self.admin, clock=self.clock, limits=self.limits
            ),
            sessions=SessionHandlers(sessions=self.sessions, store_id=STORE_ID, limits=self.limits),
            admin=AdminHandlers(admin=self.admin, audit=self.audit, store_id=STORE_ID, limits=self.limits),
            health=self.health,
            tenant_of=lambda context: "tenant-a",
            options=options or server_options(),
        )


@dataclass(frozen=True)
class Refusal:
    """What a caller sees of a refused call."""

    code: grpc.StatusCode
    text: str
    reason: str
    metadata: dict[str, str]
    fields: list[str]
    retry_after_s: float | None


def refusal_of(error: grpc.aio.AioRpcError) -> Refusal:
    """The status of a failed call with its details."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        assert detail.Unpack(info) or detail.Unpack(bad_request) or detail.Unpack(retry)
    assert info.domain == "laneway"
    delay = retry.retry_delay
    return Refusal(
        code=error.code(),
        text=error.details() or "",
        reason=info.reason,
        metadata=dict(info.metadata),
        fields=[violation.field for violation in bad_request.field_violations],
        retry_after_s=delay.seconds + delay.nanos / 1e9 if retry.HasField("retry_delay") else None,
    )


async def refused(call: Any) -> Refusal:
    """The refusal of a unary call, or of a stream that is read to its end."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await (_read_to_the_end(call) if hasattr(call, "__aiter__") else call)
    return refusal_of(raised.value)


async def _read_to_the_end(stream: Any) -> None:
    async for _ in stream:
        pass
