"""AgentService: check, call the service, convert. No rules of its own beside those of the wire."""

import asyncio

from laneway.v1 import agent_pb2, run_pb2
from lanewayd.clock import Clock
from lanewayd.records import Run
from lanewayd.rpc.agent_request import new_message
from lanewayd.rpc.catalog import Catalog
from lanewayd.rpc.convert import duration_s, run_state_of
from lanewayd.rpc.event_codec import accepted_event
from lanewayd.rpc.interface import AcceptedMessage, Admin, Logs, Looks, Runs
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.methods import Call, Send
from lanewayd.rpc.paging import PageTokens, page_size, read_page
from lanewayd.rpc.request_fields import check_session_key, check_size, required, required_session_key
from lanewayd.rpc.run_convert import abort_response, agent_response, run_message, wait_response
from lanewayd.rpc.subscribe import Subscriptions
from lanewayd.runs.interface import NewMessage

DEFAULT_WAIT_S = 30.0
MAX_WAIT_S = 3600.0
_MIN_MARGIN_S = 0.1
_MARGIN_SHARE = 0.05
_DEADLINE_ROUNDING = 0.01
"""gRPC rounds a deadline up by as much on its way here, so it may be nearer than it seems."""


def wait_s(requested_s: float, remaining_s: float | None) -> float:
    """How long a wait may take (D-5): the request, at most 1 h; when the caller's deadline is nearer than that, so much
    less that the answer still arrives."""
    requested_s = min(requested_s, MAX_WAIT_S)
    if remaining_s is None or remaining_s * (1 - _DEADLINE_ROUNDING) >= requested_s:
        return requested_s
    margin_s = max(_MIN_MARGIN_S, remaining_s * _MARGIN_SHARE)
    return max(min(requested_s, max(remaining_s / 2, remaining_s - margin_s)), 0.0)


class AgentHandlers:
    """The methods of AgentService under their names in the contract."""

    def __init__(self, *, runs: Runs, logs: Logs, looks: Looks, admin: Admin, clock: Clock, limits: Limits) -> None:
        self._runs = runs
        self._logs = logs
        self._limits = limits
        self._subscriptions = Subscriptions(runs=runs, logs=logs, looks=looks, clock=clock, limits=limits)
        self._catalog = Catalog(admin=admin, store_id=logs.store_id)

    async def Agent(self, request: agent_pb2.AgentRequest, call: Call) -> run_pb2.AgentResponse:
        return agent_response(await self._accept(request, call))

    async def RunAgent(self, request: agent_pb2.AgentRequest, call: Call, send: Send) -> None:
        answer = agent_response(await self._accept(request, call))
        await send(accepted_event(answer))
        if answer.run_id:  # else a command, which is answered
            await self._subscriptions.relay_run(answer.run_id, call, send)

    async def Subscribe(self, request: agent_pb2.SubscribeRequest, call: Call, send: Send) -> None:
        await self._subscriptions.serve(request, call, send)

    async def Wait(self, request: agent_pb2.WaitRequest, call: Call) -> agent_pb2.WaitResponse:
        run_id = required(request.run_id, "run_id")
        requested_s = duration_s(request.timeout, "timeout") if request.HasField("timeout") else DEFAULT_WAIT_S
        return wait_response(await self._runs.wait(call.tenant, run_id, wait_s(requested_s, call.remaining_s)))

    async def Abort(self, request: agent_pb2.AbortRequest, call: Call) -> agent_pb2.AbortResponse:
        check_size(request.reason, "reason", self._limits.abort_reason_bytes)
        if request.WhichOneof("target") == "session_key":
            session_key = required_session_key(request.session_key, self._limits)
            receipt = await self._runs.abort_session(
                call.tenant,
                session_key,
                clear_queued=request.clear_queued,
                stop_reason="rpc",
                reason=request.reason,
            )
        else:
            run_id = required(request.run_id, "run_id")
            receipt = await self._runs.abort_run(call.tenant, run_id, stop_reason="rpc", reason=request.reason)
        return abort_response(receipt)

    async def GetRun(self, request: agent_pb2.GetRunRequest, call: Call) -> run_pb2.Run:
        return run_message(await self._runs.run(call.tenant, required(request.run_id, "run_id")))

    async def ListRuns(self, request: agent_pb2.ListRunsRequest, call: Call) -> agent_pb2.ListRunsResponse:
        check_session_key(request.session_key, self._limits)
        states = tuple(run_state_of(number, "states") for number in request.states)
        size = page_size(request.page_size)
        tokens = PageTokens(request, tenant=call.tenant, store_id=self._logs.store_id)

        async def read(place: str, limit: int) -> list[Run]:
            return list(
                await self._runs.runs(
                    call.tenant,
                    session_key=request.session_key,
                    states=states,
                    agent_id=request.agent_id,
                    label=request.label,
                    before_no=int(place) if place else None,
                    limit=limit,
                )
            )

        page = await read_page(
            read,
            start=tokens.place(request.page_token),
            size=size,
            place_of=lambda run: str(run.accepted_no),
            convert=run_message,
        )
        return agent_pb2.ListRunsResponse(runs=page.items, next_page_token=tokens.next_token(page))

    async def ListAgents(self, request: agent_pb2.ListAgentsRequest, call: Call) -> agent_pb2.ListAgentsResponse:
        return self._catalog.agents(request, call)

    async def ListModels(self, request: agent_pb2.ListModelsRequest, call: Call) -> agent_pb2.ListModelsResponse:
        return self._catalog.models(request, call)

    async def ListTools(self, request: agent_pb2.ListToolsRequest, call: Call) -> agent_pb2.ListToolsResponse:
        return self._catalog.tools(request, call)

    async def _accept(self, request: agent_pb2.AgentRequest, call: Call) -> AcceptedMessage:
        def checked() -> NewMessage:
            return new_message(request, tenant=call.tenant, traceparent=call.traceparent, limits=self._limits)

        # Files are decoded and hashed where nobody waits for it.
        message = await asyncio.to_thread(checked) if request.attachments else checked()
        return await self._runs.accept(message)
