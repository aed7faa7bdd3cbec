"""Leaving without losing anything (D-18), as a process: signals, health, exit code, what the next start finds."""

import asyncio
import os
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.fakes.model_answers import Answer, calls_answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import refusal_of
from tests.processes.conftest import MakeServer
from tests.processes.ledger_tools import read_ledger
from tests.processes.reading import results_of

from laneway.v1 import admin_pb2, agent_pb2, run_pb2
from lanewayd.app import STOP_GRACE_S

pytestmark = pytest.mark.timeout(180)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
PARK_AT_ONCE = "[drain]\ntimeout_s = 100\npark_s = 100\n"


async def _tool_at_work(server: ServerProcess, model: ModelServer) -> run_pb2.AgentResponse:
    """A run whose tool waits for `_let_tool_end`."""
    os.mkfifo(server.ledger.with_suffix(".gate"))
    model.answer(calls_answer(("ledger", {"token": "a", "then": "wait"})))
    accepted = await server.accept("go", session_key="s")
    await server.notice("effect", "a")
    return accepted


def _let_tool_end(server: ServerProcess) -> None:
    descriptor = os.open(server.ledger.with_suffix(".gate"), os.O_RDWR)
    os.write(descriptor, b"x")
    # Kept open until the process ends: the byte goes with the last descriptor.


async def _refusal(call: "asyncio.Future[object]") -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    return refusal_of(caught.value).reason


