"""Two tenants see nothing of each other (D-6)."""

import grpc
from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService
from tests.service.refusals import refused, refused_stream
from tests.service.tenants import Tenant

from laneway.v1 import agent_pb2, session_pb2


async def test_two_tenants_see_nothing_of_each_other(service: RunningService, model: ModelServer) -> None:
    one, two = Tenant(service, "one"), Tenant(service, "two")
    model.answer(text_answer("secret of one"))
    mine = await one.finish(session_key="s", idempotency_key="k", label="mine")
    agent, sessions = service.agent, service.sessions
    for call in (
        agent.GetRun(agent_pb2.GetRunRequest(run_id=mine.run_id), metadata=two.metadata),
        agent.Wait(agent_pb2.WaitRequest(run_id=mine.run_id), metadata=two.metadata),
        agent.Abort(agent_pb2.AbortRequest(run_id=mine.run_id), metadata=two.metadata),
        two.accept(parent_run_id=mine.run_id),
    ):
        refusal = await refused(call)
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    refusal = await refused_stream(
        agent.Subscribe(agent_pb2.SubscribeRequest(run_id=mine.run_id), metadata=two.metadata)
    )
    assert refusal.reason == "RUN_NOT_FOUND"
    for call in (
        sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"), metadata=two.metadata),
        sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"), metadata=two.metadata),
        sessions.ReadEntry(session_pb2.ReadEntryRequest(session_key="s", entry_id="x"), metadata=two.metadata),
        sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"), metadata=two.metadata),
        sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s", force=True), metadata=two.metadata),
        agent.Abort(agent_pb2.AbortRequest(session_key="s"), metadata=two.metadata),
        two.accept(session_id=mine.session_id),
    ):
        refusal = await refused(call)
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    refusal = await refused_stream(
        sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="s"), metadata=two.metadata)
    )
    assert refusal.reason == "SESSION_NOT_FOUND"
    assert not (await agent.ListRuns(agent_pb2.ListRunsRequest(), metadata=two.metadata)).runs
    assert not (await sessions.ListSessions(session_pb2.ListSessionsRequest(), metadata=two.metadata)).sessions

    theirs = await two.finish(message="another", session_key="s", idempotency_key="k")
    assert not theirs.duplicate
    assert theirs.session_id != mine.session_id
    assert "secret of one" not in str(model.requests[-1].messages)
    listed = await agent.ListRuns(agent_pb2.ListRunsRequest(session_key="s"), metadata=two.metadata)
    assert [run.run_id for run in listed.runs] == [theirs.run_id]


async def test_streams_and_tokens_of_one_tenant_show_another_nothing(service: RunningService) -> None:
    one, two = Tenant(service, "one"), Tenant(service, "two")
    streams = [
        service.agent.Subscribe(agent_pb2.SubscribeRequest(**target), metadata=two.metadata)
        for target in ({"all": True}, {"session_key": "s"})
    ]
    mine = [await one.finish(session_key="s") for _ in range(2)]
    page = await service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=1), metadata=one.metadata)
    assert page.runs[0].run_id == mine[1].run_id
    refusal = await refused(
        service.agent.ListRuns(
            agent_pb2.ListRunsRequest(page_size=1, page_token=page.next_page_token), metadata=two.metadata
        )
    )
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID")
    theirs = await two.finish(session_key="s")
    for stream in streams:
        event = await stream.read()
        assert event.run_id == theirs.run_id
        stream.cancel()
