"""Cases of group c: reading the log late, slowly, from anywhere, and what its last event says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.cases.case_files import case
from tests.cases.observing import Observed, entries_of, observe
from tests.cases.stage import Stage
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import DONE, Answer, Step, calls_answer, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, refusal_of, running_service

from laneway.v1 import agent_pb2, event_pb2, run_pb2
from lanewayd.app import Seams

Stream = AsyncIterator[event_pb2.Event]


async def ending(call: Stream) -> grpc.aio.AioRpcError:
    """Read a stream to the error it ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    return caught.value


def deltas(events: list[event_pb2.Event]) -> str:
    """The text that was streamed."""
    return "".join(event.assistant.delta for event in events)


async def pruned(clock: FakeClock) -> None:
    """Return when retention has looked again."""
    await clock.wait_for_upkeep("retention")
    await clock.advance(60)
    await clock.wait_for_upkeep("retention")


async def test_b_040_a_late_reader_gets_what_is_kept_in_order_and_sees_the_gap(
    tmp_path: Path, model: ModelServer
) -> None:
    """START, the user's message and 598 deltas are 600 events, of which 500 are kept; then come 50 more."""
    clock = FakeClock()
    toml = "\n[events]\ndelta_interval_ms = 0\n[events.retention]\nmax_events_per_run = 500\n"
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        more, end = asyncio.Event(), asyncio.Event()
        first = [delta(content=f"{number} ") for number in range(598)]
        then = [delta(content=f"{number} ") for number in range(598, 648)]
        model.answer(Answer([*first, more, *then, end, delta("stop"), DONE]))
        run_id = (await service.accept("go")).run_id
        follow = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0)
        watching = service.agent.Subscribe(follow)
        async for event in watching:
            if event.seq == 600:
                break
        watching.cancel()
        await pruned(clock)

        gap = refusal_of(await ending(service.agent.Subscribe(follow)))
        assert (gap.status, gap.reason) == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_PRUNED")
        assert (gap.metadata["earliest_seq"], gap.metadata["latest_seq"]) == ("101", "600")
        assert gap.metadata["earliest_cursor"]

        replay = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id))
        seqs = []
        async for event in replay:
            if event.HasField("snapshot"):
                assert (event.snapshot.first_seq, event.snapshot.last_seq) == (101, 600)
                continue
            seqs.append(event.seq)
            if event.seq == 300:
                # The reader stands in the middle of the replay while the run goes on.
                more.set()
                async for newer in service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=600)):
                    if newer.seq == 650:
                        break
            if event.seq == 650:
                end.set()
        assert seqs == list(range(101, seqs[-1] + 1))
        assert seqs[-1] == (await service.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))).last_seq


@pytest.mark.parametrize("lost_by", ["retention", "restart"])
async def test_b_041_reading_an_ended_run_ends(tmp_path: Path, model: ModelServer, lost_by: str) -> None:
    """The clock stands still, so that every stream that ends has ended at once."""
    clock = FakeClock()
    home = tmp_path / "home"
    async with running_service(home, model=model, seams=Seams(clock=clock)) as service:
        run_id = (await service.finish("go")).run_id
        last_seq = (await service.events(run_id))[-1].seq
        if lost_by == "retention":
            await clock.wait_for_upkeep("retention")
            await clock.advance(8 * 86_400)
            await pruned(clock)
            await check_ended_log(service, run_id, last_seq, has_events=False)
    if lost_by == "restart":
        async with running_service(home, model=model, seams=Seams(clock=FakeClock())) as service:
            await check_ended_log(service, run_id, last_seq, has_events=True)


async def check_ended_log(service: RunningService, run_id: str, last_seq: int, *, has_events: bool) -> None:
    """Every way to ask for the log of an ended run."""
    negative = refusal_of(
        await ending(service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=-1)))
    )
    assert (negative.status, negative.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
    ahead = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=10**9)
    beyond = refusal_of(await ending(service.agent.Subscribe(ahead)))
    assert (beyond.status, beyond.reason) == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_AHEAD")
    assert beyond.metadata["latest_seq"] == str(last_seq)
    events = [event async for event in service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id))]
    snapshot = events[0].snapshot
    assert snapshot.last_seq == last_seq
    if has_events:
        assert [event.seq for event in events[1:]] == list(range(1, last_seq + 1))
        assert events[-1].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END
    else:
        assert snapshot.first_seq == last_seq + 1
        assert len(events) == 1
        assert snapshot.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert await service.events(run_id, after_seq=last_seq) == []


