"""RunLog: the only writer of a run's events (D-3), over a real store that fails when the test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.fakes.fake_clock import FakeClock
from tests.fakes.store_codec import JsonCodec, decode
from tests.fakes.store_commands import NOW, SESSION, TENANT, accept_run, an_entry, ends, says, start_run
from tests.unit.runs.bench import soon
from tests.unit.runs.seen_store import SeenStore

from lanewayd.errors import ClaimLost
from lanewayd.records import QueueMode, QueueRules, RunState
from lanewayd.runs.runlog import MAX_CHANGES, RunLog
from lanewayd.store.interface import AppendToRun, RunChange, SettleRun, StartRun
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer_interface import CommitGate


@dataclass
class Desk:
    """A started run (two events would be too few: it has one), its log with a running pump, and the store behind it."""

    store: SqliteStore
    seen: SeenStore
    clock: FakeClock
    log: RunLog
    pump: "asyncio.Task[None]"

    async def texts(self) -> list[str]:
        page = await self.store.run_events(TENANT, "r", after_seq=1, limit=10_000)
        assert page is not None
        assert [event.seq for event in page.events] == list(range(2, len(page.events) + 2))
        return [decode(event.encoded)["assistant"]["delta"] for event in page.events if not event.is_last]


@asynccontextmanager
async def a_desk(home: Path, gate: CommitGate | None = None) -> AsyncIterator[Desk]:
    store = await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), gate=gate)
    seen, clock = SeenStore(store), FakeClock()
    await store.accept(accept_run("r"))
    run = (await store.start(start_run("r"))).run
    log = RunLog(run, store=seen.as_store, clock=clock)
    pump = asyncio.create_task(log.pump())
    try:
        yield Desk(store, seen, clock, log, pump)
    finally:
        pump.cancel()
        with suppress(asyncio.CancelledError):
            await pump
        await store.close()


async def test_changes_are_stored_in_order_and_numbered_without_gaps(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        for number in range(500):
            desk.log.append(says(f"{number}a", f"{number}b"))
            if number % 100 == 0:
                await soon(desk.log.stored())
        await soon(desk.log.stored())
        assert await desk.texts() == [f"{number}{half}" for number in range(500) for half in "ab"]


async def test_one_command_is_on_its_way_and_what_gathers_meanwhile_travels_together(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with a_desk(tmp_path, gate) as desk:
        desk.log.append(says("first"))
        await soon(gate.reached())
        for number in range(1_000):
            desk.log.append(says(str(number)))
        gate.release()
        await soon(desk.log.stored())
        assert desk.seen.most_in_flight == 1
        assert [len(command.changes) for command in desk.seen.appends] == [
            1,
            MAX_CHANGES,
            MAX_CHANGES,
            MAX_CHANGES,
            1_000 - 3 * MAX_CHANGES,
        ]
        assert await desk.texts() == ["first", *map(str, range(1_000))]


async def test_stored_waits_for_what_was_appended_before_it_and_for_nothing_else(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with a_desk(tmp_path, gate) as desk:
        await soon(desk.log.stored())
        desk.log.append(says("first"))
        first = asyncio.create_task(desk.log.stored())
        await soon(gate.reached())
        desk.log.append(says("second"))
        second = asyncio.create_task(desk.log.stored())
        await asyncio.sleep(0)
        assert not first.done()
        assert await desk.texts() == []
        done_when_first_was: list[bool] = []
        first.add_done_callback(lambda _: done_when_first_was.append(second.done()))
        gate.release()
        await soon(first)
        await soon(second)
        assert done_when_first_was == [False]
        assert await desk.texts() == ["first", "second"]


async def test_a_cancelled_barrier_harms_neither_the_log_nor_other_barriers(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with a_desk(tmp_path, gate) as desk:
        desk.log.append(says("text"))
        given_up, other = asyncio.create_task(desk.log.stored()), asyncio.create_task(desk.log.stored())
        await soon(gate.reached())
        given_up.cancel()
        gate.release()
        await soon(other)
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert await desk.texts() == ["text"]


async def test_commits_that_fail_hold_the_log_up_and_lose_nothing(tmp_path: Path) -> None:
    gate = FailingGate()
    async with a_desk(tmp_path, gate) as desk:
        gate.is_failing = True
        desk.log.append(says("a"))
        barrier = asyncio.create_task(desk.log.stored())
        waits_s = (0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0)
        for number, wait_s in enumerate(waits_s):
            await soon(desk.clock.wait_for_sleepers(1))
            desk.log.append(says(str(number)))
            await desk.clock.advance(wait_s - 0.01)
            assert desk.clock.sleeper_count == 1
            gate.is_failing = number < len(waits_s) - 1
            await desk.clock.advance(0.01)
        await soon(barrier)
        await soon(desk.log.stored())
        assert await desk.texts() == ["a", *map(str, range(len(waits_s)))]
        assert not desk.log.is_lost


async def test_after_a_success_the_next_failure_is_tried_again_soon(tmp_path: Path) -> None:
    gate = FailingGate()
    async with a_desk(tmp_path, gate) as desk:
        for _ in range(3):
            gate.is_failing = True
            desk.log.append(says("x"))
            await soon(desk.clock.wait_for_sleepers(1))
            gate.is_failing = False
            await desk.clock.advance(0.25)
            await soon(desk.log.stored())
        assert await desk.texts() == ["x", "x", "x"]


async def test_an_append_that_was_stored_although_the_answer_said_failed_is_not_stored_twice(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.seen.lost_answers = ["append"]
        desk.log.append(says("a", "b"))
        await soon(desk.clock.wait_for_sleepers(1))
        await desk.clock.advance(0.25)
        await soon(desk.log.stored())
        assert await desk.texts() == ["a", "b"]
        desk.log.append(says("c"))
        await soon(desk.log.stored())
        assert await desk.texts() == ["a", "b", "c"]


async def test_an_append_that_was_stored_is_found_even_if_more_has_gathered_meanwhile(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.seen.lost_answers = ["append"]
        desk.log.append(says("a"))
        await soon(desk.clock.wait_for_sleepers(1))
        desk.log.append(says("b"))
        await desk.clock.advance(0.25)
        await soon(desk.log.stored())
        assert await desk.texts() == ["a", "b"]
        assert not desk.log.is_lost


async def test_an_end_that_was_stored_although_the_answer_said_failed_is_the_end(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.seen.lost_answers = ["append"]
        desk.log.append(ends())
        await soon(desk.clock.wait_for_sleepers(1))
        await desk.clock.advance(0.25)
        await soon(desk.log.stored())
        run = await desk.store.run(TENANT, "r")
        assert run is not None
        assert (run.state, run.last_seq) == (RunState.SUCCEEDED, 2)


async def test_changes_without_events_that_were_stored_are_not_taken_for_lost(tmp_path: Path) -> None:
    """A hand-over has no event, so its seq says nothing."""
    async with a_desk(tmp_path) as desk:
        desk.seen.lost_answers = ["append"]
        desk.log.append(says())
        await soon(desk.clock.wait_for_sleepers(1))
        await desk.clock.advance(0.25)
        await soon(desk.log.stored())
        assert not desk.log.is_lost


async def test_another_start_of_the_run_shuts_the_log_out(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        await desk.store.start(StartRun("r", NOW, recovered=True))
        desk.log.append(says("too late"))
        with pytest.raises(ClaimLost):
            await soon(desk.log.stored())
        assert desk.log.is_lost
        await soon(desk.pump)
        with pytest.raises(ClaimLost):
            desk.log.append(says("much too late"))
        with pytest.raises(ClaimLost):
            await desk.log.stored()
        assert await desk.texts() == []


async def test_the_end_of_the_run_shuts_the_log_out(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        await desk.store.settle(SettleRun("r", ends(RunState.CANCELLED)))
        desk.log.append(says("too late"))
        with pytest.raises(ClaimLost):
            await soon(desk.log.stored())
        run = await desk.store.run(TENANT, "r")
        assert run is not None
        assert (run.state, run.last_seq) == (RunState.CANCELLED, 2)


async def test_a_lost_claim_is_told_to_all_who_wait(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, StartRun) and command.recovered)
    async with a_desk(tmp_path, gate) as desk:
        other = asyncio.create_task(desk.store.start(StartRun("r", NOW, recovered=True)))
        await soon(gate.reached())
        desk.log.append(says("a"))
        first = asyncio.create_task(desk.log.stored())
        desk.log.append(says("b"))
        second = asyncio.create_task(desk.log.stored())
        gate.release()
        await soon(other)
        for barrier in (first, second):
            with pytest.raises(ClaimLost):
                await soon(barrier)


async def test_a_closed_log_stores_what_it_has_and_takes_no_more(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with a_desk(tmp_path, gate) as desk:
        desk.log.append(says("a"))
        desk.log.close()
        with pytest.raises(ValueError, match="closed"):
            desk.log.append(says("b"))
        await soon(gate.reached())
        assert not desk.pump.done()
        gate.release()
        await soon(desk.pump)
        assert await desk.texts() == ["a"]


async def test_entries_that_were_stored_although_the_answer_said_failed_are_not_appended_twice(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.seen.lost_answers = ["append"]
        desk.log.append(RunChange(entries=(an_entry("e1"), an_entry("e2"))))
        await soon(desk.clock.wait_for_sleepers(1))
        desk.log.append(says("a"))
        await desk.clock.advance(0.25)
        await soon(desk.log.stored())
        entries = await desk.store.entries(TENANT, SESSION, after_no=0, limit=9)
        assert [entry.entry_id for _, entry in entries] == ["e1", "e2"]
        assert await desk.texts() == ["a"]


async def test_an_end_that_is_refused_is_told_when_all_before_it_is_stored(tmp_path: Path) -> None:
    """Else the run would be read on without its own answer, and the model asked for it again."""
    async with a_desk(tmp_path) as desk:
        rules = QueueRules(QueueMode.STEER, can_join=lambda _host, _message: True)
        await desk.store.accept(accept_run("late", queue=rules))
        appends = desk.seen.hold("append")
        desk.log.append(replace(says("answer"), entries=(an_entry("answer"),)))
        desk.log.append(ends())
        ended = asyncio.ensure_future(desk.log.ended())
        again = await soon(appends.get())  # without the end, which was refused with all before it
        assert not ended.done()
        again.set_result(None)
        assert await soon(ended) is False
        assert [entry.entry_id for entry in await desk.store.context(f"id of {SESSION}")][-1] == "answer"
        desk.seen.let_go("append")
