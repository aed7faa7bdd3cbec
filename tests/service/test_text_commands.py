"""What users say to the service in a message: `/queue`, `/stop` and stop words, `/new` and `/reset`."""

import asyncio
from pathlib import Path

import grpc
import pytest
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.busy_session import FINISHED, at_work, end_of, held_tool, said_in
from tests.service.refusals import refused

from laneway.v1 import agent_pb2, run_pb2, session_pb2

COMPLETED = run_pb2.DISPOSITION_COMPLETED
STOPPED = (run_pb2.RUN_STATE_CANCELLED, "stop_word")
COLLECT, FOLLOWUP = agent_pb2.QUEUE_MODE_COLLECT, agent_pb2.QUEUE_MODE_FOLLOWUP
IN_FORCE = "Queue of this session: mode {}, debounce {} ms, cap {}, drop {}."


async def session_of(service: RunningService) -> session_pb2.Session:
    return await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))


async def kinds_of(service: RunningService) -> list[str | None]:
    page = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s"))
    return [entry.WhichOneof("body") for entry in page.entries]


async def runs_of(service: RunningService) -> int:
    return len((await service.agent.ListRuns(agent_pb2.ListRunsRequest())).runs)


# --- /queue ---


async def test_the_directive_alone_is_stored_for_the_session_and_answered_without_a_run(
    service: RunningService, model: ModelServer
) -> None:
    answer = await service.accept("/queue collect debounce:2s cap:3 drop:new", session_key="s")
    assert (answer.disposition, answer.run_id, answer.queue_position) == (COMPLETED, "", 0)
    assert answer.reply == IN_FORCE.format("collect", 2000, 3, "new")
    session = await session_of(service)
    assert (session.queue_mode, session.queue_debounce.seconds, session.queue_cap) == (COLLECT, 2, 3)
    assert session.queue_drop == session_pb2.QUEUE_DROP_NEW
    assert (answer.session_key, answer.session_id) == (session.session_key, session.session_id)
    # What it leaves out stays, what means nothing is told.
    later = await service.accept("/queue steer cap:none", session_key="s")
    assert later.reply == IN_FORCE.format("steer", 2000, 3, "new") + " Not understood: cap:none."
    cleared = await service.accept("/queue default", session_key="s")
    assert cleared.reply == IN_FORCE.format("followup", 500, 20, "summarize")
    assert (await session_of(service)).queue_mode == agent_pb2.QUEUE_MODE_UNSPECIFIED
    assert not (await session_of(service)).HasField("queue_debounce")
    assert (await runs_of(service), len(model.requests)) == (0, 0)