@pytest.mark.parametrize("way", ["SIGTERM", "Drain"])
async def test_a_run_that_ends_during_the_drain_is_answered_and_the_exit_code_is_0(
    make_server: MakeServer, model: ModelServer, way: str
) -> None:
    server = make_server()
    await server.start()
    accepted = await _tool_at_work(server, model)
    queued = await server.accept("later", session_key="s")
    waits = [asyncio.ensure_future(server.wait(run_id)) for run_id in (accepted.run_id, queued.run_id)]
    if way == "SIGTERM":
        server.terminate()
    else:
        await server.admin.Drain(admin_pb2.DrainRequest())
    await server.reaches(NOT_SERVING)
    await server.reaches(NOT_SERVING, "laneway.v1.AgentService")
    await server.reaches(SERVING, "laneway.liveness")
    assert await _refusal(asyncio.ensure_future(server.accept("too late"))) == "DRAINING"
    # Everything else goes on.
    assert (await server.agent.GetRun(agent_pb2.GetRunRequest(run_id=queued.run_id))).state == run_pb2.RUN_STATE_QUEUED
    _let_tool_end(server)
    ended, left = await asyncio.gather(*waits)
    assert (ended.status, ended.state) == (agent_pb2.WAIT_STATUS_OK, run_pb2.RUN_STATE_SUCCEEDED)
    assert (left.status, left.timeout_kind) == (agent_pb2.WAIT_STATUS_TIMEOUT, agent_pb2.TIMEOUT_KIND_DRAINING)
    assert left.state == run_pb2.RUN_STATE_QUEUED
    assert await server.exited() == 0

    await server.start()
    assert (await server.wait(queued.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_OK"}


async def test_open_subscriptions_and_health_watches_do_not_delay_the_exit(make_server: MakeServer) -> None:
    server = make_server()
    await server.start()
    await server.wait((await server.accept("one", session_key="s")).run_id)
    subscriptions = [
        server.agent.Subscribe(agent_pb2.SubscribeRequest(all=True)),
        server.agent.Subscribe(agent_pb2.SubscribeRequest(session_key="s")),
    ]
    cursor = ""
    async for event in subscriptions[1]:
        cursor = event.cursor
        if event.lifecycle.ended_at.seconds:
            break
    watches = [server.health.Watch(health_pb2.HealthCheckRequest(service=name)) for name in ("", "laneway.liveness")]
    for watch in watches:
        assert (await watch.read()).status == SERVING
    began = time.monotonic()
    server.terminate()
    told = []
    for subscription in subscriptions:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in subscription:
                pass
        told.append(refusal_of(caught.value))
    assert {(refusal.status, refusal.reason) for refusal in told} == {(grpc.StatusCode.UNAVAILABLE, "DRAINING")}
    assert told[1].metadata["cursor"] == cursor
    assert await server.exited() == 0
    # The grace is for calls that are being answered; nobody used it up.
    assert time.monotonic() - began < STOP_GRACE_S
    for watch in watches:
        watch.cancel()


async def test_a_run_that_reaches_its_next_step_is_parked_and_goes_on_after_the_restart(
    make_server: MakeServer, model: ModelServer
) -> None:
    server = make_server(toml=PARK_AT_ONCE)
    await server.start()
    accepted = await _tool_at_work(server, model)
    waiting = asyncio.ensure_future(server.wait(accepted.run_id))
    await server.agent.ListRuns(agent_pb2.ListRunsRequest())  # on the same connection: the wait has arrived
    server.terminate()
    await server.reaches(NOT_SERVING)
    _let_tool_end(server)
    left = await waiting
    assert (left.timeout_kind, left.state) == (agent_pb2.TIMEOUT_KIND_DRAINING, run_pb2.RUN_STATE_RUNNING)
    assert await server.exited() == 0
    assert len(model.requests) == 1

    model.answer(text_answer("went on"))
    await server.start()
    waited = await server.wait(accepted.run_id)
    assert [payload.text for payload in waited.payloads] == ["went on"]
    # The tool ended before it had to: its result is its own.
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_OK"}
    assert [line.what for line in read_ledger(server.ledger)] == ["begin", "effect", "end"]


async def test_handing_over_is_not_charged(make_server: MakeServer, model: ModelServer) -> None:
    """Cut in its first model call by more drains than crashes are forgiven."""
    server = make_server(toml="[drain]\ntimeout_s = 0\npark_s = 0\n")
    await server.start()
    held = Answer([delta(content="half "), asyncio.Event()])
    model.answer(*[held] * 5, text_answer("whole"))
    accepted = await server.accept("go", session_key="s")
    for number in range(5):
        await model.received(number + 1)
        server.terminate()
        assert await server.exited() == 0
        await server.start()
    waited = await server.wait(accepted.run_id)
    assert [payload.text for payload in waited.payloads] == ["whole"]
    run = await server.agent.GetRun(agent_pb2.GetRunRequest(run_id=accepted.run_id))
    assert run.attempt == 6


async def test_a_second_signal_cuts_what_runs(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server()
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "a", "then": "hang"})))
    accepted = await server.accept("go", session_key="s")
    await server.notice("effect", "a")
    server.terminate()
    await server.reaches(NOT_SERVING)
    server.terminate()
    assert await server.exited() == 0

    await server.start()
    assert (await server.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_ABORTED"}
    assert [line.what for line in read_ledger(server.ledger)] == ["begin", "effect", "end"]
    assert "stopped by a restart" in str(model.requests[-1].messages[-1]["content"])


async def test_what_still_runs_at_the_end_of_the_drain_is_cut(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server(toml="[drain]\ntimeout_s = 0.2\npark_s = 0.1\n")
    await server.start()
    model.answer(calls_answer(("ledger", {"token": "a", "then": "hang"})))
    accepted = await server.accept("go", session_key="s")
    await server.notice("effect", "a")
    server.terminate()
    assert await server.exited() == 0
    await server.start()
    assert (await server.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert await results_of(server, "s") == {"a": "TOOL_OUTCOME_ABORTED"}


async def test_messages_are_accepted_until_the_announcement_is_over(make_server: MakeServer) -> None:
    server = make_server(toml="[drain]\nannounce_s = 30\n")
    await server.start()
    server.terminate()
    await server.reaches(NOT_SERVING)
    accepted = await server.accept("still", session_key="s")
    waiting = asyncio.ensure_future(server.wait(accepted.run_id))
    await server.agent.ListRuns(agent_pb2.ListRunsRequest())  # on the same connection: the wait has arrived
    server.terminate()
    assert (await waiting).timeout_kind == agent_pb2.TIMEOUT_KIND_DRAINING
    assert await server.exited() == 0
    await server.start()
    assert (await server.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
