"""Reading the log of a session and of everything; silence, leaving, counting."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

import pytest
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    a_selector,
    accept_run,
    ended,
    running,
    start_run,
)
from tests.unit.runs.bench import soon
from tests.unit.runs.follower_desk import (
    Desk,
    Item,
    refusal,
    refused_after,
    rest,
    seqs,
    take,
    until_caught_up,
    whole,
)

from lanewayd.errors import LanewayError
from lanewayd.events import StoredEvent
from lanewayd.runs.followers import PAGE_EVENTS, UNREAD_TAIL_EVENTS
from lanewayd.runs.interface import Progress

# --- sessions and everything ---


async def test_a_session_is_followed_before_it_exists_and_across_its_runs(desk: Desk) -> None:
    async with aclosing(desk.followers.follow_session(TENANT, "talk", None)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await ended(desk.store, "r1", texts=2)
        await ended(desk.store, "other", "agent:main:other")
        await ended(desk.store, "r2", texts=1)
        got = [await soon(reading), *await take(items, 6)]
        assert [(run_id, seq) for run_id, seq, _ in whole(list(got))] == [
            ("r1", 1),
            ("r1", 2),
            ("r1", 3),
            ("r1", 4),
            ("r2", 1),
            ("r2", 2),
            ("r2", 3),
        ]


async def test_a_session_without_a_cursor_starts_at_its_oldest_unended_run(desk: Desk) -> None:
    await ended(desk.store, "r1")
    await running(desk.store, "r2")
    async with aclosing(desk.followers.follow_session(TENANT, SESSION, None)) as items:
        [event] = await take(items, 1)
        assert isinstance(event, StoredEvent)
        assert (event.run_id, event.seq) == ("r2", 1)


async def test_a_session_without_a_cursor_can_be_followed_after_earlier_runs_were_pruned(desk: Desk) -> None:
    """The run's queue event lies before events of the run it waited for, which are gone."""
    await running(desk.store, "r1")
    await desk.store.accept(accept_run("r2"))
    await desk.say("r1", 2, 3)
    await desk.end("r1", 5)
    await desk.prune(now=NOW + timedelta(days=8))
    async with aclosing(desk.followers.follow_session(TENANT, SESSION, None)) as items:
        got = await take(items, 1)
        await desk.store.start(start_run("r2"))
        got += await take(items, 1)
        assert [(run_id, seq) for run_id, seq, _ in whole(list(got))] == [("r2", 1), ("r2", 2)]


@pytest.mark.parametrize("kind", ["session", "all"])
async def test_a_position_goes_on_exactly_after_the_event_it_belongs_to(desk: Desk, kind: str) -> None:
    def follow(position: int | None) -> AsyncGenerator[StoredEvent | Progress, None]:
        if kind == "session":
            return desk.followers.follow_session(TENANT, SESSION, position)
        return desk.followers.follow_all(TENANT, position)

    await ended(desk.store, "r1", texts=20)
    await ended(desk.store, "r2", texts=20)
    everything = await take(follow(0), 44)
    for number in (0, 1, 21, 22, 42):
        event = everything[number]
        assert isinstance(event, StoredEvent)
        async with aclosing(follow(event.position)) as items:
            assert await take(items, 43 - number) == everything[number + 1 :]