async def test_b_041_a_cursor_beyond_a_live_run_is_refused(stage: Stage) -> None:
    release = asyncio.Event()
    stage.model.answer(Answer(text_answer("ok").steps, before=release))
    run_id = (await stage.service.accept("go")).run_id
    await stage.model.received(1)
    ahead = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=10**9)
    refusal = refusal_of(await ending(stage.service.agent.Subscribe(ahead)))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_AHEAD")
    release.set()
    assert (await stage.service.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_b_042_a_session_can_be_followed_before_it_exists(timed_stage: Stage) -> None:
    service, clock = timed_stage.service, timed_stage.clock
    timers = clock.timer_count
    stream = service.agent.Subscribe(agent_pb2.SubscribeRequest(session_key="s"))
    events: asyncio.Queue[event_pb2.Event] = asyncio.Queue()

    async def read() -> None:
        async for event in stream:
            events.put_nowait(event)

    reading = asyncio.ensure_future(read())
    for _ in range(3):
        await clock.wait_for_timers(timers + 1)
        await clock.advance(15)
        progress = await events.get()
        assert progress.HasField("progress")
        assert progress.seq == 0
        assert progress.progress.cursor
    run_id = (await service.accept("go", session_key="s")).run_id
    seen: list[event_pb2.Event] = []
    while not seen or not seen[-1].lifecycle.HasField("ended_at"):
        seen.append(await events.get())
    assert {event.run_id for event in seen} == {run_id}
    assert seen == await service.events(run_id)
    assert seen[0].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START
    assert not reading.done()
    stream.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def test_b_042_agent_and_subscribe_in_one_tick_miss_nothing(service: RunningService) -> None:
    """100 rounds of the case's 500."""
    for number in range(100):
        key = f"s{number}"
        stream = service.agent.Subscribe(agent_pb2.SubscribeRequest(session_key=key, verbose=agent_pb2.VERBOSITY_FULL))
        accepting = asyncio.ensure_future(service.accept("go", session_key=key))
        seen: list[event_pb2.Event] = []
        async for event in stream:
            seen.append(event)
            if event.lifecycle.HasField("ended_at"):
                break
        stream.cancel()
        assert seen == await service.events((await accepting).run_id)
        assert seen[0].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START


async def test_b_043_a_subscriber_that_stops_reading_holds_up_nobody(tmp_path: Path, model: ModelServer) -> None:
    """10,000 deltas of 1 KiB, without merging (the case: 200,000; with a stopped client process and the server's
    memory under watch that is a matter of `make soak`). Here: run and readers end while one reader has read one event;
    the service has kept no copy for it but its position; then it gets everything."""
    toml = "\n[events]\ndelta_interval_ms = 0\n"
    count = 10_000
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        piece = delta(content="x" * 1024)
        pieces: list[Step] = [piece * 50 for _ in range(count // 50)]
        go = asyncio.Event()
        model.answer(Answer([go, *pieces, delta("stop"), DONE]))
        request = agent_pb2.SubscribeRequest(session_key="s", verbose=agent_pb2.VERBOSITY_FULL)
        stalled = service.agent.Subscribe(request)
        run_id = (await service.accept("go", session_key="s")).run_id
        first = await stalled.read()
        assert isinstance(first, event_pb2.Event)

        async def read() -> list[event_pb2.Event]:
            seen = []
            async for event in service.agent.Subscribe(request):
                seen.append(event)
                if event.lifecycle.HasField("ended_at"):
                    break
            return seen

        reading = [asyncio.ensure_future(read()) for _ in range(2)]
        go.set()
        ended = await service.wait(run_id, 120)
        assert ended.state == run_pb2.RUN_STATE_SUCCEEDED
        seen = await reading[0]
        assert seen == await reading[1]
        assert sum(len(event.assistant.delta) for event in seen) == count * 1024
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))

        late = [first]
        while not late[-1].lifecycle.HasField("ended_at"):
            event = await stalled.read()
            assert isinstance(event, event_pb2.Event)
            late.append(event)
        assert late == seen
        stalled.cancel()


async def test_b_044_the_terminal_event_says_how_the_run_ended(tmp_path: Path, model: ModelServer) -> None:
    clock = FakeClock()
    async with running_service(tmp_path / "home", model=model, seams=Seams(clock=clock)) as service:
        ends: dict[str, Observed] = {}
        ends["normal"] = await observe(service, (await service.accept("m")).run_id)

        model.answer(Answer([delta(content="half"), asyncio.Event()]))
        run_id = (await service.accept("m")).run_id
        await seen_text(service, run_id)
        await service.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
        ends["abort"] = await observe(service, run_id)

        model.answer(Answer([delta(content="half"), asyncio.Event()]))
        run_id = (await service.accept("m", timeout=Duration(seconds=1))).run_id
        await seen_text(service, run_id)
        await clock.advance(1)
        ends["timeout"] = await observe(service, run_id)

        model.answer(failure(400, {"error": {"message": "no such parameter"}}))
        ends["error"] = await observe(service, (await service.accept("m")).run_id)

        model.answer(Answer([delta(content="as far as"), delta("length"), DONE]))
        ends["length"] = await observe(service, (await service.accept("m")).run_id)

    # `observe` has compared terminal event, Wait and GetRun: state, reason, times, error, usage.
    terminal = {name: end.terminal for name, end in ends.items()}
    assert {name: event.stop_reason for name, event in terminal.items()} == {
        "normal": "stop",
        "abort": "rpc",
        "timeout": "deadline",
        "error": "error",
        "length": "length",
    }
    assert [name for name, event in terminal.items() if event.cancelled] == ["abort"]
    assert [name for name, end in ends.items() if end.waited.truncated] == ["length"]
    assert all(event.HasField("started_at") and event.HasField("ended_at") for event in terminal.values())
    assert terminal["timeout"].error.reason == "RUN_DEADLINE"
    error = terminal["error"].error
    assert (error.reason, error.provider, error.http_status) == ("PROVIDER_REQUEST_REJECTED", "mock", 400)
    assert "no such parameter" in error.message
    assert {name: end.payloads[:1] for name, end in ends.items() if name != "error"} == {
        "normal": ["ok"],
        "abort": ["half"],
        "timeout": ["half"],
        "length": ["as far as"],
    }
    assert [payload.is_error for payload in ends["error"].waited.payloads] == [True]


async def seen_text(service: RunningService, run_id: str) -> None:
    """Return when a first piece of text can be read."""
    call = service.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0))
    async for event in call:
        if event.HasField("assistant"):
            break
    call.cancel()


