"""What counts as a run's time, and which of two ends stands (02 6.3 and 9, 01 2.7 R-1.80, D-14, D-17)."""

import asyncio
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.runs.bench import check_is_over, is_phase, running_bench, soon
from tests.unit.runs.staged_model import answer, asks
from tests.unit.runs.stubborn_tool import StubbornTool

from lanewayd.clock import SystemClock
from lanewayd.records import RunState
from lanewayd.runs.outcome import StopCause

# --- what counts ---


@pytest.mark.parametrize("waits_for", ["its session", "its lane"])
async def test_the_time_in_the_queue_is_not_charged(tmp_path: Path, waits_for: str) -> None:
    """R-2.107: the deadline is set when execution begins."""
    async with running_bench(tmp_path, widths={"main": 1}) as bench:
        await bench.accept("talk", timeout_s=0.0)
        before = await bench.model_call()
        run_id = await bench.accept("talk" if waits_for == "its session" else "elsewhere", timeout_s=30.0)
        await bench.clock.advance(1000)
        assert (await bench.run(run_id)).state is RunState.QUEUED
        before.end(answer())
        await bench.model_call()
        await bench.clock.advance(29.9)
        assert (await bench.run(run_id)).state is RunState.RUNNING
        await bench.clock.advance(0.1)
        run = await bench.done(run_id)
        assert (run.state, run.used_s) == (RunState.TIMED_OUT, 30.0)


@pytest.mark.parametrize("leap", [timedelta(days=3), timedelta(days=-3)], ids=["forward", "back"])
async def test_a_leap_of_the_time_of_day_is_not_charged(tmp_path: Path, leap: timedelta) -> None:
    """R-2.131: after the machine has slept, or its clock was set, a run has the time left that it had before."""
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(timeout_s=30.0)
        await bench.model_call()
        await bench.clock.advance(10)
        bench.clock.leap(leap)
        await bench.clock.advance(19.9)
        assert (await bench.run(run_id)).state is RunState.RUNNING
        await bench.clock.advance(0.1)
        run = await bench.done(run_id)
        assert (run.state, run.used_s) == (RunState.TIMED_OUT, 30.0)


@pytest.mark.skipif(sys.platform != "linux", reason="what stands still differs between systems")
def test_the_clock_of_the_machine_stands_still_while_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-2.131: CLOCK_MONOTONIC does not count a suspend, CLOCK_BOOTTIME would. Source: clock_gettime(2)."""
    assert time.get_clock_info("monotonic").implementation == "clock_gettime(CLOCK_MONOTONIC)"
    monkeypatch.setattr("lanewayd.clock.time", SimpleNamespace(monotonic=lambda: 7.0))
    assert SystemClock().monotonic() == 7.0


# --- which end stands ---


@pytest.mark.parametrize(
    ("first", "second", "state", "stop_reason"),
    [
        (StopCause.ABORT, StopCause.DEADLINE, RunState.CANCELLED, "rpc"),
        (StopCause.ABORT, StopCause.DRAIN, RunState.CANCELLED, "rpc"),
        (StopCause.DEADLINE, StopCause.ABORT, RunState.TIMED_OUT, "deadline"),
        (StopCause.DEADLINE, StopCause.DRAIN, RunState.TIMED_OUT, "deadline"),
    ],
)
async def test_the_first_cause_of_a_stop_is_how_the_run_ends(
    tmp_path: Path, first: StopCause, second: StopCause, state: RunState, stop_reason: str
) -> None:
    """R-1.80: cancelled stays cancelled, a passed deadline stays that, whatever comes while the run unwinds."""
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        run_id = await bench.accept(timeout_s=30.0)
        await soon(tool.asked.get())
        for cause in (first, second):
            if cause is StopCause.DEADLINE:
                await bench.clock.advance(30 - bench.clock.monotonic())
            else:
                bench.scheduler.stop(run_id, cause, "rpc" if cause is StopCause.ABORT else "")
            await soon(tool.asked_to_stop.wait())
        tool.let_go.set()
        run = await bench.done(run_id)
        assert (run.state, run.stop_reason) == (state, stop_reason)
        await check_is_over(bench, run_id)


@pytest.mark.parametrize("late", list(StopCause))
async def test_what_comes_after_the_end_changes_nothing(tmp_path: Path, late: StopCause) -> None:
    """R-1.80: an answer that came before a stop stands; there is one terminal event."""
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(timeout_s=30.0)
        (await bench.model_call()).end(answer())
        before = await bench.done(run_id)
        await bench.clock.advance(30)
        bench.scheduler.stop(run_id, late, "rpc")
        await bench.idle()
        assert await bench.run(run_id) == before
        assert before.state is RunState.SUCCEEDED
        events = await bench.events(run_id)
        assert [is_phase("lifecycle", "end")(event) for event in events].count(True) == 1


async def test_an_abort_while_the_server_leaves_ends_the_run_in_the_next_process(tmp_path: Path) -> None:
    """It is handed over by then; what was asked for is durable, and no model is called for it any more (D-20)."""
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        run_id = await bench.accept()
        await soon(tool.asked.get())
        bench.scheduler.stop_all(StopCause.DRAIN)
        await soon(tool.asked_to_stop.wait())
        timers = bench.clock.timer_count
        aborting = asyncio.create_task(bench.abort(run_id))
        await soon(bench.clock.wait_for_timers(timers + 1))
        tool.let_go.set()
        await bench.idle()
        assert (await bench.run(run_id)).state is RunState.RUNNING
        await bench.clock.advance(5)
        assert (await soon(aborting)).pending_run_ids == (run_id,)
    async with running_bench(tmp_path) as bench:
        run = await bench.ended(run_id)
        assert (run.state, run.stop_reason) == (RunState.CANCELLED, "rpc")
        assert bench.provider.calls == []
        await check_is_over(bench, run_id)
