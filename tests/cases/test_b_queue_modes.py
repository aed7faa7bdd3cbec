"""Cases of group b about queue modes."""

from pathlib import Path

import pytest
from tests.cases.answers import said
from tests.cases.observing import check_conversations, check_idle
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams

SUCCEEDED = run_pb2.RUN_STATE_SUCCEEDED
PAUSE_S, MESSAGES = 0.4, 25
LONGEST_WAIT_S = 5.0
"""Ten times the debounce of 500 ms."""
SESSIONS = 300


async def _collect(service: RunningService, text: str, session_key: str = "s") -> run_pb2.AgentResponse:
    return await service.accept(text, session_key=session_key, queue_mode=agent_pb2.QUEUE_MODE_COLLECT)


async def _busy(service: RunningService, model: ModelServer, tool: RecordingTool) -> str:
    """A run that waits for its tool."""
    model.answer(calls_answer(("rec", {})))
    run_id = (await service.accept("busy", session_key="s")).run_id
    await tool.asked.get()
    return run_id


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
async def test_b_038_a_stream_of_messages_is_answered_in_bounded_time_and_in_order(
    tmp_path: Path, model: ModelServer, is_busy: bool
) -> None:
    tool, clock = RecordingTool("rec", hold=True), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        busy_run_id = await _busy(service, model, tool) if is_busy else ""
        sent: list[str] = []
        for number in range(MESSAGES):
            sent.append((await _collect(service, f"m{number:02}")).run_id)
            if is_busy and number == 2:
                tool.calls[0].answer.set_result(DONE)
                await service.wait(busy_run_id)
            if not is_busy:
                assert (await service.wait(sent[-1])).state == SUCCEEDED
            await clock.advance(PAUSE_S)
            if is_busy and (number + 1) * PAUSE_S >= LONGEST_WAIT_S:
                assert (await service.wait(sent[0])).state == SUCCEEDED
        await clock.advance(LONGEST_WAIT_S)
        for run_id in sent:
            assert (await service.wait(run_id)).state == SUCCEEDED
        texts = "\n".join(said(model))
        places = [texts.rindex(f"m{number:02}") for number in range(MESSAGES)]
        assert places == sorted(places)
        if is_busy:
            assert any("m00" in text and "m11" in text for text in said(model)), "what waited shares a turn"
            assert len(model.requests) < MESSAGES
        else:
            assert len(model.requests) == MESSAGES, "a message that finds its session free waits for no other"
        check_conversations(model)
        await check_idle(service)


async def test_b_038_a_command_between_two_messages_is_done_at_once_and_they_keep_their_order(
    tmp_path: Path, model: ModelServer
) -> None:
    """Documented: a command is done when it comes, whatever waits before it."""
    tool, clock = RecordingTool("rec", hold=True), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        busy_run_id = await _busy(service, model, tool)
        first = await _collect(service, "m1")
        command = await _collect(service, "/queue cap:5")
        second = await _collect(service, "m2")
        assert command.disposition == run_pb2.DISPOSITION_COMPLETED
        tool.calls[0].answer.set_result(DONE)
        await service.wait(busy_run_id)
        await clock.advance(0.5)
        for run in (first, second):
            assert (await service.wait(run.run_id)).state == SUCCEEDED
        turn = said(model)[-1]
        assert turn.index("m1") < turn.index("m2")
        assert "/queue" not in turn
        check_conversations(model)
        await check_idle(service)


async def test_b_038_messages_that_are_cancelled_while_they_are_held_leave_no_timer(
    tmp_path: Path, model: ModelServer
) -> None:
    """With 300 sessions instead of 5,000."""
    tool, clock = RecordingTool("rec", hold=True), FakeClock()
    toml = "[lanes.shut]\nmax_concurrent = 0\n"
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)
    ) as service:
        before = clock.timer_count
        for number in range(SESSIONS):
            await service.accept("busy", session_key=f"s{number}", lane="shut")
            await _collect(service, "held", session_key=f"s{number}")
        assert clock.timer_count == before + SESSIONS
        for number in range(SESSIONS):
            request = agent_pb2.AbortRequest(session_key=f"s{number}", clear_queued=True)
            assert len((await service.agent.Abort(request)).cancelled_run_ids) == 2
        assert clock.timer_count == before
        await check_idle(service)


async def test_b_034_tool_calls_that_have_not_begun_are_skipped_for_a_steering_message(
    tmp_path: Path, model: ModelServer
) -> None:
    tool, after = RecordingTool("rec", hold=True, is_sequential=True), RecordingTool("after", is_sequential=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool, after]) as service:
        model.answer(calls_answer(("rec", {}), ("after", {"n": 1}), ("after", {"n": 2})))
        host = (await service.accept("go", session_key="s")).run_id
        call = await tool.asked.get()
        steer = await service.accept("stop, use B", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_STEER)
        call.answer.set_result(DONE)
        for run_id in (host, steer.run_id):
            assert (await service.wait(run_id)).state == SUCCEEDED
        assert after.calls == []
        messages = model.requests[-1].messages[1:]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "tool", "user"]
        asked = [each["id"] for each in messages[1]["tool_calls"]]
        assert [message["tool_call_id"] for message in messages[2:5]] == asked
        assert messages[2]["content"] == "done"
        assert all("newer message" in message["content"] for message in messages[3:5])
        assert messages[5]["content"] == "stop, use B"
        results = [
            event.tool for event in await service.events(host) if event.tool.phase == event_pb2.TOOL_PHASE_RESULT
        ]
        assert [result.outcome for result in results] == [
            event_pb2.TOOL_OUTCOME_OK,
            event_pb2.TOOL_OUTCOME_SKIPPED,
            event_pb2.TOOL_OUTCOME_SKIPPED,
        ]
