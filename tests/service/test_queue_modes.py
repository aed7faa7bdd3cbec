"""What a message does to a session that is at work (D-7), through the whole service."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.busy_session import (
    COLLECTED,
    FINISHED,
    FOLLOWUP,
    INTERRUPTED,
    QUEUED,
    at_work,
    end_of,
    held_tool,
    said_in,
)
from tests.service.refusals import all_that_is_stored, refused

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2
from lanewayd.app import Seams

COLLECT = agent_pb2.QUEUE_MODE_COLLECT
INTERRUPT = agent_pb2.QUEUE_MODE_INTERRUPT


async def test_an_interrupting_message_stops_the_run_at_work_and_is_answered(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await at_work(service, model, tool)
        model.answer(text_answer("on it"))
        new = await service.accept("do this instead", session_key="s", queue_mode=INTERRUPT)
        assert (new.disposition, new.queue_position) == (run_pb2.DISPOSITION_INTERRUPTED_PREVIOUS, 0)
        assert await end_of(service, old) == INTERRUPTED
        assert await end_of(service, new.run_id) == FINISHED
        assert (await get_run(service, new.run_id)).payloads[0].text == "on it"
        assert await said_in(service, "s") == ["first", "do this instead"]
        # What the stopped run had said and asked for stands once, with the result that says it was stopped.
        conversation = [message["role"] for message in model.requests[-1].messages]
        assert conversation == ["system", "user", "assistant", "tool", "user"]


async def test_what_was_queued_before_an_interrupting_message_comes_before_it(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await at_work(service, model, tool)
        queued = await service.accept("second", session_key="s")
        new = await service.accept("third", session_key="s", queue_mode=INTERRUPT)
        assert new.queue_position == 1
        assert await end_of(service, old) == INTERRUPTED
        assert await end_of(service, queued.run_id) == FINISHED
        assert await end_of(service, new.run_id) == FINISHED
        assert await said_in(service, "s") == ["first", "second", "third"]


async def test_in_a_free_session_there_is_nothing_to_interrupt(service: RunningService) -> None:
    alone = await service.accept("first", session_key="s", queue_mode=INTERRUPT)
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await end_of(service, alone.run_id) == FINISHED


async def test_an_interrupting_message_leaves_other_sessions_alone(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        elsewhere = await service.accept("first", session_key="elsewhere")
        call = await tool.asked.get()
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT)
        assert new.disposition == run_pb2.DISPOSITION_STARTED
        assert await end_of(service, new.run_id) == FINISHED
        call.answer.set_result(DONE)
        assert await end_of(service, elsewhere.run_id) == FINISHED


async def test_two_interrupting_messages_stop_the_run_once_and_both_are_answered(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        old = await at_work(service, model, tool)
        both = await asyncio.gather(
            *(service.accept(text, session_key="s", queue_mode=INTERRUPT) for text in ("one", "two"))
        )
        assert await end_of(service, old) == INTERRUPTED
        ends = [await end_of(service, run.run_id) for run in both]
        # The second may have found the first one at work, and stopped that.
        assert ends[0] in (FINISHED, INTERRUPTED)
        assert ends[1] == FINISHED
        assert await said_in(service, "s") in (["first", "one", "two"], ["first", "two"])


async def test_the_log_of_an_interrupting_message_says_that_it_waits_and_then_starts(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        await at_work(service, model, tool)
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT)
        await service.wait(new.run_id)
        waited, left, began, *_ = await service.events(new.run_id)
        assert waited.queue.phase == event_pb2.QUEUE_PHASE_QUEUED
        assert left.queue.phase == event_pb2.QUEUE_PHASE_STARTED
        assert began.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START


async def test_a_message_that_did_not_wait_has_no_queue_events(service: RunningService) -> None:
    alone = await service.accept("first", session_key="s")
    await service.wait(alone.run_id)
    first, *rest = await service.events(alone.run_id)
    assert first.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START
    assert not any(event.HasField("queue") for event in rest)


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
    tool = held_tool()
    toml = '[queue]\nmode = "interrupt"\n'
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        await at_work(service, model, tool)
        new = await service.accept("second", session_key="s", queue_mode=asked)
        assert run_pb2.Disposition.Name(new.disposition) == f"DISPOSITION_{disposition}"


async def test_a_repeated_interrupting_message_interrupts_nothing_again(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        await at_work(service, model, tool)
        model.answer(calls_answer(("rec", {})))
        new = await service.accept("now", session_key="s", queue_mode=INTERRUPT, idempotency_key="k")
        call = await tool.asked.get()
        again = await service.accept("now", session_key="s", queue_mode=INTERRUPT, idempotency_key="k")
        assert (again.run_id, again.duplicate, again.disposition) == (new.run_id, True, new.disposition)
        call.answer.set_result(DONE)
        assert await end_of(service, new.run_id) == FINISHED


# --- COLLECT ---


async def _collecting(service: RunningService, *texts: str, **fields: object) -> list[run_pb2.AgentResponse]:
    return [await service.accept(text, session_key="s", queue_mode=COLLECT, **fields) for text in texts]


async def test_messages_that_are_collected_share_one_turn_and_end_alike(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = held_tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await at_work(service, model, tool)
        host, *members = await _collecting(service, "one", "two", "three")
        assert [run.disposition for run in (host, *members)] == [QUEUED, COLLECTED, COLLECTED]
        assert [run.queue_position for run in (host, *members)] == [0, 1, 2]
        tool.calls[0].answer.set_result(DONE)
        assert await end_of(service, first) == FINISHED
        model.answer(text_answer("all three"))
        await clock.advance(0.5)
        assert await end_of(service, host.run_id) == FINISHED
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
        said = (await said_in(service, "s"))[-1]
        assert [said.index(text) for text in ("one", "two", "three")] == sorted(
            map(said.index, ("one", "two", "three"))
        )
        assert host.run_id in said
        session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
        used = [(await get_run(service, run_id)).usage for run_id in (first, host.run_id)]
        assert session.usage.total_tokens == sum(usage.total_tokens for usage in used)
        assert (session.active_run_id, session.queued_runs) == ("", 0)


async def test_a_collected_turn_waits_until_no_message_has_come_for_a_while(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = held_tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await at_work(service, model, tool)
        (host,) = await _collecting(service, "one")
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.4)
        (late,) = await _collecting(service, "two")
        await clock.advance(0.4)
        assert (await get_run(service, host.run_id)).state == run_pb2.RUN_STATE_QUEUED
        await clock.advance(0.1)
        assert await end_of(service, host.run_id) == FINISHED
        assert (await get_run(service, late.run_id)).merged_into_run_id == host.run_id


async def test_collecting_stops_at_a_message_of_another_kind(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = held_tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await at_work(service, model, tool)
        host, member = await _collecting(service, "one", "two")
        between = await service.accept("alone", session_key="s", queue_mode=FOLLOWUP)
        (other,) = await _collecting(service, "three", label="mine")
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.5)
        for run in (host, member, between, other):
            assert await end_of(service, run.run_id) == FINISHED
        merged = [(await get_run(service, run.run_id)).merged_into_run_id for run in (host, member, between, other)]
        assert merged == ["", host.run_id, "", ""]
        assert (await said_in(service, "s"))[-2:] == ["alone", "three"]


async def test_when_the_oldest_of_the_collected_is_cancelled_the_next_one_is_the_host(
    tmp_path: Path, model: ModelServer
) -> None:
    tool, clock = held_tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await at_work(service, model, tool)
        oldest, second, third = await _collecting(service, "one", "two", "three")
        receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=oldest.run_id))
        assert list(receipt.cancelled_run_ids) == [oldest.run_id]
        tool.calls[0].answer.set_result(DONE)
        await service.wait(first)
        await clock.advance(0.5)
        assert await end_of(service, second.run_id) == FINISHED
        assert (await get_run(service, third.run_id)).merged_into_run_id == second.run_id
        assert "one" not in (await said_in(service, "s"))[-1]


async def test_a_collected_message_ends_as_its_host_does(tmp_path: Path, model: ModelServer) -> None:
    tool, clock = held_tool(), FakeClock()
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=Seams(clock=clock)) as service:
        first = await at_work(service, model, tool)
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
    tool, clock = held_tool(), FakeClock()
    toml = f'[queue]\ncap = 2\ndrop = "{drop}"\n'
    async with running_service(
        tmp_path / "home", model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)
    ) as service:
        first = await at_work(service, model, tool)
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
            assert await end_of(service, kept.run_id) == FINISHED
        said = (await said_in(service, "s"))[-1]
        assert ("- the first one\n- the second" in said) is (drop == "summarize")
        assert ("2 messages were dropped" in said) is (drop == "summarize")
        # A turn tells of them once.
        model.answer(calls_answer(("rec", {})))
        await service.accept("busy", session_key="s")
        call = await tool.asked.get()
        (later,) = await _collecting(service, "later")
        call.answer.set_result(DONE)
        await clock.advance(0.5)
        assert await end_of(service, later.run_id) == FINISHED
        assert (await said_in(service, "s"))[-1] == "later"


async def test_with_drop_new_one_more_than_the_cap_is_refused(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    toml = '[queue]\ncap = 1\ndrop = "new"\ndebounce_ms = 0\n'
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        first = await at_work(service, model, tool)
        (kept,) = await _collecting(service, "one")
        before = await all_that_is_stored(service)
        refusal = await refused(service.accept("two", session_key="s", queue_mode=COLLECT))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
        assert refusal.retry_after_s is not None
        assert await all_that_is_stored(service) == before
        followup = await service.accept("three", session_key="s", queue_mode=FOLLOWUP)
        tool.calls[0].answer.set_result(DONE)
        for run_id in (first, kept.run_id, followup.run_id):
            assert await end_of(service, run_id) == FINISHED


async def test_in_a_free_session_a_message_to_collect_starts_at_once(service: RunningService) -> None:
    alone = await service.accept("now", session_key="s", queue_mode=COLLECT)
    assert alone.disposition == run_pb2.DISPOSITION_STARTED
    assert await end_of(service, alone.run_id) == FINISHED
    assert await said_in(service, "s") == ["now"]
