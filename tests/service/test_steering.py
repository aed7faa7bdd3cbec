"""Messages that go into the run at work (D-7; spec 02, 5), through the whole service."""

import asyncio
from pathlib import Path

from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_answers import DONE as STREAM_END
from tests.fakes.model_answers import Answer, delta, event, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.busy_session import (
    FINISHED,
    FOLLOWUP,
    QUEUED,
    at_work,
    end_of,
    held_tool,
    said_in,
)

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.records import EntryKind
from lanewayd.store.interface import AppendToRun

STEER = agent_pb2.QUEUE_MODE_STEER


def _is_answer(command: object) -> bool:
    """The final message of a run, whose end is a command of its own."""
    if not isinstance(command, AppendToRun) or command.changes[-1].end is not None:
        return False
    return any(entry.kind is EntryKind.ASSISTANT for change in command.changes for entry in change.entries)


async def _has_said(service: RunningService, run_id: str, text: str) -> None:
    call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    async for each in call:
        if each.assistant.delta == text:
            break
    call.cancel()


async def _steer(service: RunningService, text: str, **fields: object) -> run_pb2.AgentResponse:
    return await service.accept(text, session_key="s", queue_mode=STEER, **fields)


def _roles(model: ModelServer) -> list[str]:
    return [message["role"] for message in model.requests[-1].messages[1:]]


async def _queue_phases(service: RunningService, run_id: str) -> list[str]:
    return [
        event_pb2.QueuePhase.Name(each.queue.phase).removeprefix("QUEUE_PHASE_")
        for each in await service.events(run_id)
        if each.HasField("queue")
    ]


async def test_a_steering_message_goes_into_the_run_at_work_before_its_next_model_call(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool)
        steer = await _steer(service, "use the other file")
        assert (steer.disposition, steer.queue_position) == (run_pb2.DISPOSITION_STEERED, 0)
        session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
        assert (session.active_run_id, session.queued_runs) == (host, 0)
        model.answer(text_answer("with the other file"))
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, steer.run_id):
            assert await end_of(service, run_id) == FINISHED
        assert _roles(model) == ["user", "assistant", "tool", "user"]
        assert model.requests[-1].messages[-1]["content"] == "use the other file"
        run = await get_run(service, steer.run_id)
        assert run.merged_into_run_id == host
        assert [payload.text for payload in run.payloads] == ["with the other file"]
        assert not run.HasField("usage")
        assert await _queue_phases(service, steer.run_id) == ["STEERED", "INJECTED"]
        assert await _queue_phases(service, host) == ["INJECTED"]
        assert await said_in(service, "s") == ["first", "use the other file"]
        assert len(model.requests) == 2


async def test_a_message_that_steers_while_the_model_answers_gets_an_answer_of_its_own(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path / "home", model=model) as service:
        held = asyncio.Event()
        model.answer(Answer([delta(content="the first "), held, delta(content="answer"), delta("stop"), STREAM_END]))
        host = (await service.accept("first", session_key="s")).run_id
        await model.received(1)
        await _has_said(service, host, "the first ")
        steers = [await _steer(service, text) for text in ("and this", "and that")]
        model.answer(text_answer("the second answer"))
        held.set()
        for run_id in (host, *(steer.run_id for steer in steers)):
            assert await end_of(service, run_id) == FINISHED
        assert _roles(model) == ["user", "assistant", "user", "user"]
        ended = [each.message.text for each in await service.events(host) if each.message.role == "assistant"]
        assert ended == ["the first answer", "the second answer"]
        assert [payload.text for payload in (await get_run(service, host)).payloads] == ["the second answer"]


async def test_a_run_does_not_end_while_a_message_waits_to_go_into_it(tmp_path: Path, model: ModelServer) -> None:
    """The message is accepted between the last look of the loop and the end of the run."""
    gate = HoldingGate(_is_answer)
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        # The end of the stream brings no further text, so that the message is stored by a COMMIT of its own.
        shown = asyncio.Event()
        usage = event(id="c", choices=[], usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5})
        model.answer(Answer([delta(content="one"), shown, delta("stop"), usage, STREAM_END]), text_answer("two"))
        host = (await service.accept("first", session_key="s")).run_id
        await _has_said(service, host, "one")
        shown.set()
        await gate.reached()
        accepting = asyncio.create_task(_steer(service, "late"))
        registry = service.service.runs.registry  # only there it shows that the message is on its way
        while not registry.entering:  # noqa: ASYNC110
            await asyncio.sleep(0)
        gate.release()
        steer = await accepting
        assert steer.disposition == run_pb2.DISPOSITION_STEERED
        for run_id in (host, steer.run_id):
            assert await end_of(service, run_id) == FINISHED
        assert (await get_run(service, steer.run_id)).merged_into_run_id == host
        ended = [each.message.text for each in await service.events(host) if each.message.role == "assistant"]
        assert ended == ["one", "two"]


