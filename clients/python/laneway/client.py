"""The client of a Laneway server: what `laneway.v1` offers, with the repetitions and resumptions that make it reliable.

    async with LanewayClient("127.0.0.1:50551") as client:
        async for event in client.run("What is in this folder?"):
            ...

Requests and answers are the messages of `laneway.v1`; failures are `laneway.errors.LanewayError`. A server may
restart, leave, stand still or be cut off at any moment: no message is run twice, no event is lost or doubled, and every
call ends within a time that is said. One client serves any number of tasks of its event loop.
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import grpc

from laneway.calls import Caller, Metadata, OnLoss, Timeouts, ignore_loss
from laneway.channels import open_channel
from laneway.sessions import SessionCalls
from laneway.subscriptions import follow
from laneway.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    agent_pb2,
    agent_pb2_grpc,
    event_pb2,
    run_pb2,
    session_pb2_grpc,
)
from laneway.waits import wait_for_end

_ABORT_ANSWER_S = 5.0
"""An abort answers after so long at the latest."""


class LanewayClient:
    """A connection to one server, made when it is first needed and again whenever it was lost.

    Make it inside a running event loop; leave its context, or `close` it, to end all that it still does. `sessions` has
    the calls about sessions. For calls it does not offer, make stubs of `laneway.v1` on its `channel`.
    """

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Metadata = (),
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
        on_loss: OnLoss = ignore_loss,
        channel_options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """`target` is gRPC's: `host:port`, `unix:/path`, `dns:///name:port`; without `credentials` all is unencrypted.

        `metadata` goes with every call. `on_loss` is awaited before each repetition; what it raises ends the call.
        `channel_options` win over those of `laneway.channels`.
        """
        self.target = target
        self.channel = open_channel(target, credentials=credentials, options=channel_options)
        self._caller = Caller(timeouts=timeouts, metadata=metadata, on_loss=on_loss)
        self._agents = agent_pb2_grpc.AgentServiceStub(self.channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self.channel)
        self.sessions = SessionCalls(self._caller, session_pb2_grpc.SessionServiceStub(self.channel))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; calls under way end with ClientClosed, runs go on. Idempotent."""
        await self.channel.close()

    # --- runs --------------------------------------------------------------------------------------------------------

    async def agent(
        self, request: agent_pb2.AgentRequest | str, *, deadline_s: float | None = None
    ) -> run_pb2.AgentResponse:
        """Hand over a message, or only its text; the answer says that it is durable and will be run once.

        Repeated with one idempotency key, that of the request or a new one, until `deadline_s` is over (None =
        `Timeouts.patience_s`), as long as the server is unavailable or does not answer; it pauses as long as the server
        suggests. Raises LanewayError: Unavailable and DeadlineExceeded leave open whether the message was accepted, so
        give a key of your own if you want to ask again; all others mean that it was not.
        """
        message = _message_of(request)
        message.idempotency_key = message.idempotency_key or f"client-{uuid.uuid4()}"
        answer: run_pb2.AgentResponse = await self._caller.repeat(self._agents.Agent, message, deadline_s=deadline_s)
        return answer

    async def run(
        self,
        request: agent_pb2.AgentRequest | str,
        *,
        verbose: agent_pb2.Verbosity = agent_pb2.VERBOSITY_UNSPECIFIED,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[event_pb2.Event, None]:
        """Hand over a message and read its run to the end: first `accepted`, then every event once and in order; the
        last one is terminal (`laneway.positions.is_terminal`). A command in a message (disposition COMPLETED) has no
        run: `accepted` with its `reply` is all.

        `agent` and `subscribe` in one, with what they promise and raise; `deadline_s` is for the acceptance. A key that
        was used before replays its run from the start. Leaving the iteration leaves the run to the server: `abort` it
        if nobody wants it. VERBOSITY_FULL shows the results of tools.
        """
        accepted = await self.agent(request, deadline_s=deadline_s)
        yield event_pb2.Event(
            run_id=accepted.run_id, session_key=accepted.session_key, agent_id=accepted.agent_id, accepted=accepted
        )
        if not accepted.run_id:
            return
        log = agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0, verbose=verbose)
        async with aclosing(self.subscribe(log)) as events:
            async for event in events:
                yield event

    def subscribe(self, request: agent_pb2.SubscribeRequest) -> AsyncGenerator[event_pb2.Event, None]:
        """Read the log of a run, a session or everything, over any number of lost connections and restarts.

        Yields each stored event above `after_seq` or `cursor` once and in order, before them a `snapshot` if a run is
        read without `after_seq`; signs of life are not yielded. Ends after a run's terminal event; the other targets do
        not end. To go on later, keep `seq` (a run) or `cursor` of the last event. Without `cursor`, a session or `all`
        begins anew if the connection is lost before anything was heard on it.

        Raises CursorPruned, CursorAhead, NotFound, InvalidRequest; Unavailable or DeadlineExceeded when no server was
        found for `Timeouts.patience_s`. A stream that is silent for `Timeouts.silence_s` is taken up again. Who leaves
        before the end closes it, which cancels its call: `async with contextlib.aclosing(client.subscribe(...))`.
        """
        return follow(self._caller, self._agents.Subscribe, request)

    async def wait(self, run_id: str, *, timeout_s: float | None = None) -> agent_pb2.WaitResponse:
        """How a run ended; how it stands if it has not ended after `timeout_s` (0 = look only, None = until it ends).

        Goes on over the server's limit, over servers that leave, restart or do not answer: with a timeout until
        `Timeouts.attempt_s` after it, without one until no server was found for `Timeouts.patience_s`; then it raises
        Unavailable or DeadlineExceeded. Raises NotFound. `state in laneway.waits.ENDED_STATES`
        tells whether the run has ended.
        """
        return await wait_for_end(self._caller, self._agents.Wait, run_id, timeout_s)

    async def abort(self, run_id: str, *, reason: str = "", deadline_s: float | None = None) -> agent_pb2.AbortResponse:
        """End a run. After the answer it has no further event, tool call or transcript entry, unless it is in
        `pending_run_ids`: then it will end soon. A run that has ended is no error; the lists are then empty, also when
        an earlier attempt ended it whose answer was lost. Repeated as `agent` is. Raises NotFound.
        """
        request = agent_pb2.AbortRequest(run_id=run_id, reason=reason)
        answer: agent_pb2.AbortResponse = await self._caller.repeat(
            self._agents.Abort, request, deadline_s=deadline_s, answer_s=_ABORT_ANSWER_S
        )
        return answer

    async def abort_session(
        self, session_key: str, *, clear_queued: bool = False, reason: str = "", deadline_s: float | None = None
    ) -> agent_pb2.AbortResponse:
        """End what runs in a session, and with `clear_queued` first what waits there.

        Waits for a server, but is made once: a repetition could end the run that came next. So Unavailable and
        DeadlineExceeded leave open whether it happened. Raises NotFound for an unknown session.
        """
        request = agent_pb2.AbortRequest(session_key=session_key, clear_queued=clear_queued, reason=reason)
        answer: agent_pb2.AbortResponse = await self._caller.only_once(
            self._agents.Abort, request, deadline_s=deadline_s
        )
        return answer

    async def get_run(self, run_id: str) -> run_pb2.Run:
        """A run as it stands. Raises NotFound."""
        answer: run_pb2.Run = await self._caller.repeat(self._agents.GetRun, agent_pb2.GetRunRequest(run_id=run_id))
        return answer

    def list_runs(self, filters: agent_pb2.ListRunsRequest | None = None) -> AsyncIterator[run_pb2.Run]:
        """All runs that pass the filters, those accepted last first; read page by page while it is iterated."""
        request = agent_pb2.ListRunsRequest()
        if filters is not None:
            request.CopyFrom(filters)
        return self._caller.pages(self._agents.ListRuns, request, "runs")

    # --- what the server has -----------------------------------------------------------------------------------------

    def list_agents(self) -> AsyncIterator[agent_pb2.Agent]:
        """What may stand in `agent_id`, by name."""
        return self._caller.pages(self._agents.ListAgents, agent_pb2.ListAgentsRequest(), "agents")

    def list_models(self) -> AsyncIterator[agent_pb2.Model]:
        """What may stand in `model`, by name."""
        return self._caller.pages(self._agents.ListModels, agent_pb2.ListModelsRequest(), "models")

    def list_tools(self) -> AsyncIterator[agent_pb2.Tool]:
        """What may stand in `tools_allow` and `tools_deny`, by name."""
        return self._caller.pages(self._agents.ListTools, agent_pb2.ListToolsRequest(), "tools")

    async def status(self) -> admin_pb2.GetStatusResponse:
        """Lanes, runs, sessions, store and version of the server."""
        answer: admin_pb2.GetStatusResponse = await self._caller.repeat(
            self._admin.GetStatus, admin_pb2.GetStatusRequest()
        )
        return answer

    def list_audit_records(
        self, filters: admin_pb2.ListAuditRecordsRequest | None = None
    ) -> AsyncIterator[admin_pb2.AuditRecord]:
        """What was done in the service, as far as it passes the filters, newest first; read page by page while it is
        iterated. A record that is missing proves nothing."""
        request = admin_pb2.ListAuditRecordsRequest()
        if filters is not None:
            request.CopyFrom(filters)
        return self._caller.pages(self._admin.ListAuditRecords, request, "records")

    async def drain(self, *, deadline_s: float | None = None) -> None:
        """Tell the server to finish and leave; returns at once. Made once: a repetition could meet the next server."""
        await self._caller.only_once(self._admin.Drain, admin_pb2.DrainRequest(), deadline_s=deadline_s)


def _message_of(request: agent_pb2.AgentRequest | str) -> agent_pb2.AgentRequest:
    """A request of our own: the caller's is never changed."""
    if isinstance(request, str):
        return agent_pb2.AgentRequest(message=request)
    copy = agent_pb2.AgentRequest()
    copy.CopyFrom(request)
    return copy
