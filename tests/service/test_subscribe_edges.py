"""Subscribe and RunAgent at their edges, through the whole service (CONTRACT, Subscribe; D-3)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.service.agreement import get_run
from tests.service.refusals import checked
from tests.service.subscribe_stage import Stage, first_behind, read, staged

from laneway.v1 import agent_pb2, agent_pb2_grpc, event_pb2

OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
DAY_S = 86_400.0
FULL = agent_pb2.VERBOSITY_FULL


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncIterator[Stage]:
    async with staged(tmp_path / "home", model) as stage:
        yield stage


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
        assert await first_behind(stage, refusal) == (run_id, 1)
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
            assert await first_behind(stage, refusal) == (run_id, earliest)
        assert await stage.service.events(run_id, after_seq=earliest - 1) == before[-5:]
        snapshot, *events = [event async for event in stage.subscribe(run_id=run_id, verbose=FULL)]
        assert (snapshot.snapshot.first_seq, snapshot.snapshot.last_seq) == (earliest, last_seq)
        assert events == before[-5:]

        refusal = await stage.refused(session_key="s", cursor=before[0].cursor)
        assert (refusal.status, refusal.reason) == (OUT_OF_RANGE, "CURSOR_PRUNED")
        assert await first_behind(stage, refusal) == (run_id, earliest)
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
        assert await first_behind(stage, refusal) == (run_id, last_seq)
        await channel.close()


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
