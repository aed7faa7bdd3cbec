"""The client against the whole service in this process: every call once, as a user would make it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service

from laneway.calls import Timeouts
from laneway.client import LanewayClient
from laneway.errors import CursorAhead, InvalidRequest, LanewayError, NotAvailable, NotFound, PreconditionFailed
from laneway.positions import is_terminal
from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import AcceptRun


@pytest.fixture
async def client(service: RunningService) -> AsyncGenerator[LanewayClient, None]:
    async with LanewayClient(service.target) as connected:
        yield connected


def hello(message: str = "hello", **fields: object) -> agent_pb2.AgentRequest:
    return agent_pb2.AgentRequest(message=message, model="mock/any", **fields)  # type: ignore[arg-type]


async def test_a_run_is_read_from_its_acceptance_to_its_end(client: LanewayClient, model: ModelServer) -> None:
    model.answer(text_answer("one ", "two"))
    first, *events = [event async for event in client.run(hello(session_key="s"))]
    assert first.accepted.session_key == "agent:main:s"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [is_terminal(event) for event in events] == [False] * (len(events) - 1) + [True]
    assert [event.message.text for event in events if event.message.role == "assistant"] == ["one two"]
    waited = await client.wait(first.run_id)
    assert (waited.status, waited.payloads[0].text) == (agent_pb2.WAIT_STATUS_OK, "one two")
    run = await client.get_run(first.run_id)
    assert (run.state, run.last_seq) == (run_pb2.RUN_STATE_SUCCEEDED, len(events))


async def test_the_same_key_shows_the_same_run_again(client: LanewayClient, model: ModelServer) -> None:
    request = hello(idempotency_key="k")
    first, *events = [event async for event in client.run(request)]
    again, *replay = [event async for event in client.run(request)]
    assert (first.accepted.duplicate, again.accepted.duplicate) == (False, True)
    assert (first.run_id, events) == (again.run_id, replay)
    assert len(model.requests) == 1


async def test_an_acceptance_that_takes_longer_than_an_attempt_is_one_run(tmp_path: Path, model: ModelServer) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    patient = Timeouts(attempt_s=0.2)
    async with (
        running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service,
        LanewayClient(service.target, timeouts=patient) as client,
    ):
        accepting = asyncio.create_task(client.agent(hello()))
        await gate.reached()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):  # more than two attempts
                await asyncio.shield(accepting)
        gate.release()
        accepted = await accepting
        assert accepted.duplicate
        assert [run.run_id async for run in client.list_runs()] == [accepted.run_id]


async def test_a_session_is_read_over_its_runs(client: LanewayClient) -> None:
    accepted = [await client.agent(hello(session_key="s")) for _ in range(3)]
    ends: list[str] = []
    async with aclosing(client.subscribe(agent_pb2.SubscribeRequest(session_key="s"))) as events:
        async for event in events:
            if is_terminal(event):
                ends.append(event.run_id)
            if len(ends) == 3:
                break
    # Without a cursor it begins with the oldest run that has not ended: all three, or fewer if one was that quick.
    assert ends == [answer.run_id for answer in accepted]
    request = agent_pb2.SubscribeRequest(session_key="s", cursor=event.cursor)
    async with aclosing(client.subscribe(request)) as events:
        next_event = asyncio.ensure_future(anext(events))
        last = await client.agent(hello(session_key="s"))
        assert (await next_event).run_id == last.run_id


async def test_runs_are_listed_over_pages_with_filters(client: LanewayClient) -> None:
    run_ids = [(await client.agent(hello(label="a" if number % 2 else "b"))).run_id for number in range(7)]
    listed = [run.run_id async for run in client.list_runs(agent_pb2.ListRunsRequest(page_size=2))]
    assert listed == run_ids[::-1]
    filters = agent_pb2.ListRunsRequest(label="a", page_size=1)
    assert [run.run_id async for run in client.list_runs(filters)] == run_ids[1::2][::-1]


async def test_a_run_is_aborted_and_aborted_again(client: LanewayClient, model: ModelServer) -> None:
    held = text_answer("x")
    held.before = asyncio.Event()
    model.answer(held)
    accepted = await client.agent(hello())
    await model.received(1)
    running = await client.wait(accepted.run_id, timeout_s=0)
    assert (running.state, running.timeout_kind) == (run_pb2.RUN_STATE_RUNNING, agent_pb2.TIMEOUT_KIND_WAIT_EXPIRED)
    assert list((await client.abort(accepted.run_id, reason="enough")).aborted_run_ids) == [accepted.run_id]
    assert await client.abort(accepted.run_id) == agent_pb2.AbortResponse()
    assert (await client.wait(accepted.run_id)).state == run_pb2.RUN_STATE_CANCELLED


async def test_a_session_is_aborted_with_what_waits_in_it(client: LanewayClient, model: ModelServer) -> None:
    held = text_answer("x")
    held.before = asyncio.Event()
    model.answer(held)
    first, second = [await client.agent(hello(session_key="s")) for _ in range(2)]
    await model.received(1)
    answer = await client.abort_session("s", clear_queued=True)
    assert (list(answer.aborted_run_ids), list(answer.cancelled_run_ids)) == ([first.run_id], [second.run_id])


async def test_sessions_and_their_entries_are_read_and_changed(client: LanewayClient, model: ModelServer) -> None:
    long = "é" * 700_000
    model.answer(text_answer(long))
    await client.wait((await client.agent(hello(session_key="s"))).run_id)
    session = await client.sessions.get("s")
    assert [found.session_key async for found in client.sessions.list()] == [session.session_key]
    entries = [entry async for entry in client.sessions.entries("s")]
    assert [entry.WhichOneof("body") for entry in entries] == ["user", "assistant"]
    assert entries[1].truncated
    assert await client.sessions.read_entry("s", entries[1].entry_id) == long
    lines = [json.loads(line) async for line in client.sessions.export("s")]
    assert [line["type"] for line in lines] == ["session", "message", "message", "custom"]
    updated = await client.sessions.update("s", label="mine", thinking=agent_pb2.THINKING_LEVEL_OFF, trace=False)
    assert (updated.label, updated.thinking, updated.trace) == ("mine", agent_pb2.THINKING_LEVEL_OFF, False)
    updated = await client.sessions.update("s", pinned=True, clear=["label", "trace"])
    assert (updated.label, updated.pinned, updated.HasField("trace")) == ("", True, False)
    assert [found.session_key async for found in client.sessions.list(pinned=True, archived=False)] == ["agent:main:s"]
    assert [found async for found in client.sessions.list(archived=True)] == []
    forked = [await client.sessions.fork("s", new_session_key="f", entry_id=entries[0].entry_id) for _ in range(2)]
    assert [(answer.entries, answer.duplicate) for answer in forked] == [(1, False), (0, True)]
    assert forked[0].session.parent_session_key == "agent:main:s"
    await client.sessions.reset("s")
    assert [entry.WhichOneof("body") async for entry in client.sessions.entries("s")][-1] == "reset"
    await client.sessions.delete("s")
    with pytest.raises(NotFound) as caught:
        await client.sessions.get("s")
    assert caught.value.reason == "SESSION_NOT_FOUND"


async def test_what_the_server_has_is_listed(client: LanewayClient) -> None:
    assert [agent.agent_id async for agent in client.list_agents()] == ["main"]
    assert "exec" in [tool.name async for tool in client.list_tools()]
    assert "mock" not in [model.model async for model in client.list_models()]
    assert (await client.status()).version


async def test_what_was_done_is_listed(client: LanewayClient) -> None:
    run_ids = [(await client.agent(hello())).run_id for _ in range(2)]
    for run_id in run_ids:
        await client.wait(run_id)
    every = [record async for record in client.list_audit_records(admin_pb2.ListAuditRecordsRequest(page_size=1))]
    assert len(every) == 4
    filters = admin_pb2.ListAuditRecordsRequest(run_id=run_ids[0])
    assert [record.action async for record in client.list_audit_records(filters)] == [
        admin_pb2.AUDIT_ACTION_RUN_FINISHED,
        admin_pb2.AUDIT_ACTION_RUN_STARTED,
    ]


async def test_tool_results_are_shown_to_who_asks_for_them(client: LanewayClient, model: ModelServer) -> None:
    model.answer(calls_answer(("exec", {"command": "echo found"})), text_answer("done"))
    request = hello(idempotency_key="k")
    texts = {}
    for verbose in (agent_pb2.VERBOSITY_FULL, agent_pb2.VERBOSITY_UNSPECIFIED):
        events = [event async for event in client.run(request, verbose=verbose)]
        texts[verbose] = [event.tool.result.text for event in events if event.tool.phase == event_pb2.TOOL_PHASE_RESULT]
    assert texts == {agent_pb2.VERBOSITY_FULL: ["found\n"], agent_pb2.VERBOSITY_UNSPECIFIED: [""]}


async def test_refusals_say_what_is_wrong(client: LanewayClient, model: ModelServer) -> None:
    async def refusal(request: agent_pb2.AgentRequest) -> LanewayError:
        with pytest.raises(LanewayError) as caught:
            await client.agent(request)
        return caught.value

    empty = await refusal(hello(""))
    assert (type(empty), empty.reason) == (InvalidRequest, "MESSAGE_EMPTY")
    too_many = await refusal(hello(metadata={str(number): "" for number in range(33)}))
    assert (too_many.reason, too_many.field) == ("FIELD_INVALID", "metadata")
    later = await refusal(hello(deliver=True))
    assert (type(later), later.reason, later.field) == (NotAvailable, "NOT_AVAILABLE_YET", "deliver")
    held = text_answer("x")
    held.before = asyncio.Event()
    model.answer(held)
    accepted = await client.agent(hello(session_key="s"))
    with pytest.raises(PreconditionFailed, match="SESSION_ACTIVE"):
        await client.sessions.reset("s")
    with pytest.raises(CursorAhead) as ahead:
        await anext(client.subscribe(agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=99)))
    assert ahead.value.latest_seq is not None
    held.before.set()
    with pytest.raises(NotFound):
        await client.wait("run_nothing")


async def test_a_server_that_drains_ends_and_comes_back_under_the_client(tmp_path: Path, model: ModelServer) -> None:
    """Wait, stream and message are all under way when it leaves; the run goes on after the restart."""
    held = text_answer("never")
    held.before = asyncio.Event()
    model.answer(held, text_answer("at last"))
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        client = LanewayClient(service.target)
        accepted = await client.agent(hello(session_key="s"))
        log = agent_pb2.SubscribeRequest(run_id=accepted.run_id, after_seq=0)
        reading = asyncio.create_task(_all(client, log))
        waiting = asyncio.create_task(client.wait(accepted.run_id))
        await model.received(1)
        await client.drain()
        later = asyncio.create_task(client.agent(hello(session_key="s")))
    async with client, running_service(home, model=model, listen=service.target):
        async with asyncio.timeout(20):
            assert (await waiting).payloads[0].text == "at last"
            events = await reading
            assert (await client.wait((await later).run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def _all(client: LanewayClient, request: agent_pb2.SubscribeRequest) -> list[event_pb2.Event]:
    return [event async for event in client.subscribe(request)]


async def test_a_command_in_a_message_is_answered_without_a_run(client: LanewayClient, model: ModelServer) -> None:
    (only,) = [event async for event in client.run(hello("/queue collect", session_key="s"))]
    assert only.accepted.disposition == run_pb2.DISPOSITION_COMPLETED
    assert (only.accepted.run_id, model.requests) == ("", [])
    assert "collect" in only.accepted.reply
