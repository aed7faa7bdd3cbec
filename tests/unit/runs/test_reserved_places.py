"""A run that need not wait gets its place before it is accepted, and gives it back when it is not started after all."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.unit.runs.bench import Bench, answer, running_bench, soon

from lanewayd.errors import ErrorCode, LanewayError, StoreUnavailable
from lanewayd.records import RunState
from lanewayd.store.interface import AcceptRun

ONE = {"main": 1}


async def check_that_the_lane_is_free(bench: Bench) -> None:
    """The next message is started at once and runs."""
    bench.provider.plan(answer())
    run_id = await bench.accept("the next one")
    assert (await bench.done(run_id)).state is RunState.SUCCEEDED
    assert bench.scheduler.book.is_empty


async def test_a_message_that_need_not_wait_is_started_by_the_commit_that_accepts_it(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, gate=gate, widths=ONE) as bench:
        accepting = asyncio.create_task(bench.accept())
        await soon(gate.reached())
        assert [lane[1:] for lane in bench.scheduler.book.lanes()] == [(1, 1, 0)]
        gate.release()
        run_id = await soon(accepting)
        assert (await bench.run(run_id)).state is RunState.RUNNING
        (await bench.model_call()).end(answer())
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED


async def test_a_message_that_comes_while_another_of_its_lane_is_being_accepted_waits(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, gate=gate, widths=ONE) as bench:
        first = asyncio.create_task(bench.accept("one"))
        await soon(gate.reached())
        second = asyncio.create_task(bench.accept("two"))
        await asyncio.sleep(0)
        gate.release()
        run_ids = [await soon(first), await soon(second)]
        assert [(await bench.run(run_id)).state for run_id in run_ids] == [RunState.RUNNING, RunState.QUEUED]
        for _ in run_ids:
            (await bench.model_call()).end(answer())
        for run_id in run_ids:
            assert (await bench.done(run_id)).state is RunState.SUCCEEDED


async def test_a_repeated_message_gives_the_place_back(tmp_path: Path) -> None:
    async with running_bench(tmp_path, widths=ONE) as bench:
        bench.provider.plan(answer())
        run_id = await bench.accept(idempotency_key="k")
        await bench.done(run_id)
        assert await bench.accept(idempotency_key="k") == run_id
        await check_that_the_lane_is_free(bench)


async def test_a_refused_message_gives_the_place_back(tmp_path: Path) -> None:
    async with running_bench(tmp_path, widths=ONE) as bench:
        with pytest.raises(LanewayError) as caught:
            await bench.accept(session_id="unknown")
        assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
        await check_that_the_lane_is_free(bench)


async def test_a_refused_message_gives_the_place_back_also_when_its_caller_has_left(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, gate=gate, widths=ONE) as bench:
        blocking = asyncio.create_task(bench.accept("elsewhere", lane="cron"))
        await soon(gate.reached())
        accepting = asyncio.create_task(bench.accept(session_id="unknown"))
        await asyncio.sleep(0)
        accepting.cancel()
        gate.release()
        await soon(blocking)
        (await bench.model_call()).end(answer())
        await bench.idle()
        assert accepting.cancelled()
        await check_that_the_lane_is_free(bench)


async def test_a_message_that_cannot_be_stored_gives_the_place_back(tmp_path: Path) -> None:
    gate = FailingGate()
    async with running_bench(tmp_path, gate=gate, widths=ONE) as bench:
        gate.is_failing = True
        with pytest.raises(StoreUnavailable):
            await bench.accept()
        gate.is_failing = False
        await check_that_the_lane_is_free(bench)


async def test_a_message_is_not_started_while_the_server_leaves(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.scheduler.stop_admitting()
        run_id = await bench.accept()
        assert (await bench.run(run_id)).state is RunState.QUEUED
        assert bench.provider.calls == []


async def test_a_server_that_leaves_waits_for_a_message_that_is_being_accepted_as_started(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, gate=gate) as bench:
        accepting = asyncio.create_task(bench.accept())
        await soon(gate.reached())
        bench.scheduler.stop_admitting()
        is_idle = asyncio.create_task(bench.scheduler.idle())
        await asyncio.sleep(0)
        assert not is_idle.done()
        gate.release()
        run_id = await soon(accepting)
        (await bench.model_call()).end(answer())
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED
        await soon(is_idle)
