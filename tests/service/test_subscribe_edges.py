"""Subscribe and RunAgent at their edges, through the whole service (CONTRACT, Subscribe; D-3)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import DONE as END_MARK
from tests.fakes.model_server import Answer, ModelServer, calls_answer, delta, text_answer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run, read_ended
from tests.service.refusals import Refusal, checked, refused_stream

from laneway.v1 import agent_pb2, agent_pb2_grpc, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.rpc.cursors import cursor_text

OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
DAY_S = 86_400.0
FULL = agent_pb2.VERBOSITY_FULL


@dataclass
class Stage:
    """A service whose clock stands still, with a tool that waits for the test."""

    service: RunningService
    model: ModelServer
    tool: RecordingTool
    clock: FakeClock

    async def ended(self, *pieces: str, session_key: str = "s") -> str:
        """A run that has ended, having said `pieces`."""
        self.model.answer(text_answer(*(pieces or ("ok",))))
        accepted = await self.service.accept(session_key=session_key)
        await self.service.wait(accepted.run_id)
        return accepted.run_id

    async def at_work(self, session_key: str = "s") -> str:
        """A run that stands in a tool call."""
        self.model.answer(calls_answer(("rec", {}), text="Working. "))
        accepted = await self.service.accept(session_key=session_key)
        await self.tool.asked.get()
        return accepted.run_id

    async def let_go(self, run_id: str) -> None:
        """The tool call returns, and the run ends."""
        self.tool.calls[-1].answer.set_result(DONE)
        await self.service.wait(run_id)

    def subscribe(self, **fields: Any) -> Any:
        """A subscription."""
        return self.service.agent.Subscribe(agent_pb2.SubscribeRequest(**fields))

    def subscribe_bytes(self, **fields: Any) -> Any:
        """A subscription whose events are left as they come."""
        call: Any = self.service.channel.unary_stream(
            "/laneway.v1.AgentService/Subscribe", request_serializer=agent_pb2.SubscribeRequest.SerializeToString
        )
        return call(agent_pb2.SubscribeRequest(**fields))

    async def refused(self, **fields: Any) -> Refusal:
        """The refusal of a subscription."""
        return await refused_stream(self.subscribe(**fields))

    async def retention(self, after_s: float) -> None:
        """Time passes until retention has looked again."""
        await self.clock.wait_for_sleepers(1)
        await self.clock.advance(after_s)
        # It has looked, but perhaps before all that time was over.
        await self.clock.wait_for_sleepers(1)
        await self.clock.advance(60)
        await self.clock.wait_for_sleepers(1)


@asynccontextmanager
async def staged(home: Path, model: ModelServer, toml: str = "") -> AsyncGenerator[Stage, None]:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(home, model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)) as service:
        yield Stage(service, model, tool, clock)


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncIterator[Stage]:
    async with staged(tmp_path / "home", model) as stage:
        yield stage


async def read(subscription: Any, count: int) -> list[event_pb2.Event]:
    """The next events of a subscription that goes on."""
    return [await subscription.read() for _ in range(count)]


# --- a run and its seq ---


async def test_after_seq_picks_the_events_above_it(stage: Stage) -> None:
    run_id = await stage.ended("Hello")
    everything = await stage.service.events(run_id, after_seq=0)
    assert [event.seq for event in everything] == list(range(1, len(everything) + 1))
    for after_seq in range(len(everything) + 1):
        assert await stage.service.events(run_id, after_seq=after_seq) == everything[after_seq:]


async def test_a_seq_that_is_not_there_yet_is_refused_with_what_there_is(stage: Stage) -> None:
    run_id = await stage.at_work()
    run = await get_run(stage.service, run_id)
    for after_seq in (run.last_seq + 1, 2**63 - 1):
        refusal = await stage.refused(run_id=run_id, after_seq=after_seq)
        assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_AHEAD")
        assert refusal.metadata["earliest_seq"] == "1"
        assert refusal.metadata["latest_seq"] == str(run.last_seq)
        assert await _first_behind(stage, refusal) == (run_id, 1)
    refusal = await stage.refused(run_id=run_id, after_seq=-1)
    assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": "after_seq"})
    refusal = await stage.refused(run_id="run_none")
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")


async def test_the_latest_seq_of_a_run_at_work_waits_for_the_next_event(stage: Stage) -> None:
    run_id = await stage.at_work()
    last_seq = (await get_run(stage.service, run_id)).last_seq
    subscription = stage.subscribe(run_id=run_id, after_seq=last_seq)
    await stage.let_go(run_id)
    events = [event async for event in subscription]
    assert [event.seq for event in events] == list(range(last_seq + 1, events[-1].seq + 1))
    assert events[-1].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END


async def test_events_that_retention_took_are_refused_and_the_rest_is_read(tmp_path: Path, model: ModelServer) -> None:
    toml = "[events]\ndelta_interval_ms = 0\n[events.retention]\nmax_events_per_run = 5\n"
    async with staged(tmp_path / "home", model, toml) as stage:
        run_id = await stage.ended(*(f"{number} " for number in range(20)))
        before = await stage.service.events(run_id)
        await stage.retention(60)
        last_seq = before[-1].seq
        earliest = last_seq - 4
        for after_seq in (0, earliest - 2):
            refusal = await stage.refused(run_id=run_id, after_seq=after_seq)
            assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_PRUNED")
            assert refusal.metadata["earliest_seq"] == str(earliest)
            assert refusal.metadata["latest_seq"] == str(last_seq)
            assert await _first_behind(stage, refusal) == (run_id, earliest)
        assert await stage.service.events(run_id, after_seq=earliest - 1) == before[-5:]
        snapshot, *events = [event async for event in stage.subscribe(run_id=run_id, verbose=FULL)]
        assert (snapshot.snapshot.first_seq, snapshot.snapshot.last_seq) == (earliest, last_seq)
        assert events == before[-5:]

        refusal = await stage.refused(session_key="s", cursor=before[0].cursor)
        assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_PRUNED")
        assert await _first_behind(stage, refusal) == (run_id, earliest)
        # Who has read all that is gone has missed nothing.
        subscription = stage.subscribe(session_key="s", cursor=before[-6].cursor, verbose=FULL)
        assert await read(subscription, 5) == before[-5:]
        subscription.cancel()


async def test_of_a_log_that_is_gone_the_snapshot_is_left(stage: Stage) -> None:
    run_id = await stage.ended("Hello")
    last_seq = (await get_run(stage.service, run_id)).last_seq
    await stage.retention(8 * DAY_S)
    [snapshot] = [event async for event in stage.subscribe(run_id=run_id)]
    assert (snapshot.snapshot.first_seq, snapshot.snapshot.last_seq) == (last_seq + 1, last_seq)
    assert snapshot.snapshot.run.payloads[0].text == "Hello"
    assert await stage.service.events(run_id, after_seq=last_seq) == []
    refusal = await stage.refused(run_id=run_id, after_seq=0)
    assert refusal.reason == "CURSOR_PRUNED"
    assert refusal.metadata["earliest_seq"] == str(last_seq + 1)
    assert (await stage.service.wait(run_id, 0)).payloads[0].text == "Hello"
    await stage.retention(31 * DAY_S)
    assert (await stage.refused(run_id=run_id)).reason == "RUN_NOT_FOUND"


@pytest.mark.parametrize("target", ["run", "session"])
async def test_a_slow_reader_that_retention_overtakes_is_told_and_gets_no_gap(
    tmp_path: Path, model: ModelServer, target: str
) -> None:
    toml = "[events]\ndelta_interval_ms = 0\n[events.retention]\nmax_events_per_run = 1\n"
    async with staged(tmp_path / "home", model, toml) as stage:
        run_id = await stage.ended(*(f"{number:05}" + "x" * 16_000 for number in range(230)))
        fields: dict[str, Any] = {"run_id": run_id, "after_seq": 0} if target == "run" else {"session_key": "s"}
        # A window that is far smaller than the log.
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536)]
        channel = grpc.aio.insecure_channel(stage.service.target, options=options)
        subscription = agent_pb2_grpc.AgentServiceStub(channel).Subscribe(agent_pb2.SubscribeRequest(**fields))
        assert (await subscription.read()).seq == 1
        await stage.retention(60)
        seqs = [1]
        refusal = None
        while refusal is None:
            try:
                seqs.append((await subscription.read()).seq)
            except grpc.aio.AioRpcError as error:
                refusal = checked(error)
        assert seqs == list(range(1, len(seqs) + 1))
        assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_PRUNED")
        last_seq = (await get_run(stage.service, run_id)).last_seq
        assert await _first_behind(stage, refusal) == (run_id, last_seq)
        await channel.close()


async def _first_behind(stage: Stage, refusal: Refusal) -> tuple[str, int]:
    """Where a reader comes in that takes the earliest cursor of a refusal."""
    subscription = stage.subscribe(all=True, cursor=refusal.metadata["earliest_cursor"])
    event = await subscription.read()
    subscription.cancel()
    return event.run_id, event.seq


async def test_retention_does_not_disturb_who_is_reading(stage: Stage) -> None:
    subscription = stage.subscribe(all=True)
    first = await stage.at_work()
    assert (await subscription.read()).run_id == first
    await stage.let_go(first)
    await stage.retention(60)
    second = await stage.ended()
    while (await subscription.read()).run_id != second:
        pass
    subscription.cancel()


# --- filters ---


async def test_the_terminal_event_passes_every_filter(stage: Stage) -> None:
    run_id = await stage.at_work()
    await stage.let_go(run_id)
    everything = await stage.service.events(run_id)
    kinds = {event.WhichOneof("payload") for event in everything}
    assert kinds >= {"lifecycle", "assistant", "message", "tool"}
    for name, number in event_pb2.StreamKind.items():
        if number == event_pb2.STREAM_KIND_UNSPECIFIED:
            continue
        kind = name.removeprefix("STREAM_KIND_").lower()
        expected = [event for event in everything if event.WhichOneof("payload") == kind or event is everything[-1]]
        assert await stage.service.events(run_id, streams=[number]) == expected


async def test_each_verbosity_has_its_own_bytes_which_are_the_same_for_every_reader(stage: Stage) -> None:
    run_id = await stage.at_work()
    live = {
        verbosity: stage.subscribe_bytes(run_id=run_id, after_seq=0, verbose=verbosity) for verbosity in VERBOSITIES
    }
    await stage.let_go(run_id)
    logs = {}
    for verbosity, subscription in live.items():
        logs[verbosity] = [encoded async for encoded in subscription]
        again = [encoded async for encoded in stage.subscribe_bytes(run_id=run_id, after_seq=0, verbose=verbosity)]
        assert again == logs[verbosity]
        of_session = stage.subscribe_bytes(session_key="s", verbose=verbosity)
        assert [await of_session.read() for _ in again] == again
        of_session.cancel()
    off, on, full = (logs[verbosity] for verbosity in VERBOSITIES)
    assert off == on
    differing = [event_pb2.Event.FromString(b) for a, b in zip(on, full, strict=True) if a != b]
    assert [event.tool.phase for event in differing] == [event_pb2.TOOL_PHASE_RESULT]
    assert differing[0].tool.result.text == "done"
    shown = [event_pb2.Event.FromString(encoded).tool for encoded in off]
    assert [tool.outcome for tool in shown if tool.phase == event_pb2.TOOL_PHASE_RESULT] == [event_pb2.TOOL_OUTCOME_OK]


VERBOSITIES = (agent_pb2.VERBOSITY_OFF, agent_pb2.VERBOSITY_ON, agent_pb2.VERBOSITY_FULL)


# --- sessions and everything ---


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
        assert await _first_behind(stage, refusal) == (run_id, 1)


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
