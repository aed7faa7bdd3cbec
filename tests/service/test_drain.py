"""Leaving, phase by phase (D-18), in process: announce, refuse, park, cut, tell; and going on after the restart."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import Answer, calls_answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import Expected, Reading, check_outcome, get_run, read_ended
from tests.service.refusals import refused, refused_stream

from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import StartRun

SUCCEEDED, RUNNING, QUEUED = run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_QUEUED
ANNOUNCE_S, TIMEOUT_S, PARK_S = 5.0, 30.0, 10.0
SETTINGS = f"[drain]\nannounce_s = {ANNOUNCE_S}\ntimeout_s = {TIMEOUT_S}\npark_s = {PARK_S}\n"
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass
class Stage:
    """A service whose clock stands still, with a tool that waits for the test."""

    service: RunningService
    model: ModelServer
    tool: RecordingTool
    clock: FakeClock

    async def at_work(self, session_key: str = "s") -> str:
        """A run that stands in a tool call."""
        self.model.answer(calls_answer(("rec", {}), text="Working. "))
        accepted = await self.service.accept(session_key=session_key)
        await self.tool.asked.get()
        return accepted.run_id

    async def drain(self) -> None:
        """Begin to leave."""
        await self.service.admin.Drain(admin_pb2.DrainRequest())

    async def phase_over(self, seconds: float) -> None:
        """The phase's time passes, and the next phase has begun."""
        timers = self.clock.timer_count
        await self.clock.advance(seconds)
        await self.clock.wait_for_timers(timers)

    async def state(self, run_id: str) -> run_pb2.RunState:
        """Where a run stands."""
        return (await get_run(self.service, run_id)).state


@asynccontextmanager
async def staged(home: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    """A service on `home`."""
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(home, model=model, tools=[tool], toml=SETTINGS, seams=Seams(clock=clock)) as service:
        yield Stage(service, model, tool, clock)


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncIterator[Stage]:
    async with staged(tmp_path / "home", model) as stage:
        yield stage


async def after_restart(stage: Stage, run_id: str, expected: Expected) -> tuple[Reading, RecordingTool]:
    """The run as it ends in the next process."""
    assert await stage.service.finished == 0
    async with staged(stage.service.home, stage.model) as again:
        return await check_outcome(again.service, run_id, expected), again.tool


async def test_readiness_goes_at_once_and_liveness_stays(stage: Stage) -> None:
    # The annotations of grpcio-health-checking lack two of its three methods.
    health: Any = stage.service.health
    watch = health.Watch(health_pb2.HealthCheckRequest(service="laneway.v1.AgentService"))
    assert (await watch.read()).status == SERVING
    run_id = await stage.at_work()
    await stage.drain()
    assert (await watch.read()).status == NOT_SERVING
    statuses = (await health.List(health_pb2.HealthListRequest())).statuses  # type: ignore[attr-defined]
    assert {name for name, answer in statuses.items() if answer.status == SERVING} == {"laneway.liveness"}
    assert {"", "laneway.v1.AgentService", "laneway.v1.SessionService", "laneway.v1.AdminService"} < set(statuses)
    assert (await stage.service.admin.GetStatus(admin_pb2.GetStatusRequest())).draining
    await stage.service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))


async def test_while_it_is_announced_messages_are_taken_and_none_is_started(stage: Stage) -> None:
    run_id = await stage.at_work()
    await stage.drain()
    accepted = await stage.service.accept(session_key="new", idempotency_key="k")
    assert await stage.state(accepted.run_id) == QUEUED
    await stage.phase_over(ANNOUNCE_S)
    refusal = await refused(stage.service.accept(session_key="newer"))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert refusal.retry_after_s is not None
    assert (await stage.service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))).state == RUNNING
    stage.tool.calls[-1].answer.set_result(DONE)
    assert (await stage.service.wait(run_id)).status == agent_pb2.WAIT_STATUS_OK
    expected = Expected(SUCCEEDED, "stop", payloads=("ok",))
    reading, _ = await after_restart(stage, accepted.run_id, expected)
    assert reading.run.attempt == 1


