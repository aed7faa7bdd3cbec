"""Reading the log of one run by cursor (D-3; CONTRACT, Subscribe)."""

import asyncio
from contextlib import aclosing
from datetime import timedelta

import pytest
from tests.fakes.store_commands import (
    NOW,
    SESSION,
    TENANT,
    accept_run,
    append_to,
    ended,
    running,
    says,
    start_run,
)
from tests.unit.runs.bench import soon
from tests.unit.runs.follower_desk import (
    Desk,
    Item,
    LateFollowers,
    held_reads,
    refusal,
    refused_after,
    rest,
    seqs,
    take,
    until_caught_up,
    whole,
)

from lanewayd.errors import ErrorCode
from lanewayd.events import StoredEvent
from lanewayd.runs.followers import PAGE_EVENTS, PROGRESS_AFTER_S, TAIL_EVENTS
from lanewayd.runs.interface import Progress, Snapshot
from lanewayd.store.interface import DeleteSession


async def test_a_commit_during_a_read_wakes_the_reader(late_desk: Desk) -> None:
    await running(late_desk.store, "r")
    async with aclosing(late_desk.followers.follow_run(TENANT, "r", 1)) as items:
        async with held_reads(late_desk, "run_events") as held:
            reading = asyncio.create_task(anext(items))
            first_read = await soon(held.get())
            await late_desk.say("r", 2, 1)
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


async def test_an_event_that_is_stored_while_the_first_page_is_read_is_not_skipped(late_desk: Desk) -> None:
    await running(late_desk.store, "r")
    async with aclosing(late_desk.followers.follow_run(TENANT, "r", 1)) as items:
        async with held_reads(late_desk, "run_events") as held:
            reading = asyncio.create_task(anext(items))
            page = await soon(held.get())
            await late_desk.end("r", 2)
        page.set_result(None)
        item = await soon(reading)
    assert isinstance(item, StoredEvent)
    assert item.seq == 2


async def test_who_follows_a_run_from_its_beginning_in_time_does_not_ask_the_store(desk: Desk) -> None:
    await running(desk.store, "elsewhere", "agent:main:other")
    await desk.store.accept(accept_run("r"))
    async with aclosing(desk.followers.follow_run(TENANT, "r", 0)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.store.start(start_run("r"))
        await desk.say("r", 2, 3)
        got = [await soon(reading), *await take(items, 3)]
        async with aclosing(desk.followers.follow_run(TENANT, "r", 2)) as others:
            got_later = await take(others, 2)
    assert (seqs(got), seqs(got_later)) == ([1, 2, 3, 4], [3, 4])
    is_late = isinstance(desk.followers, LateFollowers)
    assert ("run_events" in desk.seen.reads) == is_late


async def test_who_waits_for_the_first_event_of_a_run_stands_behind_all_that_was_committed(desk: Desk) -> None:
    await running(desk.store, "elsewhere", "agent:main:other")
    await desk.store.accept(accept_run("r"))
    async with aclosing(desk.followers.follow_run(TENANT, "r", 0)) as items:
        reading = asyncio.create_task(anext(items))
        await until_caught_up(desk)
        await desk.clock.advance(PROGRESS_AFTER_S)
        assert await soon(reading) == Progress(1)


async def test_a_cursor_above_a_log_that_is_followed_from_memory_is_refused(desk: Desk) -> None:
    await running(desk.store, "r")
    assert (await refusal(desk.followers.follow_run(TENANT, "r", 2))).code is ErrorCode.CURSOR_AHEAD


async def test_events_that_retention_took_are_missed_also_by_who_could_read_them_from_memory(desk: Desk) -> None:
    await running(desk.store, "r")
    await desk.say("r", 2, 8)
    await desk.prune(max_events_per_run=3)
    assert (await refusal(desk.followers.follow_run(TENANT, "r", 0))).code is ErrorCode.CURSOR_PRUNED