async def test_a_message_that_comes_when_the_end_is_written_has_a_turn_of_its_own(
    tmp_path: Path, model: ModelServer
) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun) and command.changes[-1].end is not None)
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        host = (await service.accept("first", session_key="s")).run_id
        await gate.reached()
        accepting = asyncio.create_task(_steer(service, "late"))
        registry = service.service.runs.registry
        while not registry.entering:  # noqa: ASYNC110
            await asyncio.sleep(0)
        gate.release()
        steer = await accepting
        assert steer.disposition == run_pb2.DISPOSITION_STARTED
        for run_id in (host, steer.run_id):
            assert await end_of(service, run_id) == FINISHED
        assert (await get_run(service, steer.run_id)).merged_into_run_id == ""


async def test_a_message_that_cannot_go_into_the_run_waits_and_so_do_later_ones(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool)
        other = await _steer(service, "with other tools", tools_deny=["rec"])
        later = await _steer(service, "with the same tools")
        assert [run.disposition for run in (other, later)] == [QUEUED, QUEUED]
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, other.run_id, later.run_id):
            assert await end_of(service, run_id) == FINISHED
        assert await said_in(service, "s") == ["first", "with other tools", "with the same tools"]


async def test_in_a_free_session_a_steering_message_starts_a_run(service: RunningService) -> None:
    alone = await _steer(service, "now")
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await end_of(service, alone.run_id) == FINISHED


async def test_a_steering_message_overtakes_what_is_queued(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool)
        queued = await service.accept("queued", session_key="s", queue_mode=FOLLOWUP)
        steer = await _steer(service, "steered")
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, queued.run_id, steer.run_id):
            assert await end_of(service, run_id) == FINISHED
        assert await said_in(service, "s") == ["first", "steered", "queued"]


async def test_messages_whose_run_is_aborted_are_queued_again_in_the_order_in_which_they_came(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool)
        steered = await _steer(service, "second")
        queued = await service.accept("third", session_key="s", queue_mode=FOLLOWUP)
        also = await _steer(service, "fourth")
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=host))
        assert await end_of(service, host) == (run_pb2.RUN_STATE_CANCELLED, "rpc")
        for run in (steered, queued, also):
            assert await end_of(service, run.run_id) == FINISHED
            assert (await get_run(service, run.run_id)).merged_into_run_id == ""
        assert await said_in(service, "s") == ["first", "second", "third", "fourth"]
        assert await _queue_phases(service, steered.run_id) == ["STEERED", "DETACHED", "STARTED"]
        detached = [(await service.events(run.run_id))[1].queue for run in (steered, also)]
        assert [(change.host_run_id, change.position) for change in detached] == [(host, 0), (host, 2)]


async def test_a_steering_message_can_be_withdrawn_before_it_goes_in(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool)
        steer = await _steer(service, "never mind")
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=steer.run_id))
        assert list(receipt.cancelled_run_ids) == [steer.run_id]
        assert await end_of(service, steer.run_id) == (run_pb2.RUN_STATE_CANCELLED, "rpc")
        assert (await get_run(service, steer.run_id)).merged_into_run_id == ""
        assert (await service.wait(steer.run_id)).merged_into_run_id == ""
        assert service.service.runs.scheduler.attached.count == 0
        tool.calls[0].answer.set_result(DONE)
        assert await end_of(service, host) == FINISHED
        assert await said_in(service, "s") == ["first"]
        assert len(model.requests) == 2


async def test_messages_of_a_channel_steer_unless_something_else_is_said(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await at_work(service, model, tool, channel="chat")
        steer = await service.accept("from the channel", session_key="s", channel="chat")
        assert steer.disposition == run_pb2.DISPOSITION_STEERED
        without = await service.accept("from nowhere", session_key="s")
        assert without.disposition == QUEUED
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, steer.run_id, without.run_id):
            assert await end_of(service, run_id) == FINISHED
