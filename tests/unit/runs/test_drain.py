"""The phases of a drain and their times (D-18), over a real run service and a clock that obeys."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import TENANT, Bench, running_bench, soon
from tests.unit.runs.staged_model import answer, asks

from lanewayd.errors import LanewayError
from lanewayd.records import RunState
from lanewayd.runs.drain import Drain, DrainSettings, Leavers
from lanewayd.runs.interface import WaitOutcome


class Leaving:
    """A bench with a drain that runs."""

    def __init__(self, bench: Bench, settings: DrainSettings) -> None:
        self.bench = bench
        self.begun = 0
        parts = Leavers(bench.registry, bench.scheduler, bench.park_gate, bench.watches, bench.followers)
        self.drain = Drain(settings, parts, clock=bench.clock, on_begin=self._begin)
        self.gone = asyncio.create_task(self.drain.run(), name="drain")

    def _begin(self) -> None:
        self.begun += 1

    async def check_refuses(self) -> None:
        """A new message is refused with DRAINING."""
        with pytest.raises(LanewayError) as raised:
            await self.bench.accept("late")
        assert (raised.value.code, raised.value.retry_after_s) == ("DRAINING", 1.0)

    async def pass_s(self, seconds: float) -> None:
        """Let time go by once the drain waits for it."""
        await soon(self.bench.clock.wait_for_timers(1))
        await self.bench.clock.advance(seconds)
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def leaving(
    home: Path, *, announce_s: float = 0.0, timeout_s: float = 300.0, park_s: float = 10.0, **settings: Any
) -> AsyncIterator[Leaving]:
    async with running_bench(home, **settings) as bench:
        made = Leaving(bench, DrainSettings(announce_s, timeout_s, park_s))
        yield made
        if not made.gone.done():
            made.drain.request()
            made.drain.request()
            await soon(made.gone)


async def test_nothing_happens_until_it_is_asked_for(tmp_path: Path) -> None:
    async with leaving(tmp_path) as it:
        await it.bench.clock.advance(10**6)
        assert (it.drain.is_draining, it.begun, it.gone.done()) == (False, 0, False)
        it.bench.provider.plan(answer())
        assert (await it.bench.done(await it.bench.accept())).state is RunState.SUCCEEDED


async def test_an_idle_server_leaves_at_once(tmp_path: Path) -> None:
    async with leaving(tmp_path) as it:
        it.drain.request()
        assert (it.drain.is_draining, it.begun) == (True, 1)
        await soon(it.gone)
        assert it.bench.clock.timer_count == 0


async def test_while_it_is_announced_messages_are_accepted_but_not_started(tmp_path: Path) -> None:
    async with leaving(tmp_path, announce_s=5.0) as it:
        it.drain.request()
        await it.pass_s(4.75)
        accepted = await it.bench.accept()
        assert (await it.bench.run(accepted)).state is RunState.QUEUED
        await it.pass_s(0.25)
        await it.check_refuses()
        await soon(it.gone)
        assert it.bench.provider.calls == []


async def test_runs_go_on_until_the_parking_time_and_then_stop_before_their_next_step(tmp_path: Path) -> None:
    tool = RecordingTool("rec")
    async with leaving(tmp_path, timeout_s=300.0, park_s=10.0, tools=[tool]) as it:
        run_id = await it.bench.accept()
        call = await it.bench.model_call()
        it.drain.request()
        await it.pass_s(289.0)
        call.end(asks(("c1", "rec")))
        call = await it.bench.model_call()  # the step after the tool may still begin
        await it.pass_s(1.0)
        call.end(asks(("c2", "rec")))
        await soon(it.gone)
        run = await it.bench.run(run_id)
        assert (run.state, run.handed_over, len(tool.calls)) == (RunState.RUNNING, True, 1)


async def test_what_still_runs_at_the_end_is_cut(tmp_path: Path) -> None:
    async with leaving(tmp_path, timeout_s=300.0, park_s=10.0) as it:
        run_id = await it.bench.accept()
        call = await it.bench.model_call()
        it.drain.request()
        await it.pass_s(290.0)
        await it.pass_s(9.75)
        assert not it.gone.done()
        assert not call.was_closed
        await it.pass_s(0.25)
        await soon(it.gone)
        run = await it.bench.run(run_id)
        assert (run.state, run.handed_over, call.was_closed) == (RunState.RUNNING, True, True)


async def test_when_the_last_run_ends_nothing_is_waited_for_any_more(tmp_path: Path) -> None:
    async with leaving(tmp_path) as it:
        run_id = await it.bench.accept()
        call = await it.bench.model_call()
        waiting = asyncio.create_task(it.bench.registry.wait(TENANT, run_id, 60.0))
        it.drain.request()
        await it.pass_s(100.0 - 41.0)
        call.end(answer())
        assert (await soon(waiting)).outcome is WaitOutcome.ENDED
        await soon(it.gone)
        assert (await it.bench.run(run_id)).state is RunState.SUCCEEDED


@pytest.mark.parametrize("phase", ["announce", "run", "park"])
async def test_a_second_request_cuts_what_runs_at_once(tmp_path: Path, phase: str) -> None:
    async with leaving(tmp_path, announce_s=5.0) as it:
        run_id = await it.bench.accept()
        await it.bench.model_call()
        it.drain.request()
        for name, seconds in (("announce", 5.0), ("run", 285.0)):
            if phase == name:
                break
            await it.pass_s(seconds)
        it.drain.request()
        await soon(it.gone)
        assert (await it.bench.run(run_id)).handed_over
        assert it.begun == 1


async def test_waits_and_readers_are_told_last(tmp_path: Path) -> None:
    async with leaving(tmp_path) as it:
        run_id, queued = await it.bench.accept(), await it.bench.accept()
        await it.bench.model_call()
        waits = [asyncio.create_task(it.bench.registry.wait(TENANT, each, 10**6)) for each in (run_id, queued)]
        reading = asyncio.create_task(it.bench.until(run_id, lambda _event: False))
        await soon(it.bench.clock.wait_for_timers(3))
        it.drain.request()
        it.drain.request()
        await soon(it.gone)
        assert [(await soon(wait)).outcome for wait in waits] == [WaitOutcome.DRAINING, WaitOutcome.DRAINING]
        with pytest.raises(LanewayError) as raised:
            await soon(reading)
        assert raised.value.code == "DRAINING"
        assert (await it.bench.registry.wait(TENANT, queued, 60.0)).outcome is WaitOutcome.DRAINING