async def test_everything_without_a_cursor_starts_now(desk: Desk) -> None:
    await ended(desk.store, "r1")
    async with aclosing(desk.followers.follow_all(TENANT, None)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await ended(desk.store, "r2", "agent:main:other")
        strange = a_selector(new_session_id="of a stranger")
        await desk.store.accept(accept_run("strange", tenant="stranger", session=strange))
        await desk.store.start(start_run("strange"))
        await ended(desk.store, "r3")
        got = [await soon(reading), *await take(items, 3)]
        assert [run_id for run_id, _, _ in whole(list(got))] == ["r2", "r2", "r3", "r3"]


@pytest.mark.parametrize("kind", ["session", "all"])
async def test_positions_out_of_the_log_are_refused(desk: Desk, kind: str) -> None:
    def follow(position: int) -> AsyncGenerator[StoredEvent | Progress, None]:
        if kind == "session":
            return desk.followers.follow_session(TENANT, SESSION, position)
        return desk.followers.follow_all(TENANT, position)

    await ended(desk.store, "r1", texts=8)
    await ended(desk.store, "r2", at=NOW + timedelta(days=5))
    await desk.prune(now=NOW + timedelta(days=8))
    last = await desk.store.last_position()
    assert last == 12
    assert (await refusal(follow(last + 1))).code == "CURSOR_AHEAD"
    error = await refusal(follow(9))
    assert (error.code, error.metadata["earliest_position"]) == ("CURSOR_PRUNED", "10")
    async with aclosing(follow(10)) as items:  # the last event that is gone: all above it is there
        assert seqs(list(await take(items, 2))) == [1, 2]


async def test_a_reader_that_stands_at_the_very_beginning_may_come_back(desk: Desk) -> None:
    async with aclosing(desk.followers.follow_session(TENANT, SESSION, None)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.clock.advance(15)
        progress = await soon(reading)
    assert progress == Progress(0)
    await ended(desk.store, "r1")
    async with aclosing(desk.followers.follow_session(TENANT, SESSION, 0)) as items:
        assert seqs(list(await take(items, 2))) == [1, 2]


@pytest.mark.parametrize("kind", ["session", "all"])
async def test_retention_that_overtakes_a_slow_reader_of_many_runs_is_told_in_mid_stream(desk: Desk, kind: str) -> None:
    await ended(desk.store, "r1", texts=PAGE_EVENTS)
    await ended(desk.store, "r2", texts=PAGE_EVENTS, at=NOW)
    await ended(desk.store, "r3", at=NOW + timedelta(days=5))
    items = (
        desk.followers.follow_session(TENANT, SESSION, 0) if kind == "session" else desk.followers.follow_all(TENANT, 0)
    )
    got = await take(items, 5)
    await desk.prune(now=NOW + timedelta(days=8))
    error = await refused_after(items, got)
    assert len(got) == PAGE_EVENTS
    assert error.code == "CURSOR_PRUNED"
    position = int(error.metadata["earliest_position"])
    again = (
        desk.followers.follow_session(TENANT, SESSION, position)
        if kind == "session"
        else desk.followers.follow_all(TENANT, position)
    )
    assert [run_id for run_id, _, _ in whole(list(await take(again, 2)))] == ["r3", "r3"]
    await again.aclose()


# --- silence, leaving, counting ---


@pytest.mark.parametrize("kind", ["run", "session", "all"])
async def test_after_15_seconds_of_silence_comes_progress_with_the_readers_position(desk: Desk, kind: str) -> None:
    await running(desk.store, "r")
    follow: dict[str, AsyncGenerator[Item, None]] = {
        "run": desk.followers.follow_run(TENANT, "r", 0),
        "session": desk.followers.follow_session(TENANT, SESSION, 0),  # type: ignore[dict-item]
        "all": desk.followers.follow_all(TENANT, 0),  # type: ignore[dict-item]
    }
    async with aclosing(follow[kind]) as items:
        await take(items, 1)
        for _ in range(3):
            reading = asyncio.create_task(anext(items))
            await until_caught_up(desk)
            await desk.clock.advance(14.9)
            assert not reading.done()
            await desk.clock.advance(0.1)
            assert await soon(reading) == Progress(1)
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.clock.advance(14.9)
        await desk.say("r", 2, 1)
        assert seqs([await soon(reading)]) == [2]


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_when_the_server_leaves_readers_get_what_is_stored_and_are_told(desk: Desk, is_waiting: bool) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 2 * PAGE_EVENTS)
    items = desk.followers.follow_run(TENANT, "r", 0)
    if is_waiting:
        await take(items, 2 * PAGE_EVENTS + 1)
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        desk.followers.leave()
        with pytest.raises(LanewayError) as raised:
            await soon(reading)
        error = raised.value
    else:
        got = await take(items, 5)
        desk.followers.leave()
        error = await refused_after(items, got)
        assert seqs(got) == list(range(1, 2 * PAGE_EVENTS + 2))
    last = str(2 * PAGE_EVENTS + 1)
    assert (error.code, error.retry_after_s, error.metadata["position"]) == ("DRAINING", 1.0, last)
    assert desk.followers.count == 0


async def test_a_run_that_has_ended_is_read_to_its_end_while_the_server_leaves(desk: Desk) -> None:
    await ended(desk.store, "r", texts=3)
    desk.followers.leave()
    assert seqs(await rest(desk.followers.follow_run(TENANT, "r", 0))) == [1, 2, 3, 4, 5]


async def test_nothing_is_kept_of_a_log_that_nobody_follows(desk: Desk) -> None:
    await running(desk.store, "r")
    readers = [desk.followers.follow_run(TENANT, "r", 0) for _ in range(3)]
    sessions = [desk.followers.follow_session(TENANT, SESSION, 0) for _ in range(2)]
    for reader in readers:
        await take(reader, 1)
    for session in sessions:
        await take(session, 1)
    assert desk.followers.count == 5
    assert desk.followers.followed == 2
    for reader in readers[:2]:
        await reader.aclose()
    assert (desk.followers.count, desk.followers.followed) == (3, 2)
    await readers[2].aclose()
    for session in sessions:
        await session.aclose()
    assert desk.followers.count == 0
    await desk.end("r", 2)
    assert desk.followers.followed == 0


async def test_of_a_run_that_nobody_follows_not_everything_is_kept(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, UNREAD_TAIL_EVENTS)
    got = await take(desk.followers.follow_run(TENANT, "r", 0), UNREAD_TAIL_EVENTS + 1)
    assert seqs(got) == list(range(1, UNREAD_TAIL_EVENTS + 2))
    assert "run_events" in desk.seen.reads


async def test_a_hundred_readers_of_one_log_do_not_each_ask_the_store(desk: Desk) -> None:
    await running(desk.store, "r")
    readers = [asyncio.create_task(rest(desk.followers.follow_run(TENANT, "r", 1))) for _ in range(100)]
    await soon(desk.clock.wait_for_timers(100))
    reads = desk.seen.reads.count("run_events")
    await desk.say("r", 2, 50)
    await desk.end("r", 52)
    for reader in readers:
        assert seqs(await soon(reader)) == list(range(2, 53))
    assert desk.seen.reads.count("run_events") == reads