async def test_b_045_text_that_is_held_back_comes_before_the_end(tmp_path: Path, model: ModelServer) -> None:
    """The clock stands still: nothing that waits for the merge interval of 200 ms would ever come by itself."""
    interval_ms = case("B-045").input["config"]["delta_coalesce_ms"]
    tool = RecordingTool("rec")
    toml = f"\n[events]\ndelta_interval_ms = {interval_ms}\n"
    seams = Seams(clock=FakeClock())
    async with running_service(tmp_path / "home", model=model, toml=toml, tools=[tool], seams=seams) as service:
        called = calls_answer(("rec", {}))
        model.answer(Answer([delta(content="x"), delta(content="yz"), *called.steps]))
        model.answer(text_answer("a", "b", "c"))
        run_id = (await service.accept("go", session_key="s")).run_id
        events = []
        async for event in service.agent.Subscribe(
            agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, verbose=agent_pb2.VERBOSITY_FULL)
        ):
            events.append(event)
            if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END:
                at_the_end = await service.wait(run_id, 0), await entries_of(service, "s")
                assert [payload.text for payload in at_the_end[0].payloads] == ["abc"]
                assert at_the_end[1][-1].assistant.content[0].text == "abc"
        assert events[-1].lifecycle.phase == event_pb2.LIFECYCLE_PHASE_END
        assert deltas(events) == "xyzabc"
        kinds = [event.WhichOneof("payload") for event in events]
        started = kinds.index("tool")
        # Each message: its deltas, then what ends it; its tools behind it; the end behind all.
        assert deltas(events[:started]) == "xyz"
        assert kinds[started - 1] == "message"
        assert kinds[-3:] == ["assistant", "message", "lifecycle"]
        results = [index for index, event in enumerate(events) if event.tool.phase == event_pb2.TOOL_PHASE_RESULT]
        assert results == [started + 1]