async def test_the_server_leaves_as_soon_as_nothing_runs(stage: Stage) -> None:
    run_id = await stage.at_work()
    queued = await stage.service.accept(session_key="s")
    waiting = [asyncio.create_task(stage.service.wait(each, 1000)) for each in (run_id, queued.run_id)]
    await stage.clock.wait_for_timers(3)
    await stage.drain()
    await stage.phase_over(ANNOUNCE_S)
    stage.model.answer(text_answer("done in time"))
    stage.tool.calls[-1].answer.set_result(DONE)
    ended, left = await asyncio.gather(*waiting)
    assert (ended.status, ended.payloads[0].text) == (agent_pb2.WAIT_STATUS_OK, "done in time")
    assert (left.state, left.timeout_kind) == (QUEUED, agent_pb2.TIMEOUT_KIND_DRAINING)
    assert await stage.service.finished == 0
    assert stage.clock.monotonic() == ANNOUNCE_S


async def test_in_the_last_part_a_run_is_parked_before_its_next_step(stage: Stage) -> None:
    run_id = await stage.at_work()
    waiting = asyncio.create_task(stage.service.wait(run_id, 1000))
    await stage.clock.wait_for_timers(2)
    await stage.drain()
    await stage.phase_over(ANNOUNCE_S)
    await stage.phase_over(TIMEOUT_S - PARK_S - ANNOUNCE_S)
    stage.tool.calls[-1].answer.set_result(DONE)
    waited = await waiting
    assert (waited.state, waited.timeout_kind) == (RUNNING, agent_pb2.TIMEOUT_KIND_DRAINING)
    assert len(stage.model.requests) == 1
    stage.model.answer(text_answer("gone on"))
    reading, tool = await after_restart(stage, run_id, Expected(SUCCEEDED, "stop", payloads=("gone on",)))
    assert tool.calls == []
    results = [message for message in stage.model.requests[-1].messages if message["role"] == "tool"]
    assert [result["content"] for result in results] == ["done"]
    _check_recovered(reading)


async def test_a_tool_that_is_still_at_work_at_the_end_is_cut_and_not_run_again(stage: Stage) -> None:
    run_id = await stage.at_work()
    await stage.drain()
    await stage.phase_over(ANNOUNCE_S)
    await stage.phase_over(TIMEOUT_S - PARK_S - ANNOUNCE_S)
    assert stage.tool.cancelled == []
    await stage.clock.advance(PARK_S)
    stage.model.answer(text_answer("seen"))
    reading, tool = await after_restart(stage, run_id, Expected(SUCCEEDED, "stop", payloads=("seen",)))
    assert len(stage.tool.cancelled) == 1
    assert tool.calls == []
    _check_cut(stage, reading)


async def test_a_second_request_cuts_at_once(stage: Stage) -> None:
    run_id = await stage.at_work()
    await stage.drain()
    await stage.drain()
    stage.model.answer(text_answer("seen"))
    reading, _ = await after_restart(stage, run_id, Expected(SUCCEEDED, "stop", payloads=("seen",)))
    assert stage.clock.monotonic() == 0
    _check_cut(stage, reading)


def _check_cut(stage: Stage, reading: Reading) -> None:
    results = [event.tool for event in reading.of_kind("tool") if event.tool.phase == event_pb2.TOOL_PHASE_RESULT]
    assert [(result.outcome, result.is_error) for result in results] == [(event_pb2.TOOL_OUTCOME_ABORTED, True)]
    told = [message["content"] for message in stage.model.requests[-1].messages if message["role"] == "tool"]
    assert len(told) == 1
    assert "stopped by a restart" in told[0]
    _check_recovered(reading)


def _check_recovered(reading: Reading) -> None:
    """One START, one RECOVERED that voids nothing, and a second dispatch."""
    assert len(reading.phases(event_pb2.LIFECYCLE_PHASE_START)) == 1
    recovered = reading.phases(event_pb2.LIFECYCLE_PHASE_RECOVERED)
    assert [(each.attempt, each.void_message_id) for each in recovered] == [(2, "")]
    assert reading.run.attempt == 2