async def test_the_directive_in_a_message_counts_for_it_alone_and_is_not_said_to_the_model(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        first = await at_work(service, model, tool)
        second = await service.accept(
            "do it /queue followup please", session_key="s", channel="sms", queue_mode=agent_pb2.QUEUE_MODE_INTERRUPT
        )
        assert second.disposition == run_pb2.DISPOSITION_QUEUED
        third = await service.accept("/queue interrupt now", session_key="s")
        assert third.disposition == run_pb2.DISPOSITION_INTERRUPTED_PREVIOUS
        assert await end_of(service, first) == (run_pb2.RUN_STATE_CANCELLED, "interrupt")
        for run in (second, third):
            assert await end_of(service, run.run_id) == FINISHED
        assert await said_in(service, "s") == ["first", "do it please", "now"]
        assert (await session_of(service)).queue_mode == agent_pb2.QUEUE_MODE_UNSPECIFIED


async def test_what_other_programs_say_is_for_the_model(service: RunningService) -> None:
    for kind in (agent_pb2.PROVENANCE_KIND_INTER_SESSION, agent_pb2.PROVENANCE_KIND_INTERNAL_SYSTEM):
        run = await service.accept("/stop", session_key="s", provenance=agent_pb2.Provenance(kind=kind))
        assert await end_of(service, run.run_id) == FINISHED
    assert await said_in(service, "s") == ["/stop", "/stop"]


async def test_without_a_channel_a_program_may_send_any_text(service: RunningService) -> None:
    texts = ["stop", "explain /queue collect"]
    for text in texts:
        assert await end_of(service, (await service.accept(text, session_key="s")).run_id) == FINISHED
    assert await said_in(service, "s") == texts


# --- stops ---


@pytest.mark.parametrize(("text", "channel"), [("/stop", ""), ("Please stop!", "sms")])
async def test_a_stop_ends_what_waits_and_then_what_is_at_work(
    tmp_path: Path, model: ModelServer, text: str, channel: str
) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        first = await at_work(service, model, tool)
        waiting = await service.accept("second", session_key="s")
        steering = await service.accept("third", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_STEER)
        answer = await service.accept(text, session_key="s", channel=channel)
        assert (answer.disposition, answer.run_id) == (COMPLETED, "")
        assert answer.reply == "The run at work is being stopped. 2 waiting messages are cancelled."
        runs = [first, waiting.run_id, steering.run_id]
        for run_id in runs:
            assert await end_of(service, run_id) == STOPPED
            waited = await service.wait(run_id)
            assert (waited.status, waited.timeout_kind) == (
                agent_pb2.WAIT_STATUS_TIMEOUT,
                agent_pb2.TIMEOUT_KIND_CANCELLED,
            )
            run, end = await get_run(service, run_id), (await service.events(run_id))[-1].lifecycle
            assert (run.state, run.stop_reason, end.stop_reason, end.cancelled) == (*STOPPED, "stop_word", True)
        assert len(model.requests) == 1
        assert await said_in(service, "s") == ["first"]
        assert (await session_of(service)).queued_runs == 0


async def test_a_stop_leaves_other_sessions_alone(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        first = await at_work(service, model, tool)
        answer = await service.accept("/stop", session_key="elsewhere")
        assert answer.reply == "There was nothing to stop."
        tool.calls[0].answer.set_result(DONE)
        assert await end_of(service, first) == FINISHED


async def test_a_repeated_stop_gets_its_answer_and_stops_nothing_again(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        await at_work(service, model, tool)
        answer = await service.accept("/stop", session_key="s", idempotency_key="k")
        model.answer(calls_answer(("rec", {})))
        second = await service.accept("second", session_key="s")
        call = await asyncio.wait_for(tool.asked.get(), 20)
        again = await service.accept("/stop", session_key="s", idempotency_key="k")
        assert again.duplicate
        again.duplicate = False
        assert again == answer
        call.answer.set_result(DONE)
        assert await end_of(service, second.run_id) == FINISHED


async def test_a_full_service_can_be_stopped(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    toml = "[limits]\nmax_queued_runs = 1\n"
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        first = await at_work(service, model, tool)
        await service.accept("second", session_key="s")
        assert (await refused(service.accept("third", session_key="s"))).reason == "QUEUE_FULL"
        assert (await service.accept("/stop", session_key="s")).disposition == COMPLETED
        assert await end_of(service, first) == STOPPED


# --- /new and /reset ---


@pytest.mark.parametrize("text", ["/new", "/Reset"])
async def test_a_reset_begins_the_session_anew_without_a_run(
    service: RunningService, model: ModelServer, text: str
) -> None:
    await service.finish(session_key="s", message="before")
    before = await session_of(service)
    answer = await service.accept(text, session_key="s", idempotency_key="k")
    assert (answer.disposition, answer.run_id, answer.reply) == (COMPLETED, "", "The session begins anew.")
    assert (await service.accept(text, session_key="s", idempotency_key="k")).duplicate
    assert await kinds_of(service) == ["user", "assistant", "reset"]
    assert (await session_of(service)).session_id == before.session_id
    await service.finish(session_key="s", message="after")
    assert [message["role"] for message in model.requests[-1].messages] == ["system", "user"]


async def test_text_behind_a_reset_is_the_first_turn_of_the_fresh_window(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        first = await at_work(service, model, tool)
        fresh = await service.accept("/new now this", session_key="s", queue_mode=agent_pb2.QUEUE_MODE_STEER)
        assert fresh.disposition == run_pb2.DISPOSITION_QUEUED, "it is no part of what came before"
        tool.calls[0].answer.set_result(DONE)
        assert await end_of(service, first) == FINISHED
        model.answer(text_answer("fresh"))
        assert await end_of(service, fresh.run_id) == FINISHED
        assert [message["content"] for message in model.requests[-1].messages[1:]] == ["now this"]
        assert (await kinds_of(service))[-3:] == ["reset", "user", "assistant"]
        await service.finish(session_key="s", message="and on")
        contents = [message["content"] for message in model.requests[-1].messages[1:]]
        assert contents == ["now this", "fresh", "and on"]


async def test_a_session_at_work_is_not_reset(tmp_path: Path, model: ModelServer) -> None:
    tool = held_tool()
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        first = await at_work(service, model, tool)
        refusal = await refused(service.accept("/new", session_key="s"))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ACTIVE")
        tool.calls[0].answer.set_result(DONE)
        assert await end_of(service, first) == FINISHED
        assert "reset" not in await kinds_of(service)


# --- RunAgent ---


async def test_a_stream_of_a_command_has_its_answer_and_ends(service: RunningService) -> None:
    stream = service.agent.RunAgent(agent_pb2.AgentRequest(message="/queue", session_key="s"))
    events = [event async for event in stream]
    assert [event.accepted.disposition for event in events] == [COMPLETED]
    assert events[0].accepted.reply == IN_FORCE.format("followup", 500, 20, "summarize")
