"""What a message does to a session that is at work (D-7), through the whole service."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import DONE as STREAM_END
from tests.fakes.model_server import Answer, ModelServer, calls_answer, delta, event, text_answer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.refusals import all_that_is_stored, refused

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.records import EntryKind
from lanewayd.store.interface import AppendToRun

STEER = agent_pb2.QUEUE_MODE_STEER
COLLECT = agent_pb2.QUEUE_MODE_COLLECT
INTERRUPT = agent_pb2.QUEUE_MODE_INTERRUPT
FOLLOWUP = agent_pb2.QUEUE_MODE_FOLLOWUP
QUEUED, COLLECTED = run_pb2.DISPOSITION_QUEUED, run_pb2.DISPOSITION_COLLECTED
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


# --- COLLECT ---


async def _collecting(service: RunningService, *texts: str, **fields: object) -> list[run_pb2.AgentResponse]:
    return [await service.accept(text, session_key="s", queue_mode=COLLECT, **fields) for text in texts]


async def test_messages_that_are_collected_share_one_turn_and_end_alike(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = _tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await _at_work(service, model, tool)
        host, *members = await _collecting(service, "one", "two", "three")
        assert [run.disposition for run in (host, *members)] == [QUEUED, COLLECTED, COLLECTED]
        assert [run.queue_position for run in (host, *members)] == [0, 1, 2]
        tool.calls[0].answer.set_result(DONE)
        assert await _end_of(service, first) == FINISHED
        model.answer(text_answer("all three"))
        await clock.advance(0.5)
        assert await _end_of(service, host.run_id) == FINISHED
        hosted = await get_run(service, host.run_id)
        assert hosted.merged_into_run_id == ""
        for member in members:
            run = await get_run(service, member.run_id)
            waited = await service.wait(member.run_id)
            assert (run.state, run.stop_reason) == (waited.state, waited.stop_reason) == FINISHED
            assert run.merged_into_run_id == waited.merged_into_run_id == host.run_id
            assert [payload.text for payload in run.payloads] == ["all three"]
            assert run.ended_at == hosted.ended_at
            queued, collected, end = await service.events(member.run_id)
            assert queued.queue.phase == event_pb2.QUEUE_PHASE_QUEUED
            assert collected.queue == event_pb2.QueueEvent(
                phase=event_pb2.QUEUE_PHASE_COLLECTED, host_run_id=host.run_id
            )
            assert end.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END
        said = (await _said_in(service, "s"))[-1]
        assert [said.index(text) for text in ("one", "two", "three")] == sorted(
            map(said.index, ("one", "two", "three"))
        )
        assert host.run_id in said
        session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
        used = [(await get_run(service, run_id)).usage for run_id in (first, host.run_id)]
        assert session.usage.total_tokens == sum(usage.total_tokens for usage in used)
        assert (session.active_run_id, session.queued_runs) == ("", 0)


async def test_a_collected_turn_waits_until_no_message_has_come_for_a_while(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = _tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await _at_work(service, model, tool)
        (host,) = await _collecting(service, "one")
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.4)
        (late,) = await _collecting(service, "two")
        await clock.advance(0.4)
        assert (await get_run(service, host.run_id)).state == run_pb2.RUN_STATE_QUEUED
        await clock.advance(0.1)
        assert await _end_of(service, host.run_id) == FINISHED
        assert (await get_run(service, late.run_id)).merged_into_run_id == host.run_id


async def test_collecting_stops_at_a_message_of_another_kind(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = _tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await _at_work(service, model, tool)
        host, member = await _collecting(service, "one", "two")
        between = await service.accept("alone", session_key="s", queue_mode=FOLLOWUP)
        (other,) = await _collecting(service, "three", label="mine")
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.5)
        for run in (host, member, between, other):
            assert await _end_of(service, run.run_id) == FINISHED
        merged = [(await get_run(service, run.run_id)).merged_into_run_id for run in (host, member, between, other)]
        assert merged == ["", host.run_id, "", ""]
        assert (await _said_in(service, "s"))[-2:] == ["alone", "three"]


async def test_when_the_oldest_of_the_collected_is_cancelled_the_next_one_is_the_host(
    tmp_path: Path, model: ModelServer
) -> None:
    tool, clock = _tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await _at_work(service, model, tool)
        oldest, second, third = await _collecting(service, "one", "two", "three")
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=oldest.run_id))
        assert list(receipt.cancelled_run_ids) == [oldest.run_id]
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.5)
        assert await _end_of(service, second.run_id) == FINISHED
        assert (await get_run(service, third.run_id)).merged_into_run_id == second.run_id
        assert "one" not in (await _said_in(service, "s"))[-1]


async def test_a_collected_message_ends_as_its_host_does(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = _tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await _at_work(service, model, tool)
        host, member = await _collecting(service, "one", "two")
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        model.answer(calls_answer(("rec", {}), text="Thinking. "))
        await clock.advance(0.5)
        await tool.asked.get()
        running = await service.agent.Wait(agent_pb2.WaitRequest(run_id=member.run_id, timeout=Duration()))
        assert (running.status, running.state) == (agent_pb2.WAIT_STATUS_TIMEOUT, run_pb2.RUN_STATE_MERGED)
        assert running.merged_into_run_id == host.run_id
        # It is part of its host: there is nothing of its own left to stop.
        assert await service.agent.Abort(agent_pb2.AbortRequest(run_id=member.run_id)) == agent_pb2.AbortResponse()
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=host.run_id))
        for run in (host, member):
            waited = await service.wait(run.run_id)
            assert (waited.state, waited.stop_reason) == (run_pb2.RUN_STATE_CANCELLED, "rpc")
            assert waited.timeout_kind == agent_pb2.TIMEOUT_KIND_CANCELLED
            assert [payload.text for payload in waited.payloads] == ["Thinking. "]


@pytest.mark.parametrize("drop", ["old", "summarize"])
async def test_more_than_the_cap_drops_the_oldest(tmp_path: Path, model: ModelServer, drop: str) -> None:
    tool, clock = _tool(), FakeClock()
    toml = f'[queue]\ncap = 2\ndrop = "{drop}"\n'
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)
    ) as service:
        first = await _at_work(service, model, tool)
        runs = await _collecting(service, "the  first\none", "the second", "the third", "the fourth")
        assert [run.disposition for run in runs] == [QUEUED, COLLECTED, COLLECTED, COLLECTED]
        for dropped in runs[:2]:
            waited = await service.wait(dropped.run_id)
            assert (waited.state, waited.stop_reason) == (run_pb2.RUN_STATE_CANCELLED, "dropped")
            _, change, end = await service.events(dropped.run_id)
            assert change.queue.phase == event_pb2.QUEUE_PHASE_DROPPED
            assert end.lifecycle.cancelled
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.5)
        for kept in runs[2:]:
            assert await _end_of(service, kept.run_id) == FINISHED
        said = (await _said_in(service, "s"))[-1]
        assert ("- the first one\n- the second" in said) is (drop == "summarize")
        assert ("2 messages were dropped" in said) is (drop == "summarize")
        # A turn tells of them once.
        model.answer(calls_answer(("rec", {})))
        await service.accept("busy", session_key="s")
        call = await tool.asked.get()
        (later,) = await _collecting(service, "later")
        call.answer.set_result(DONE)
        await clock.advance(0.5)
        assert await _end_of(service, later.run_id) == FINISHED
        assert (await _said_in(service, "s"))[-1] == "later"


async def test_with_drop_new_one_more_than_the_cap_is_refused(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    toml = '[queue]\ncap = 1\ndrop = "new"\ndebounce_ms = 0\n'
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        first = await _at_work(service, model, tool)
        (kept,) = await _collecting(service, "one")
        before = await all_that_is_stored(service)
        refusal = await refused(service.accept("two", session_key="s", queue_mode=COLLECT))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
        assert refusal.retry_after_s is not None
        assert await all_that_is_stored(service) == before
        followup = await service.accept("three", session_key="s", queue_mode=FOLLOWUP)
        tool.calls[0].answer.set_result(DONE)
        for run_id in (first, kept.run_id, followup.run_id):
            assert await _end_of(service, run_id) == FINISHED


async def test_in_a_free_session_a_message_to_collect_starts_at_once(service: RunningService) -> None:
    alone = await service.accept("now", session_key="s", queue_mode=COLLECT)
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await _end_of(service, alone.run_id) == FINISHED
    assert await _said_in(service, "s") == ["now"]


# --- STEER ---


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
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool)
        steer = await _steer(service, "use the other file")
        assert (steer.disposition, steer.queue_position) == (run_pb2.DISPOSITION_STEERED, 0)
        session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
        assert (session.active_run_id, session.queued_runs) == (host, 0)
        model.answer(text_answer("with the other file"))
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, steer.run_id):
            assert await _end_of(service, run_id) == FINISHED
        assert _roles(model) == ["user", "assistant", "tool", "user"]
        assert model.requests[-1].messages[-1]["content"] == "use the other file"
        run = await get_run(service, steer.run_id)
        assert run.merged_into_run_id == host
        assert [payload.text for payload in run.payloads] == ["with the other file"]
        assert not run.HasField("usage")
        assert await _queue_phases(service, steer.run_id) == ["STEERED", "INJECTED"]
        assert await _queue_phases(service, host) == ["INJECTED"]
        assert await _said_in(service, "s") == ["first", "use the other file"]
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
            assert await _end_of(service, run_id) == FINISHED
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
        registry = service.service._registry  # noqa: SLF001 - only there it shows that the message is on its way
        while not registry._accepting:  # noqa: SLF001, ASYNC110
            await asyncio.sleep(0)
        gate.release()
        steer = await accepting
        assert steer.disposition == run_pb2.DISPOSITION_STEERED
        for run_id in (host, steer.run_id):
            assert await _end_of(service, run_id) == FINISHED
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
        registry = service.service._registry  # noqa: SLF001
        while not registry._accepting:  # noqa: SLF001, ASYNC110
            await asyncio.sleep(0)
        gate.release()
        steer = await accepting
        assert steer.disposition == run_pb2.DISPOSITION_STARTED
        for run_id in (host, steer.run_id):
            assert await _end_of(service, run_id) == FINISHED
        assert (await get_run(service, steer.run_id)).merged_into_run_id == ""


async def test_a_message_that_cannot_go_into_the_run_waits_and_so_do_later_ones(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool)
        other = await _steer(service, "with other tools", tools_deny=["rec"])
        later = await _steer(service, "with the same tools")
        assert [run.disposition for run in (other, later)] == [QUEUED, QUEUED]
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, other.run_id, later.run_id):
            assert await _end_of(service, run_id) == FINISHED
        assert await _said_in(service, "s") == ["first", "with other tools", "with the same tools"]


async def test_in_a_free_session_a_steering_message_starts_a_run(service: RunningService) -> None:
    alone = await _steer(service, "now")
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await _end_of(service, alone.run_id) == FINISHED


async def test_a_steering_message_overtakes_what_is_queued(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool)
        queued = await service.accept("queued", session_key="s", queue_mode=FOLLOWUP)
        steer = await _steer(service, "steered")
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, queued.run_id, steer.run_id):
            assert await _end_of(service, run_id) == FINISHED
        assert await _said_in(service, "s") == ["first", "steered", "queued"]


async def test_messages_whose_run_is_aborted_are_queued_again_in_the_order_in_which_they_came(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool)
        steered = await _steer(service, "second")
        queued = await service.accept("third", session_key="s", queue_mode=FOLLOWUP)
        also = await _steer(service, "fourth")
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=host))
        assert await _end_of(service, host) == (run_pb2.RUN_STATE_CANCELLED, "rpc")
        for run in (steered, queued, also):
            assert await _end_of(service, run.run_id) == FINISHED
            assert (await get_run(service, run.run_id)).merged_into_run_id == ""
        assert await _said_in(service, "s") == ["first", "second", "third", "fourth"]
        assert await _queue_phases(service, steered.run_id) == ["STEERED", "DETACHED"]


async def test_a_steering_message_can_be_withdrawn_before_it_goes_in(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool)
        steer = await _steer(service, "never mind")
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=steer.run_id))
        assert list(receipt.cancelled_run_ids) == [steer.run_id]
        assert await _end_of(service, steer.run_id) == (run_pb2.RUN_STATE_CANCELLED, "rpc")
        tool.calls[0].answer.set_result(DONE)
        assert await _end_of(service, host) == FINISHED
        assert await _said_in(service, "s") == ["first"]
        assert len(model.requests) == 2


async def test_messages_of_a_channel_steer_unless_something_else_is_said(tmp_path: Path, model: ModelServer) -> None:
    tool = _tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        host = await _at_work(service, model, tool, channel="chat")
        steer = await service.accept("from the channel", session_key="s", channel="chat")
        assert steer.disposition == run_pb2.DISPOSITION_STEERED
        without = await service.accept("from nowhere", session_key="s")
        assert without.disposition == QUEUED
        tool.calls[0].answer.set_result(DONE)
        for run_id in (host, steer.run_id, without.run_id):
            assert await _end_of(service, run_id) == FINISHED
