"""Accepted means durable (D-1): acknowledged runs survive kills and power cuts, keys answer the same across them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import refusal_of, running_service
from tests.processes.conftest import MakeServer
from tests.processes.failpoints import Failpoint
from tests.processes.repeating_gate import RepeatingGate
from tests.processes.scale import scaled

from laneway.v1 import agent_pb2, agent_pb2_grpc, run_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import AcceptRun

pytestmark = pytest.mark.timeout(scaled(180, 1800))


def _without_failpoint(server: ServerProcess) -> None:
    assert server.extras is not None
    server.extras = replace(server.extras, failpoint=None)


async def test_an_acknowledged_run_survives_a_power_cut(make_server: MakeServer) -> None:
    server = make_server(is_shadowed=True)
    await server.start()
    accepted = await server.accept("keep me", session_key="s")
    await server.restart(on_image=True)
    waited = await server.wait(accepted.run_id)
    assert waited.status == agent_pb2.WAIT_STATUS_OK
    assert waited.accepted_at == accepted.accepted_at


async def test_without_syncing_the_same_power_cut_loses_it(make_server: MakeServer) -> None:
    """The oracle of the tests here sees what `synchronous=OFF` loses."""
    server = make_server(is_shadowed=True)
    await server.start()  # the database and its tables are there and synced
    await server.kill()
    assert server.extras is not None
    server.extras = replace(server.extras, is_synced=False)
    await server.start()
    accepted = await server.accept("lose me", session_key="s")
    server.extras = replace(server.extras, is_synced=True)
    await server.restart(on_image=True)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.wait(accepted.run_id)
    assert refusal_of(caught.value).reason == "RUN_NOT_FOUND"


@pytest.mark.parametrize(("side", "is_stored"), [("before", False), ("after", True)])
async def test_a_key_tells_whether_a_call_without_answer_was_stored(
    make_server: MakeServer, model: ModelServer, side: str, is_stored: bool
) -> None:
    server = make_server(is_shadowed=True, failpoint=Failpoint(side, "accept"))
    await server.start()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.accept("once", idempotency_key="k", session_key="s")
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await server.exited()
    server.lose_power()
    _without_failpoint(server)
    await server.start()
    answer = await server.accept("once", idempotency_key="k", session_key="s")
    again = await server.accept("once", idempotency_key="k", session_key="s")
    assert answer.duplicate is is_stored
    assert (again.run_id, again.duplicate) == (answer.run_id, True)
    assert (await server.wait(answer.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    runs = await server.agent.ListRuns(agent_pb2.ListRunsRequest())
    assert [run.run_id for run in runs.runs] == [answer.run_id]
    assert len(model.requests) == 1


async def test_a_failed_commit_acknowledges_nothing_and_the_key_works_afterwards(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(failpoint=Failpoint("before", "accept", action="fail"))
    await server.start()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.accept("once", idempotency_key="k")
    assert refusal_of(caught.value).reason == "STORE_UNAVAILABLE"
    assert not (await server.agent.ListRuns(agent_pb2.ListRunsRequest())).runs
    answer = await server.accept("once", idempotency_key="k")
    assert not answer.duplicate
    assert (await server.wait(answer.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_one_key_on_two_connections_is_one_run_while_the_first_is_not_yet_durable(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(failpoint=Failpoint("before", "accept", action="hold"))
    await server.start()
    first = asyncio.ensure_future(server.accept("once", idempotency_key="k", session_key="s"))
    await server.notice("held")
    async with server.new_channel() as channel:
        request = agent_pb2.AgentRequest(message="once", idempotency_key="k", session_key="s", model="mock/any")
        second = agent_pb2_grpc.AgentServiceStub(channel)
        await second.ListRuns(agent_pb2.ListRunsRequest())
        call = second.Agent(request)
        # The answer to a later call on the same connection: the server has both messages.
        await second.ListRuns(agent_pb2.ListRunsRequest())
        assert not call.done()
        assert not first.done()
        server.release()
        answers = [await first, await call]
    assert answers[0].run_id == answers[1].run_id
    assert sorted(answer.duplicate for answer in answers) == [False, True]
    await server.wait(answers[0].run_id)
    assert len(model.requests) == 1


ROUNDS = scaled(60, 1000)


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_call_cancelled_while_its_commit_is_held_either_runs_or_does_not_exist(
    tmp_path: Path, side: str
) -> None:
    """The commit is held each time; the caller hangs up; then the run is there and comes to its end, exactly once."""
    gate = RepeatingGate(lambda command: isinstance(command, AcceptRun), after=side == "after")
    async with (
        ModelServer() as model,
        running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service,
    ):
        for number in range(ROUNDS):
            held = gate.hold_next()
            call = service.agent.Agent(agent_pb2.AgentRequest(message="x", idempotency_key=f"{number}", model="mock/a"))
            await held.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            gate.release()
            again = await service.accept("x", idempotency_key=f"{number}", model="mock/a")
            assert again.duplicate
            assert (await service.wait(again.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        assert len(model.requests) == ROUNDS
        assert len(service.service.parts.watches) == 0


async def test_a_call_cancelled_at_any_other_moment_either_runs_or_does_not_exist(tmp_path: Path) -> None:
    """Cancelled after 0, 1, 2 ... turns of the event loop that caller and server share."""
    async with ModelServer() as model, running_service(tmp_path / "home", model=model) as service:
        for turns in range(ROUNDS):
            call = service.agent.Agent(agent_pb2.AgentRequest(message="x", idempotency_key=f"{turns}", model="mock/a"))
            for _ in range(turns % 100):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            answer = await service.accept("x", idempotency_key=f"{turns}", model="mock/a")
            assert (await service.wait(answer.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        assert len(model.requests) == ROUNDS
        assert len(service.service.parts.watches) == 0
