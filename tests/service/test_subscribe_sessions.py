"""Reading sessions and everything, signs of life, and RunAgent (CONTRACT, Subscribe; D-3)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.model_answers import DONE as END_MARK
from tests.fakes.model_answers import Answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService
from tests.service.agreement import get_run, read_ended
from tests.service.refusals import checked
from tests.service.subscribe_stage import Stage, first_behind, read, staged

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.rpc.cursors import cursor_text

OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
FULL = agent_pb2.VERBOSITY_FULL


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncIterator[Stage]:
    async with staged(tmp_path / "home", model) as stage:
        yield stage


async def test_a_session_is_shown_from_its_last_run_and_goes_on_with_the_next(stage: Stage) -> None:
    await stage.ended()
    second = await stage.ended()
    subscription = stage.subscribe(session_key="S", verbose=FULL)
    events = await stage.service.events(second)
    assert await read(subscription, len(events)) == events
    third = await stage.ended()
    events = await stage.service.events(third)
    assert await read(subscription, len(events)) == events
    subscription.cancel()


async def test_a_session_at_work_is_shown_from_its_oldest_run_that_has_not_ended(stage: Stage) -> None:
    await stage.ended()
    first = await stage.at_work()
    queued = await stage.service.accept(session_key="s")
    subscription = stage.subscribe(session_key="s", verbose=FULL)
    assert ((await subscription.read()).run_id) == first
    await stage.let_go(first)
    await stage.service.wait(queued.run_id)
    last = await get_run(stage.service, queued.run_id)
    seen = [(first, 1)]
    while seen[-1] != (queued.run_id, last.last_seq):
        event = await subscription.read()
        seen.append((event.run_id, event.seq))
    for run_id in (first, queued.run_id):
        seqs = [seq for run, seq in seen if run == run_id]
        assert seqs == list(range(1, len(seqs) + 1))
    subscription.cancel()


async def test_a_session_that_does_not_exist_yet_is_waited_for(stage: Stage) -> None:
    subscription = stage.subscribe(session_key="later", verbose=FULL)
    await stage.ended(session_key="another")
    run_id = await stage.ended(session_key="later")
    events = await stage.service.events(run_id)
    assert await read(subscription, len(events)) == events
    subscription.cancel()


async def test_all_starts_now_and_a_cursor_goes_on_without_gap(stage: Stage) -> None:
    await stage.ended()
    timers = stage.clock.timer_count
    subscription = stage.subscribe(all=True)
    await stage.clock.wait_for_timers(timers + 1)
    runs = [await stage.ended(session_key=key) for key in ("a", "b")]
    events: list[event_pb2.Event] = []
    while not events or events[-1].lifecycle.phase != event_pb2.LIFECYCLE_PHASE_END or events[-1].run_id != runs[1]:
        events.append(await subscription.read())
    assert {event.run_id for event in events} == set(runs)
    subscription.cancel()
    for index in range(len(events) - 1):
        again = stage.subscribe(all=True, cursor=events[index].cursor)
        rest = events[index + 1 :]
        assert await read(again, len(rest)) == rest
        again.cancel()


async def test_cursors_that_this_store_did_not_give_are_refused(
    stage: Stage, tmp_path: Path, model: ModelServer
) -> None:
    run_id = await stage.ended()
    own = (await stage.service.events(run_id))[-1].cursor
    async with staged(tmp_path / "other", model) as other:
        foreign = (await other.service.events(await other.ended()))[-1].cursor
    for cursor in (foreign, "garbage", own[:-1], own + "A", own.lower()):
        for target in ({"session_key": "s"}, {"all": True}):
            refusal = await stage.refused(cursor=cursor, **target)
            assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": "cursor"})
    ahead = cursor_text(stage.service.service.parts.store.store_id, 10**9)
    for target in ({"session_key": "s"}, {"all": True}):
        refusal = await stage.refused(cursor=ahead, **target)
        assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_AHEAD")
        assert await first_behind(stage, refusal) == (run_id, 1)


# --- signs of life ---


@pytest.mark.parametrize("target", ["run", "run from its end", "session", "all"])
async def test_a_quiet_subscription_shows_a_sign_of_life_every_fifteen_seconds(stage: Stage, target: str) -> None:
    run_id = await stage.at_work()
    run = await get_run(stage.service, run_id)
    fields: dict[str, dict[str, Any]] = {
        "run": {"run_id": run_id, "after_seq": 0},
        "run from its end": {"run_id": run_id, "after_seq": run.last_seq},
        "session": {"session_key": "s"},
        "all": {"all": True},
    }
    timers = stage.clock.timer_count
    subscription = stage.subscribe(**fields[target])
    if target in ("run", "session"):
        await read(subscription, run.last_seq)
    event = event_pb2.Event()
    for _ in range(2):
        await stage.clock.wait_for_timers(timers + 1)
        await stage.clock.advance(14.9)
        assert stage.clock.timer_count == timers + 1
        await stage.clock.advance(0.1)
        event = await subscription.read()
        assert (event.WhichOneof("payload"), event.seq) == ("progress", 0)
    await stage.clock.wait_for_timers(timers + 1)
    await stage.let_go(run_id)
    following = await subscription.read()
    assert (following.run_id, following.seq) == (run_id, run.last_seq + 1)
    subscription.cancel()
    again = stage.subscribe(session_key="s", cursor=event.progress.cursor)
    assert (await again.read()) == following
    again.cancel()


# --- RunAgent ---


async def test_run_agent_accepts_and_shows_the_run_to_its_end(stage: Stage) -> None:
    stage.model.answer(text_answer("Hello"))
    request = agent_pb2.AgentRequest(message="hi", model="mock/any", session_key="s", idempotency_key="k")
    accepted, *events = [event async for event in stage.service.agent.RunAgent(request)]
    assert accepted.seq == 0
    assert accepted.accepted.session_key == "agent:main:s"
    assert not accepted.accepted.duplicate
    run_id = accepted.accepted.run_id
    assert accepted.run_id == run_id
    assert events == await stage.service.events(run_id, verbose=agent_pb2.VERBOSITY_OFF)
    duplicate, *again = [event async for event in stage.service.agent.RunAgent(request)]
    assert duplicate.accepted.duplicate
    assert duplicate.accepted.run_id == run_id
    assert again == events
    assert len(stage.model.requests) == 1


async def test_a_lost_connection_does_not_stop_a_run(stage: Stage) -> None:
    hold = asyncio.Event()
    stage.model.answer(Answer([delta(content="Once "), hold, delta(content="upon"), delta("stop"), END_MARK]))
    lost = RunningService(stage.service.service, stage.service.home, stage.service.target)
    call = lost.agent.RunAgent(agent_pb2.AgentRequest(message="hi", model="mock/any", session_key="s"))
    seen = [await call.read()]
    while not seen[-1].assistant.delta:
        seen.append(await call.read())
    await lost.close_channel()
    hold.set()
    run_id = seen[0].accepted.run_id
    reading = await read_ended(stage.service, run_id)
    assert reading.run.state == run_pb2.RUN_STATE_SUCCEEDED
    rest = await stage.service.events(run_id, after_seq=seen[-1].seq)
    assert [*seen[1:], *rest] == reading.events
    assert "".join(event.assistant.delta for event in reading.events) == "Once upon"


async def test_a_refused_run_agent_sends_nothing(stage: Stage) -> None:
    call = stage.service.agent.RunAgent(agent_pb2.AgentRequest(message=""))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert checked(raised.value).reason == "MESSAGE_EMPTY"