async def test_a_model_call_that_is_cut_is_made_again_and_what_it_said_is_void(stage: Stage) -> None:
    stage.model.answer(Answer([delta(content="Half a "), asyncio.Event()]))
    accepted = await stage.service.accept(session_key="s")
    subscription = stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0))
    while not (await subscription.read()).assistant.delta:
        pass
    subscription.cancel()
    await stage.drain()
    await stage.drain()
    stage.model.answer(text_answer("A whole one"))
    expected = Expected(SUCCEEDED, "stop", payloads=("A whole one",))
    reading, _ = await after_restart(stage, accepted.run_id, expected)
    [recovered] = reading.phases(event_pb2.LIFECYCLE_PHASE_RECOVERED)
    deltas = [event.assistant for event in reading.of_kind("assistant")]
    assert "".join(part.delta for part in deltas if part.message_id == recovered.void_message_id) == "Half a "
    assert "".join(part.delta for part in deltas if part.message_id != recovered.void_message_id) == "A whole one"


async def test_however_often_it_is_handed_over_a_run_is_not_charged(tmp_path: Path, model: ModelServer) -> None:
    model.answer(*(Answer([asyncio.Event()]) for _ in range(5)))
    run_id = ""
    for number in range(5):
        async with staged(tmp_path / "home", model) as stage:
            run_id = run_id or (await stage.service.accept()).run_id
            await model.received(number + 1)
    async with staged(tmp_path / "home", model) as stage:
        reading = await check_outcome(stage.service, run_id, Expected(SUCCEEDED, "stop", payloads=("ok",)))
        assert reading.run.attempt == 6


@pytest.mark.parametrize("target", ["run", "run from its end", "session", "all"])
async def test_a_subscription_ends_with_a_cursor_that_goes_on_after_the_restart(stage: Stage, target: str) -> None:
    run_id = await stage.at_work()
    last_seq = (await get_run(stage.service, run_id)).last_seq
    fields: dict[str, dict[str, Any]] = {
        "run": {"run_id": run_id, "after_seq": 0},
        "run from its end": {"run_id": run_id, "after_seq": last_seq},
        "session": {"session_key": "s"},
        "all": {"all": True},
    }
    timers = stage.clock.timer_count
    subscription = stage.service.agent.Subscribe(agent_pb2.SubscribeRequest(**fields[target]))
    await stage.clock.wait_for_timers(timers + 1)
    seqs: list[int] = []
    ending = asyncio.create_task(refused_stream(_noting(subscription, seqs)))
    await stage.drain()
    await stage.drain()
    refusal = await ending
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert refusal.retry_after_s is not None
    assert await stage.service.finished == 0
    first_new = (seqs[-1] if seqs else last_seq) + 1
    async with staged(stage.service.home, stage.model) as again:
        log = await again.service.events((await read_ended(again.service, run_id)).run.run_id)
        going_on = again.service.agent.Subscribe(
            agent_pb2.SubscribeRequest(
                session_key="s", cursor=refusal.metadata["cursor"], verbose=agent_pb2.VERBOSITY_FULL
            )
        )
        assert await going_on.read() == log[first_new - 1]
        going_on.cancel()


async def _noting(subscription: Any, seqs: list[int]) -> AsyncIterator[None]:
    async for event in subscription:
        seqs.append(event.seq)
        yield


async def test_a_run_that_is_cut_while_its_start_is_being_stored_goes_on_after_the_restart(
    tmp_path: Path, model: ModelServer
) -> None:
    gate = HoldingGate(lambda command: isinstance(command, StartRun), after=True)
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        accepted = await service.accept()
        await gate.reached()
        service.service.request_drain()
        service.service.request_drain()
        await asyncio.sleep(0)
        gate.release()
        await service.finished
    assert model.requests == []
    async with running_service(tmp_path / "home", model=model) as service:
        reading = await read_ended(service, accepted.run_id)
        assert reading.waited.status == agent_pb2.WAIT_STATUS_OK
        assert reading.run.attempt == 2
    assert len(model.requests) == 1
