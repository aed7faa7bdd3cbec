"""Runs stopped by their deadline, by a server that leaves, or by a session that is held elsewhere (D-9, D-14, D-18)."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import Bench, check_is_over, is_phase, running_bench, said, shape, soon
from tests.unit.runs.staged_model import answer, asks, failure

from lanewayd.messages import ToolOutcome, UserMessage
from lanewayd.records import RunState, ToolCallState
from lanewayd.runs.outcome import StopCause
from lanewayd.transcript.lock import SessionLocks

SESSION = "agent:main:talk"


async def until_a_run_waits(bench: Bench, count: int = 1) -> None:
    await soon(bench.clock.wait_for_sleepers(count))


# --- deadline ---


async def test_a_run_that_uses_up_its_time_in_the_model_is_stopped(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(timeout_s=30.0)
        call = await bench.model_call()
        call.say("so far")
        await bench.until(run_id, lambda event: "assistant" in event)
        await bench.clock.advance(29.9)
        assert (await bench.run(run_id)).state is RunState.RUNNING
        await bench.clock.advance(0.1)
        run = await bench.ended(run_id)
        assert (run.state, run.stop_reason, run.used_s) == (RunState.TIMED_OUT, "deadline", 30.0)
        assert run.error is not None
        assert run.error.reason == "RUN_DEADLINE"
        assert [payload.text for payload in run.payloads] == ["so far"]
        assert shape(await bench.events(run_id))[-1] == "lifecycle error"
        await check_is_over(bench, run_id)


@pytest.mark.parametrize("phase", ["lock", "tool", "back-off"])
async def test_a_run_that_uses_up_its_time_elsewhere_is_stopped(tmp_path: Path, phase: str) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        other = SessionLocks(tmp_path / "locks", clock=bench.clock, acquire_timeout_s=60)
        held = await other.acquire("default", SESSION, run_id="other") if phase == "lock" else None
        bench.provider.plan(asks(("c1", "rec")) if phase == "tool" else failure())
        run_id = await bench.accept(timeout_s=0.5)
        if phase == "tool":
            await soon(tool.asked.get())
        else:
            await until_a_run_waits(bench)
        for _ in range(50):
            await bench.clock.advance(0.01)
        run = await bench.ended(run_id)
        assert run.state is RunState.TIMED_OUT
        await bench.idle()
        if held is not None:
            await other.release(held)
        other.close()
        await check_is_over(bench, run_id)


async def test_a_run_without_a_time_limit_is_not_stopped(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(timeout_s=0.0)
        call = await bench.model_call()
        await bench.clock.advance(10**8)
        call.end(answer())
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED


# --- leaving ---


async def test_a_run_parks_before_its_next_step_and_goes_on_in_the_next_process(tmp_path: Path) -> None:
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        bench.park_gate.close()
        call.end(asks(("c1", "rec"), text="let me"))
        await bench.idle()
        run = await bench.run(run_id)
        assert (run.state, run.handed_over, run.charges) == (RunState.RUNNING, True, 0)
        assert bench.lock_files() == []
    assert tool.calls == []
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(answer())
        run = await bench.ended(run_id)
        assert (run.state, run.attempt, run.charges, len(tool.calls)) == (RunState.SUCCEEDED, 2, 0, 1)
        await check_is_over(bench, run_id)
        events = shape(await bench.events(run_id))
        assert [event for event in events if event.startswith("lifecycle")] == [
            "lifecycle start",
            "lifecycle recovered",
            "lifecycle end",
        ]


async def test_a_run_cut_in_mid_stream_voids_its_message_and_says_it_anew(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("half a ")
        void = (await bench.until(run_id, lambda event: "assistant" in event))["assistant"]["message_id"]
        bench.scheduler.stop_all(StopCause.DRAIN)
        await bench.idle()
        run = await bench.run(run_id)
        assert (run.state, run.handed_over, run.open_message_id) == (RunState.RUNNING, True, void)
        assert call.was_closed
    async with running_bench(tmp_path) as bench:
        again = await bench.model_call()
        again.say("whole")
        again.end(answer("whole"))
        run = await bench.ended(run_id)
        await check_is_over(bench, run_id)
        events = await bench.events(run_id)
        [recovered] = [event["lifecycle"] for event in events if is_phase("lifecycle", "recovered")(event)]
        assert (recovered["void_message_id"], recovered["attempt"]) == (void, 2)
        assert (run.open_message_id, run.charges) == ("", 0)
        [message] = [event["message"] for event in events if event.get("message", {}).get("role") == "assistant"]
        assert message["message_id"] != void
        assert said(events, message["message_id"]) == message["text"] == "whole"
        assert await bench.messages() == [UserMessage("hi"), answer("whole")]


async def test_a_tool_cut_by_a_restart_has_that_as_its_result_and_is_not_run_again(tmp_path: Path) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec")))
        run_id = await bench.accept()
        asked = await soon(tool.asked.get())
        asked.context.report("half")
        bench.scheduler.stop_all(StopCause.DRAIN)
        await bench.idle()
        [row] = await bench.store.tool_calls(run_id)
        assert (row.state, row.outcome) == (ToolCallState.FINISHED, ToolOutcome.ABORTED)
        assert row.result_text.startswith("half\n[stopped by a restart")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(answer())
        assert (await bench.ended(run_id)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)
        assert len(tool.calls) == 1


async def test_an_idempotent_tool_cut_by_a_restart_is_run_again(tmp_path: Path) -> None:
    tool = RecordingTool("rec", hold=True, is_idempotent=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec")))
        run_id = await bench.accept()
        await soon(tool.asked.get())
        bench.scheduler.stop_all(StopCause.DRAIN)
        await bench.idle()
    again = RecordingTool("rec", is_idempotent=True)
    async with running_bench(tmp_path, tools=[again]) as bench:
        bench.provider.plan(answer())
        assert (await bench.ended(run_id)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)
        assert [call.context.call_id for call in again.calls] == ["c1"]


async def test_once_the_server_leaves_no_queued_run_is_started(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        running, queued = await bench.accept(), await bench.accept()
        call = await bench.model_call()
        bench.scheduler.stop_admitting()
        call.end(answer())
        await bench.ended(running)
        await bench.idle()
        assert (await bench.run(queued)).state is RunState.QUEUED
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer())
        run = await bench.ended(queued)
        assert (run.state, run.attempt, run.charges) == (RunState.SUCCEEDED, 1, 0)


async def test_a_server_that_leaves_before_it_began_starts_nothing(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.scheduler.stop_admitting()
        bench.scheduler.start_admitting()
        run_id = await bench.accept()
        assert (await bench.run(run_id)).state is RunState.QUEUED
        assert bench.scheduler.executing == 0


# --- the session lock ---


HOLDER = """
import asyncio, sys
from pathlib import Path
from lanewayd.clock import SystemClock
from lanewayd.transcript.lock import SessionLocks

