"""An agent service that plays prepared events over a real socket, and the events of an ordinary run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from laneway.v1 import admin_pb2, admin_pb2_grpc, agent_pb2, agent_pb2_grpc, event_pb2, run_pb2

RUN_ID = "run_1"


def refusal(code: grpc.StatusCode, reason: str, text: str) -> grpc.Status:
    """A status as the service sends it."""
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="laneway"))
    return rpc_status.to_status(status_pb2.Status(code=code.value[0], message=text, details=[detail]))


def event(seq: int, **payload: Any) -> event_pb2.Event:
    return event_pb2.Event(run_id=RUN_ID, seq=seq, session_key="agent:main:demo", agent_id="main", **payload)


def terminal(seq: int, state: run_pb2.RunState = run_pb2.RUN_STATE_SUCCEEDED, **fields: Any) -> event_pb2.Event:
    is_end = state in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_CANCELLED)
    phase = event_pb2.LIFECYCLE_PHASE_END if is_end else event_pb2.LIFECYCLE_PHASE_ERROR
    return event(seq, lifecycle=event_pb2.LifecycleEvent(phase=phase, state=state, **fields))


def text(seq: int, delta: str, message_id: str = "m1") -> event_pb2.Event:
    return event(seq, assistant=event_pb2.AssistantEvent(message_id=message_id, delta=delta))


def message(seq: int, whole: str, message_id: str = "m1") -> event_pb2.Event:
    return event(seq, message=event_pb2.MessageEvent(message_id=message_id, role="assistant", entry_id="e", text=whole))


def usual_run() -> list[event_pb2.Event]:
    """A run with a tool call that succeeds."""
    start = event_pb2.LifecycleEvent(phase=event_pb2.LIFECYCLE_PHASE_START, state=run_pb2.RUN_STATE_RUNNING)
    call = event_pb2.ToolEvent(
        phase=event_pb2.TOOL_PHASE_START, call_id="c1", name="read", arguments_json='{"path":"notes.txt"}'
    )
    result = event_pb2.ToolEvent(
        phase=event_pb2.TOOL_PHASE_RESULT, call_id="c1", name="read", outcome=event_pb2.TOOL_OUTCOME_OK
    )
    result.result.text = "first line\nsecond line"
    result.duration.FromMilliseconds(12)
    return [
        event(1, lifecycle=start),
        text(2, "Let me "),
        text(3, "look."),
        message(4, "Let me look."),
        event(5, tool=call),
        event(6, tool=result),
        text(7, "It says: first line", "m2"),
        message(8, "It says: first line", "m2"),
        terminal(9, stop_reason="stop", usage=run_pb2.Usage(input_tokens=20, output_tokens=7, total_tokens=27)),
    ]


@dataclass
class FakeService(agent_pb2_grpc.AgentServiceServicer, admin_pb2_grpc.AdminServiceServicer):
    """Answers from its fields and keeps what it was asked. `cuts`: after how many events each Subscribe breaks."""

    events: list[event_pb2.Event] = field(default_factory=usual_run)
    cuts: list[int] = field(default_factory=list)
    agent_refusals: list[grpc.Status] = field(default_factory=list)
    wait_answers: list[agent_pb2.WaitResponse] = field(default_factory=list)
    abort_refusals: list[grpc.Status] = field(default_factory=list)
    holds_before: int = 0
    """Events with this seq and above wait for `go_on`."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    on_abort: Callable[[], None] | None = None
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    is_held: asyncio.Event = field(default_factory=asyncio.Event)
    agent_requests: list[agent_pb2.AgentRequest] = field(default_factory=list)
    subscribe_requests: list[agent_pb2.SubscribeRequest] = field(default_factory=list)
    wait_requests: list[agent_pb2.WaitRequest] = field(default_factory=list)
    abort_requests: list[agent_pb2.AbortRequest] = field(default_factory=list)

    async def Agent(self, request: agent_pb2.AgentRequest, context: Any) -> run_pb2.AgentResponse:
        self.agent_requests.append(request)
        if self.agent_refusals:
            await context.abort_with_status(self.agent_refusals.pop(0))
        return run_pb2.AgentResponse(run_id=RUN_ID, session_key="agent:main:demo", session_id="s", agent_id="main")

    async def Subscribe(self, request: agent_pb2.SubscribeRequest, context: Any) -> None:
        self.subscribe_requests.append(request)
        cut_after = self.cuts.pop(0) if self.cuts else None
        await context.write(event_pb2.Event(run_id=RUN_ID, progress=event_pb2.ProgressEvent(cursor="c")))
        for sent, number in enumerate(range(request.after_seq + 1, 10_000)):
            if sent == cut_after:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")
            if self.holds_before and number >= self.holds_before:
                self.is_held.set()
                await self.go_on.wait()
            if number > len(self.events):
                return
            await context.write(self.events[number - 1])

    async def Wait(self, request: agent_pb2.WaitRequest, context: Any) -> agent_pb2.WaitResponse:
        self.wait_requests.append(request)
        return self.wait_answers.pop(0)

    async def Abort(self, request: agent_pb2.AbortRequest, context: Any) -> agent_pb2.AbortResponse:
        self.abort_requests.append(request)
        if self.abort_refusals:
            await context.abort_with_status(self.abort_refusals.pop(0))
        if self.on_abort is not None:
            self.on_abort()
        self.aborted.set()
        return agent_pb2.AbortResponse(aborted_run_ids=[RUN_ID])

    async def GetStatus(self, request: admin_pb2.GetStatusRequest, context: Any) -> admin_pb2.GetStatusResponse:
        answer = admin_pb2.GetStatusResponse(version="9.9.9", sessions=3, subscribers=1)
        answer.started_at.GetCurrentTime()
        answer.lanes.add(name="main", width=8, active=2, queued=1)
        answer.runs_by_state["RUN_STATE_TIMED_OUT"] = 4
        answer.store.path, answer.store.bytes, answer.store.commit_ms = "/home/laneway.db", 3 * 1024 * 1024, 1.25
        return answer


@asynccontextmanager
async def serving(service: FakeService, address: str) -> AsyncIterator[None]:
    """The service on a real socket."""
    server = grpc.aio.server()
    agent_pb2_grpc.add_AgentServiceServicer_to_server(service, server)
    admin_pb2_grpc.add_AdminServiceServicer_to_server(service, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield
    finally:
        service.go_on.set()
        await server.stop(0)
