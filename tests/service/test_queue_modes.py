"""What a message does to a session that is at work (D-7), through the whole service."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer, calls_answer, text_answer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2

INTERRUPT = agent_pb2.QUEUE_MODE_INTERRUPT
FOLLOWUP = agent_pb2.QUEUE_MODE_FOLLOWUP
INTERRUPTED = (run_pb2.RUN_STATE_CANCELLED, "interrupt")
FINISHED = (run_pb2.RUN_STATE_SUCCEEDED, "stop")


def _tool() -> RecordingTool:
    return RecordingTool("rec", hold=True)


async def _at_work(service: RunningService, model: ModelServer, tool: RecordingTool, **fields: object) -> str:
    """A run of session s that waits for its tool."""
    model.answer(calls_answer(("rec", {}), text="Let me see. "))
    run = await service.accept("first", session_key="s", **fields)
    await tool.asked.get()
    return run.run_id


async def _end_of(service: RunningService, run_id: str) -> tuple[int, str]:
    waited = await service.wait(run_id)
    return waited.state, waited.stop_reason


async def _said_in(service: RunningService, session_key: str) -> list[str]:
    page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=session_key, page_size=100))
    return [entry.user.content[0].text for entry in page.entries if entry.HasField("user")]


async def test_an_interrupting_message_stops_the_run_at_work_and_is_answered(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await _at_work(service, model, tool)
        model.answer(text_answer("on it"))
        new = await service.accept("do this instead", session_key="s", queue_mode=INTERRUPT)
        assert (new.disposition, new.queue_position) == (run_pb2.DISPOSITION_INTERRUPTED_PREVIOUS, 0)
        assert await _end_of(service, old) == INTERRUPTED
        assert await _end_of(service, new.run_id) == FINISHED
        assert (await get_run(service, new.run_id)).payloads[0].text == "on it"
        assert await _said_in(service, "s") == ["first", "do this instead"]
        # What the stopped run had said and asked for stands once, with the result that says it was stopped.
        conversation = [message["role"] for message in model.requests[-1].messages]
        assert conversation == ["system", "user", "assistant", "tool", "user"]


async def test_what_was_queued_before_an_interrupting_message_comes_before_it(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await _at_work(service, model, tool)
        queued = await service.accept("second", session_key="s")
        new = await service.accept("third", session_key="s", queue_mode=INTERRUPT)
        assert new.queue_position == 1
        assert await _end_of(service, old) == INTERRUPTED
        assert await _end_of(service, queued.run_id) == FINISHED
        assert await _end_of(service, new.run_id) == FINISHED
        assert await _said_in(service, "s") == ["first", "second", "third"]


async def test_in_a_free_session_there_is_nothing_to_interrupt(service: RunningService) -> None:
    alone = await service.accept("first", session_key="s", queue_mode=INTERRUPT)
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await _end_of(service, alone.run_id) == FINISHED


async def test_an_interrupting_message_leaves_other_sessions_alone(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        elsewhere = await service.accept("first", session_key="elsewhere")
        call = await tool.asked.get()
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT)
        assert new.disposition == run_pb2.DISPOSITION_STARTED
        assert await _end_of(service, new.run_id) == FINISHED
        call.answer.set_result(DONE)
        assert await _end_of(service, elsewhere.run_id) == FINISHED


async def test_two_interrupting_messages_stop_the_run_once_and_both_are_answered(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await _at_work(service, model, tool)
        both = await asyncio.gather(
            *(service.accept(text, session_key="s", queue_mode=INTERRUPT) for text in ("one", "two"))
        )
        assert await _end_of(service, old) == INTERRUPTED
        ends = [await _end_of(service, run.run_id) for run in both]
        # The second may have found the first one at work, and stopped that.
        assert ends[0] in (FINISHED, INTERRUPTED)
        assert ends[1] == FINISHED
        assert await _said_in(service, "s") in (["first", "one", "two"], ["first", "two"])


async def test_the_log_of_an_interrupting_message_says_that_it_waits(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        await _at_work(service, model, tool)
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT)
        await service.wait(new.run_id)
        first = (await service.events(new.run_id))[0]
        assert first.queue.phase == event_pb2.QUEUE_PHASE_QUEUED


@pytest.mark.parametrize(
    ("asked", "disposition"),
    [
        (agent_pb2.QUEUE_MODE_UNSPECIFIED, "INTERRUPTED_PREVIOUS"),
        (FOLLOWUP, "QUEUED"),
        (INTERRUPT, "INTERRUPTED_PREVIOUS"),
    ],
)
async def test_the_settings_say_what_a_message_does_that_does_not_say_it_itself(
    tmp_path: Path, model: ModelServer, asked: agent_pb2.QueueMode, disposition: str
) -> None:
    tool = _tool()
    toml = '[queue]\nmode = "interrupt"\n'
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        await _at_work(service, model, tool)
        new = await service.accept("second", session_key="s", queue_mode=asked)
        assert run_pb2.Disposition.Name(new.disposition) == f"DISPOSITION_{disposition}"


async def test_a_repeated_interrupting_message_interrupts_nothing_again(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        await _at_work(service, model, tool)
        model.answer(calls_answer(("rec", {})))
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT, idempotency_key="k")
        call = await tool.asked.get()
        again = await service.accept("now", session_key="s", queue_mode=INTERRUPT, idempotency_key="k")
        assert (again.run_id, again.duplicate, again.disposition) == (new.run_id, True, new.disposition)
        call.answer.set_result(DONE)
        assert await _end_of(service, new.run_id) == FINISHED