async def hold():
    locks = SessionLocks(Path(sys.argv[1]), clock=SystemClock(), acquire_timeout_s=60)
    await locks.acquire("default", sys.argv[2], run_id="run_of_another_process")
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold())
"""


async def test_a_session_held_by_another_process_ends_the_run_busy_after_its_time(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDER,
        str(tmp_path / "locks"),
        SESSION,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert await soon(holder.stdout.readline()) == b"held\n"
    try:
        async with running_bench(tmp_path, lock_timeout_s=60.0) as bench:
            run_id = await bench.accept()
            while bench.clock.monotonic() < 60:
                await until_a_run_waits(bench)
                await bench.clock.advance(min(1.0, 60 - bench.clock.monotonic()))
            run = await bench.ended(run_id)
            assert run.state is RunState.FAILED
            assert run.error is not None
            assert run.error.reason == "SESSION_BUSY"
            assert f"pid {holder.pid}" in run.error.message
            assert "run_of_another_process" in run.error.message
            assert await bench.messages() == [UserMessage("hi")]
            assert bench.provider.calls == []
            await bench.idle()
            holder.kill()
            await holder.wait()
            bench.provider.plan(answer())
            assert (await bench.done(await bench.accept())).state is RunState.SUCCEEDED
    finally:
        if holder.returncode is None:
            holder.kill()
            await holder.wait()
