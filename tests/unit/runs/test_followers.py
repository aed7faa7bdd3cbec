"""Reading logs by cursor (D-3; CONTRACT, Subscribe), over a real store whose reads a test can hold."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import (
    KEEP_ALL,
    NOW,
    SESSION,
    TENANT,
    a_selector,
    accept_run,
    append_to,
    ended,
    ends,
    running,
    says,
    start_run,
)
from tests.unit.runs.bench import soon
from tests.unit.runs.seen_store import SeenStore

from lanewayd.errors import LanewayError
from lanewayd.events import StoredEvent
from lanewayd.runs.commits import CommitFeed
from lanewayd.runs.followers import PAGE_EVENTS, TAIL_EVENTS, Followers
from lanewayd.runs.interface import Progress, Snapshot
from lanewayd.runs.registry import RunRegistry
from lanewayd.store.interface import DeleteSession
from lanewayd.store.sqlite import SqliteStore

Item = StoredEvent | Snapshot | Progress
T = TypeVar("T")


@dataclass
class Desk:
    """Followers over a store. They hear its commits as in the service; its other listener is deaf."""

    store: SqliteStore
    seen: SeenStore
    clock: FakeClock
    followers: Followers

    def committed(self, command: object, result: object) -> None:
        """As the run registry hears it."""

    async def say(self, run_id: str, first_seq: int, count: int) -> None:
        """Append `count` events."""
        await self.store.append(append_to(run_id, first_seq, says(*(f"text {number}" for number in range(count)))))

    async def end(self, run_id: str, seq: int) -> None:
        await self.store.append(append_to(run_id, seq, ends()))

    async def prune(self, **rules: object) -> None:
        """All that `rules` say goes."""
        while not (await self.store.prune(replace(KEEP_ALL, **rules))).is_done:  # type: ignore[arg-type]
            pass


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    store = await SqliteStore.open(tmp_path / "laneway.db", codec=JsonCodec())
    seen, clock = SeenStore(store), FakeClock()
    desk = Desk(store, seen, clock, Followers(seen.as_store, clock))
    store.listener = CommitFeed(desk.followers, cast("RunRegistry", desk), on_store_works=lambda _works: None)
    yield desk
    await store.close()


async def take(items: AsyncGenerator[T, None], count: int) -> list[T]:
    return [await soon(anext(items)) for _ in range(count)]


async def rest(items: AsyncGenerator[T, None]) -> list[T]:
    async with asyncio.timeout(10), aclosing(items):
        return [item async for item in items]


def seqs(items: list[Item]) -> list[int]:
    return [item.seq for item in items if isinstance(item, StoredEvent)]


def whole(items: list[Item]) -> list[tuple[str, int, bytes]]:
    return [(item.run_id, item.seq, item.encoded) for item in items if isinstance(item, StoredEvent)]


async def refused_after(items: AsyncGenerator[T, None], got: list[T]) -> LanewayError:
    """Read into `got` until the reader is refused."""

    async def read() -> None:
        async for item in items:
            got.append(item)  # noqa: PERF401 - what came before the refusal counts

    with pytest.raises(LanewayError) as raised:
        await soon(read())
    return raised.value


async def refusal(items: AsyncGenerator[T, None]) -> LanewayError:
    with pytest.raises(LanewayError) as raised:
        await rest(items)
    return raised.value


@asynccontextmanager
async def held_reads(desk: Desk, name: str) -> "AsyncIterator[asyncio.Queue[asyncio.Future[None]]]":
    held = desk.seen.hold(name)
    yield held
    desk.seen.let_go(name)


# --- one run ---


async def test_a_commit_during_a_read_wakes_the_reader(desk: Desk) -> None:
    await running(desk.store, "r")
    async with aclosing(desk.followers.follow_run(TENANT, "r", 1)) as items:
        async with held_reads(desk, "run_events") as held:
            reading = asyncio.create_task(anext(items))
            first_read = await soon(held.get())
            await desk.say("r", 2, 1)
        first_read.set_result(None)  # it hears "nothing yet", yet must wake
        item = await soon(reading)
        assert isinstance(item, StoredEvent)
        assert item.seq == 2


async def test_a_late_reader_gets_everything_once_and_in_order(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 3 * PAGE_EVENTS)
    async with aclosing(desk.followers.follow_run(TENANT, "r", 0)) as items:
        got = await take(items, 10)
        last = 3 * PAGE_EVENTS + 1
        await desk.say("r", last + 1, 5)
        await desk.end("r", last + 6)
        got += await rest(items)
        assert seqs(got) == list(range(1, last + 7))


async def test_all_readers_of_an_event_get_the_same_bytes(desk: Desk) -> None:
    await running(desk.store, "r")
    early = asyncio.create_task(rest(desk.followers.follow_run(TENANT, "r", 0)))
    session = desk.followers.follow_session(TENANT, SESSION, None)
    everything = desk.followers.follow_all(TENANT, 1)
    first_of_session = await take(session, 1)
    await desk.say("r", 2, 300)
    middle = asyncio.create_task(rest(desk.followers.follow_run(TENANT, "r", 0)))
    await desk.end("r", 302)
    of_session = first_of_session + await take(session, 301)
    of_all = await take(everything, 301)
    await session.aclose()
    await everything.aclose()
    late = await rest(desk.followers.follow_run(TENANT, "r", 0))
    assert len(late) == 302
    assert whole(await soon(early)) == whole(await soon(middle)) == whole(late) == whole(list(of_session))
    assert whole(list(of_all)) == whole(late)[1:]


async def test_a_reconnecting_reader_goes_on_exactly_where_it_was(desk: Desk) -> None:
    await running(desk.store, "r")
    got: list[Item] = []
    for number in range(20):
        after_seq = seqs(got)[-1] if got else 0
        async with aclosing(desk.followers.follow_run(TENANT, "r", after_seq)) as items:
            got += await take(items, 1)
            await desk.say("r", 2 + 3 * number, 3)
            got += await take(items, 2)
    await desk.end("r", 62)
    got += await rest(desk.followers.follow_run(TENANT, "r", seqs(got)[-1]))
    assert seqs(got) == list(range(1, 63))
    assert desk.followers.count == 0


async def test_a_reader_that_falls_behind_the_tail_reads_the_store_again(desk: Desk) -> None:
    await running(desk.store, "r")
    async with aclosing(desk.followers.follow_run(TENANT, "r", 1)) as items:
        waiting = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.say("r", 2, 1)
        got = [await soon(waiting)]
        reads = desk.seen.reads.count("run_events")
        await desk.say("r", 3, 1)
        got += await take(items, 1)
        assert desk.seen.reads.count("run_events") == reads  # from the tail
        await desk.say("r", 4, 2 * TAIL_EVENTS)
        await desk.end("r", 4 + 2 * TAIL_EVENTS)
        got += await rest(items)
        assert desk.seen.reads.count("run_events") > reads
        assert seqs(got) == list(range(2, 5 + 2 * TAIL_EVENTS))


async def test_large_events_leave_the_tail_by_their_bytes(desk: Desk) -> None:
    await running(desk.store, "r")
    async with aclosing(desk.followers.follow_run(TENANT, "r", 1)) as items:
        waiting = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        for seq in range(2, 12):
            await desk.store.append(append_to("r", seq, says("x" * 200_000)))
        await desk.end("r", 12)
        got = [await soon(waiting), *await rest(items)]
        assert seqs(got) == list(range(2, 13))


async def until_caught_up(desk: Desk) -> None:
    """The reader has read the store to the end and waits (with its timer for progress)."""
    await soon(desk.clock.wait_for_timers(1))


async def test_a_reader_of_an_ended_run_at_its_last_event_is_done_at_once(desk: Desk) -> None:
    await ended(desk.store, "r", texts=3)
    assert await rest(desk.followers.follow_run(TENANT, "r", 5)) == []
    assert seqs(await rest(desk.followers.follow_run(TENANT, "r", 4))) == [5]
    assert "run_events" in desk.seen.reads


async def test_without_a_cursor_a_snapshot_comes_first_then_everything(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 2)
    items = desk.followers.follow_run(TENANT, "r", None)
    [snapshot] = await take(items, 1)
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.run.run_id, snapshot.first_seq, snapshot.last_seq) == ("r", 1, 3)
    await desk.end("r", 4)
    assert seqs(await rest(items)) == [1, 2, 3, 4]


async def test_with_a_cursor_of_0_there_is_no_snapshot(desk: Desk) -> None:
    await ended(desk.store, "r")
    assert seqs(await rest(desk.followers.follow_run(TENANT, "r", 0))) == [1, 2]


async def test_a_snapshot_of_a_run_without_events_left_says_so_and_is_all(desk: Desk) -> None:
    await ended(desk.store, "r", texts=3)
    await desk.prune(now=NOW + timedelta(days=8))
    [snapshot] = await rest(desk.followers.follow_run(TENANT, "r", None))
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.first_seq, snapshot.last_seq) == (6, 5)
    assert await rest(desk.followers.follow_run(TENANT, "r", 5)) == []


async def test_a_queued_run_can_be_followed_before_it_has_an_event(desk: Desk) -> None:
    await desk.store.accept(accept_run("r"))
    async with aclosing(desk.followers.follow_run(TENANT, "r", 0)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.store.start(start_run("r"))
        assert seqs([await soon(reading)]) == [1]


@pytest.mark.parametrize("after_seq", [6, 10**9])
async def test_a_cursor_above_the_log_is_refused_and_not_waited_for(desk: Desk, after_seq: int) -> None:
    await ended(desk.store, "ended", texts=3)
    error = await refusal(desk.followers.follow_run(TENANT, "ended", after_seq))
    assert error.code == "CURSOR_AHEAD"
    assert (error.metadata["earliest_seq"], error.metadata["latest_seq"]) == ("1", "5")
    await running(desk.store, "live", "agent:main:other")
    assert (await refusal(desk.followers.follow_run(TENANT, "live", after_seq))).code == "CURSOR_AHEAD"
    assert desk.followers.count == 0


async def test_a_cursor_below_what_is_left_is_refused_and_told_where_to_go_on(desk: Desk) -> None:
    await ended(desk.store, "r", texts=8)
    await desk.prune(max_events_per_run=3)
    error = await refusal(desk.followers.follow_run(TENANT, "r", 6))
    assert error.code == "CURSOR_PRUNED"
    assert (error.metadata["earliest_seq"], error.metadata["latest_seq"]) == ("8", "10")
    assert seqs(await rest(desk.followers.follow_run(TENANT, "r", 7))) == [8, 9, 10]


async def test_retention_that_overtakes_a_slow_reader_is_told_in_mid_stream(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 3 * PAGE_EVENTS)
    items = desk.followers.follow_run(TENANT, "r", 0)
    got = await take(items, 10)
    await desk.prune(max_events_per_run=5)
    error = await refused_after(items, got)
    assert seqs(got) == list(range(1, PAGE_EVENTS + 1))  # the page it had in hand
    assert (error.code, error.metadata["earliest_seq"]) == ("CURSOR_PRUNED", str(3 * PAGE_EVENTS - 3))


async def test_a_slow_reader_of_a_run_whose_whole_log_has_gone_is_told_and_does_not_wait(desk: Desk) -> None:
    await ended(desk.store, "r", texts=2 * PAGE_EVENTS)
    items = desk.followers.follow_run(TENANT, "r", 0)
    await take(items, PAGE_EVENTS)
    await desk.prune(now=NOW + timedelta(days=8))
    assert (await refusal(items)).code == "CURSOR_PRUNED"


async def test_an_unknown_run_and_another_tenants_run_do_not_exist(desk: Desk) -> None:
    await ended(desk.store, "r")
    assert (await refusal(desk.followers.follow_run(TENANT, "nothing", 0))).code == "RUN_NOT_FOUND"
    assert (await refusal(desk.followers.follow_run("stranger", "r", 0))).code == "RUN_NOT_FOUND"


async def test_live_readers_see_the_end_of_a_run_of_a_deleted_session(desk: Desk) -> None:
    await running(desk.store, "r")
    items = desk.followers.follow_run(TENANT, "r", 1)
    reading = asyncio.create_task(anext(items))
    await until_caught_up(desk)
    await desk.end("r", 2)
    await desk.store.delete_session(DeleteSession(TENANT, SESSION))
    item = await soon(reading)
    assert isinstance(item, StoredEvent)
    assert item.is_last
    assert await rest(items) == []


async def test_b040_replay_and_live_join_without_overlap_or_hole(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 599)
    await desk.prune(max_events_per_run=500)
    items = desk.followers.follow_run(TENANT, "r", None)
    [snapshot] = await take(items, 1)
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.first_seq, snapshot.last_seq) == (101, 600)
    got: list[Item] = []
    for number in range(50):  # it reads slowly: an event is emitted with every ten it takes
        got += await take(items, 10)
        await desk.say("r", 601 + number, 1)
    await desk.end("r", 651)
    got += await rest(items)
    assert seqs(got) == list(range(101, 652))


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
    assert (desk.followers.count, desk.followers.followed) == (0, 0)


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
