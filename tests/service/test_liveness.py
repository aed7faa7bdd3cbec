"""Runs that show no sign of life are told of, stopped past their threshold, and never keep their lane (spec 02, 8)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.test_stuck_tool import StubbornTool

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.tools.interface import Tool

BEAT_S = 30.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def held() -> RecordingTool:
    return RecordingTool("held", hold=True)


@pytest.fixture
def stubborn() -> StubbornTool:
    return StubbornTool()


@pytest.fixture
def exits() -> list[int]:
    """Codes with which the process was to end at once."""
    return []


@pytest.fixture
async def service(
    tmp_path: Path,
    model: ModelServer,
    clock: FakeClock,
    held: RecordingTool,
    stubborn: StubbornTool,
    exits: list[int],
) -> AsyncIterator[RunningService]:
    toml = "[lanes.narrow]\nmax_concurrent = 1\n"
    tools: list[Tool] = [held, stubborn]
    async with running_service(
        tmp_path / "home", model=model, tools=tools, toml=toml, seams=Seams(clock=clock, exit_now=exits.append)
    ) as running:
        yield running
        stubborn.may_end.set()


async def pass_time(service: RunningService, clock: FakeClock, seconds: float) -> None:
    """Beat by beat; what a beat has begun is stored before the next."""
    for _ in range(int(seconds / BEAT_S)):
        await clock.advance(BEAT_S)
        await service.agent.ListRuns(agent_pb2.ListRunsRequest())


async def at_work_with(service: RunningService, model: ModelServer, tool: str, **fields: object) -> str:
    """A run whose tool does not come back."""
    model.answer(calls_answer((tool, {})))
    return (await service.accept("go", **fields)).run_id


async def diagnoses(service: RunningService, run_id: str) -> list[event_pb2.DiagnosticEvent]:
    """Those that its log holds by now."""
    last_seq = (await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))).last_seq
    found: list[event_pb2.DiagnosticEvent] = []
    if not last_seq:
        return found
    call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    async for event in call:
        if event.HasField("diagnostic"):
            found.append(event.diagnostic)
        if event.seq == last_seq:
            break
    call.cancel()
    return found


async def liveness(service: RunningService, run_id: str) -> str:
    return agent_pb2.Liveness.Name((await service.wait(run_id, 0)).liveness).removeprefix("LIVENESS_")


async def test_a_silent_tool_is_told_of_and_ends_its_run_after_a_quarter_of_an_hour(
    service: RunningService, model: ModelServer, clock: FakeClock, held: RecordingTool
) -> None:
    run_id = await at_work_with(service, model, "held", session_key="s")
    await held.asked.get()
    behind = (await service.accept("next", session_key="s")).run_id
    assert (await liveness(service, run_id), await liveness(service, behind)) == ("WORKING", "PAUSED")
    await pass_time(service, clock, 870)
    assert await liveness(service, run_id) == "BLOCKED"
    assert (await service.wait(run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    model.answer(text_answer("fine"))
    await pass_time(service, clock, 60)
    ended = await service.wait(run_id)
    assert (ended.state, ended.error.reason) == (run_pb2.RUN_STATE_FAILED, "RUN_STALLED")
    assert "the tool held" in ended.error.message
    assert await liveness(service, run_id) == "ABANDONED"
    assert (await service.wait(behind)).payloads[0].text == "fine"

    lines = await diagnoses(service, run_id)
    assert all(each.source == "liveness" and "blocked_tool_call" in each.text for each in lines)
    told = [each.diagnosis for each in lines]
    assert [each.event for each in told] == [*["session.stalled"] * 3, "session.recovery.requested"]
    assert [each.age.seconds for each in told[:3]] == [150, 300, 600]
    assert {(each.reason, each.tool_name, each.active_work) for each in told} == {
        ("blocked_tool_call", "held", "tool_call")
    }
    assert told[0].queue_depth == 1
    assert told[-1].action == "abort_run"


async def test_a_tool_that_ignores_everything_does_not_keep_its_session(
    service: RunningService, model: ModelServer, clock: FakeClock, stubborn: StubbornTool, exits: list[int]
) -> None:
    run_id = await at_work_with(service, model, "stubborn", session_key="s")
    await stubborn.began.wait()
    behind = (await service.accept("next", session_key="s")).run_id
    model.answer(text_answer("fine"))
    await pass_time(service, clock, 990)
    assert (await service.wait(run_id)).error.reason == "RUN_STALLED"
    assert (await service.wait(behind)).payloads[0].text == "fine"
    assert not stubborn.may_end.is_set()
    asked = len(model.requests)

    # Nor does it keep the server from leaving, or go on when it lets go at last.
    service.service.request_drain()
    assert await service.finished == 0
    assert exits == [0]
    left = [task for task in asyncio.all_tasks() if task.get_name() == f"run {run_id}"]
    stubborn.may_end.set()
    await asyncio.wait(left)
    assert len(model.requests) == asked


async def test_a_tool_that_reports_is_never_stopped(
    service: RunningService, model: ModelServer, clock: FakeClock, held: RecordingTool
) -> None:
    run_id = await at_work_with(service, model, "held", session_key="s")
    asked = await held.asked.get()
    for number in range(12):
        await pass_time(service, clock, 600)
        asked.context.report(f"line {number}")
    assert (await service.wait(run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
    assert {each.diagnosis.event for each in await diagnoses(service, run_id)} == {"session.stalled"}
    asked.answer.set_result(DONE)
    model.answer(text_answer("fine"))
    assert (await service.wait(run_id)).payloads[0].text == "fine"


async def test_a_run_that_waits_for_room_is_never_told_of(
    service: RunningService, model: ModelServer, clock: FakeClock, held: RecordingTool
) -> None:
    await at_work_with(service, model, "held", session_key="s", lane="narrow")
    asked = await held.asked.get()
    waiting = (await service.accept("wait", session_key="other", lane="narrow")).run_id
    for number in range(20):
        await pass_time(service, clock, 600)
        asked.context.report(f"line {number}")
    assert await liveness(service, waiting) == "PAUSED"
    assert await diagnoses(service, waiting) == []


async def test_switched_off_nobody_looks(
    tmp_path: Path, model: ModelServer, clock: FakeClock, held: RecordingTool
) -> None:
    toml = "[diagnostics]\nenabled = false\n"
    async with running_service(
        tmp_path / "home", model=model, tools=[held], toml=toml, seams=Seams(clock=clock)
    ) as service:
        run_id = await at_work_with(service, model, "held", session_key="s")
        await held.asked.get()
        await pass_time(service, clock, 1_800)
        assert (await service.wait(run_id, 0)).state == run_pb2.RUN_STATE_RUNNING
        assert await diagnoses(service, run_id) == []
