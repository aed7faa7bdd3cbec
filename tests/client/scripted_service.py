"""A service over a real socket that answers as a test says: faults that the real one does not show on request."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from laneway.v1 import admin_pb2_grpc, agent_pb2, agent_pb2_grpc, event_pb2, run_pb2, session_pb2_grpc


def refusal(code: grpc.StatusCode, reason: str, *, retry_after_s: float | None = None, **metadata: str) -> grpc.Status:
    """A status as the service sends it."""
    status = status_pb2.Status(code=code.value[0], message="said the service")
    details: list[Any] = [error_details_pb2.ErrorInfo(reason=reason, domain="laneway", metadata=metadata)]
    if retry_after_s is not None:
        delay = Duration()
        delay.FromNanoseconds(int(retry_after_s * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return rpc_status.to_status(status)


class Silence:
    """An answer that never comes. Tells when it is waited for, and when the caller has gone."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.left = asyncio.Event()

    async def keep(self) -> None:
        """Say nothing until the call is cancelled."""
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


Step = Any
"""A message is sent; a grpc.Status ends the call with it; a Silence says nothing more; the end of the steps is OK."""


@dataclass
class ScriptedService(
    agent_pb2_grpc.AgentServiceServicer, admin_pb2_grpc.AdminServiceServicer, session_pb2_grpc.SessionServiceServicer
):
    """`script[method]` has one list of steps per expected call; `requests[method]` what was asked."""

    script: dict[str, list[Sequence[Step]]] = field(default_factory=dict)
    requests: dict[str, list[Any]] = field(default_factory=dict)
    metadata: list[dict[str, Any]] = field(default_factory=list)

    async def _play(self, method: str, request: Any, context: Any) -> None:
        self.requests.setdefault(method, []).append(request)
        self.metadata.append(dict(context.invocation_metadata() or ()))
        for step in self.script[method].pop(0):
            if isinstance(step, Silence):
                await step.keep()
            elif isinstance(step, grpc.Status):
                await context.abort_with_status(step)
            else:
                await context.write(step)

    async def _answer(self, method: str, request: Any, context: Any) -> Any:
        self.requests.setdefault(method, []).append(request)
        self.metadata.append(dict(context.invocation_metadata() or ()))
        (step,) = self.script[method].pop(0)
        if isinstance(step, Silence):
            await step.keep()
        if isinstance(step, grpc.Status):
            await context.abort_with_status(step)
        return step

    async def Agent(self, request: Any, context: Any) -> Any:
        return await self._answer("Agent", request, context)

    async def Wait(self, request: Any, context: Any) -> Any:
        return await self._answer("Wait", request, context)

    async def Abort(self, request: Any, context: Any) -> Any:
        return await self._answer("Abort", request, context)

    async def Drain(self, request: Any, context: Any) -> Any:
        return await self._answer("Drain", request, context)

    async def ResetSession(self, request: Any, context: Any) -> Any:
        return await self._answer("ResetSession", request, context)

    async def DeleteSession(self, request: Any, context: Any) -> Any:
        return await self._answer("DeleteSession", request, context)

    async def GetRun(self, request: Any, context: Any) -> Any:
        return await self._answer("GetRun", request, context)

    async def ListRuns(self, request: Any, context: Any) -> Any:
        return await self._answer("ListRuns", request, context)

    async def Subscribe(self, request: Any, context: Any) -> None:
        await self._play("Subscribe", request, context)

    async def ExportSession(self, request: Any, context: Any) -> None:
        await self._play("ExportSession", request, context)


@asynccontextmanager
async def serving(service: ScriptedService, options: Sequence[tuple[str, int]] = ()) -> AsyncGenerator[str, None]:
    """The service at the address that is yielded."""
    server = grpc.aio.server(options=list(options))
    agent_pb2_grpc.add_AgentServiceServicer_to_server(service, server)
    admin_pb2_grpc.add_AdminServiceServicer_to_server(service, server)
    session_pb2_grpc.add_SessionServiceServicer_to_server(service, server)
    # Socket paths are short, those of temporary folders are not always.
    path = Path(f"/tmp/laneway-{os.getpid()}-{uuid.uuid4().hex[:8]}.sock")
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield f"unix:{path}"
    finally:
        await server.stop(0)
        path.unlink(missing_ok=True)


RUN_ID = "run_1"


def accepted(run_id: str = RUN_ID) -> run_pb2.AgentResponse:
    """What Agent answers."""
    return run_pb2.AgentResponse(run_id=run_id, session_key="agent:main:s", session_id="1", agent_id="main")


def piece(seq: int, *, run_id: str = RUN_ID) -> event_pb2.Event:
    """An event in the middle of a run."""
    delta = event_pb2.AssistantEvent(message_id="m", offset=seq, delta="x")
    return event_pb2.Event(run_id=run_id, seq=seq, cursor=f"c{seq}", assistant=delta)


def end(seq: int, *, run_id: str = RUN_ID) -> event_pb2.Event:
    """The terminal event."""
    lifecycle = event_pb2.LifecycleEvent(phase=event_pb2.LIFECYCLE_PHASE_END, state=run_pb2.RUN_STATE_SUCCEEDED)
    return event_pb2.Event(run_id=run_id, seq=seq, cursor=f"c{seq}", lifecycle=lifecycle)


def waited(
    state: run_pb2.RunState, kind: agent_pb2.TimeoutKind = agent_pb2.TIMEOUT_KIND_UNSPECIFIED
) -> agent_pb2.WaitResponse:
    """What Wait answers."""
    return agent_pb2.WaitResponse(run_id=RUN_ID, state=state, timeout_kind=kind)


LOST = refusal(grpc.StatusCode.UNAVAILABLE, "", retry_after_s=0)
DRAINING = refusal(grpc.StatusCode.UNAVAILABLE, "DRAINING", retry_after_s=0, cursor="where it stood")
