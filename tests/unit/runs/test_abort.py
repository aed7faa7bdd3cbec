"""Aborting runs in every phase, and tools that do not let go (D-20, R-2.24)."""

import asyncio
from pathlib import Path

from tests.fakes.commit_gates import HoldingGate
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import Bench, check_is_over, running_bench, said, shape, soon
from tests.unit.runs.staged_model import answer, asks, failure
from tests.unit.runs.stubborn_tool import StubbornTool

from lanewayd.messages import AssistantMessage, StopReason, Text, ToolOutcome, ToolResultMessage, UserMessage
from lanewayd.records import RunState, ToolCallState
from lanewayd.runs.interface import AbortReceipt
from lanewayd.runs.outcome import StopCause
from lanewayd.runs.spending import NOT_SAID
from lanewayd.store.interface import AppendToRun, StartRun
from lanewayd.transcript.lock import SessionLocks

SESSION = "agent:main:talk"


async def until_a_run_waits(bench: Bench, count: int = 1) -> None:
    await soon(bench.clock.wait_for_sleepers(count))


# --- abort ---


async def test_an_abort_while_queued_ends_the_run_at_once_and_the_others_go_on(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        first = await bench.accept()
        call = await bench.model_call()
        queued, last = await bench.accept(), await bench.accept()
        assert await bench.abort(queued) == AbortReceipt(cancelled_run_ids=(queued,))
        assert shape(await bench.events(queued)) == ["queue queued", "queue cancelled", "lifecycle end"]
        bench.provider.plan(answer("last"))
        call.end(answer("first"))
        assert (await bench.ended(last)).state is RunState.SUCCEEDED
        for run_id in (first, queued, last):
            await check_is_over(bench, run_id)
        assert [message.text for message in await bench.messages()] == ["hi", "first", "hi", "last"]


async def test_an_abort_during_the_start_ends_the_run(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, StartRun))
    async with running_bench(tmp_path, gate=gate) as bench:
        run_id = await bench.accept()
        await soon(gate.reached())
        aborting = asyncio.create_task(bench.abort(run_id))
        await asyncio.sleep(0)
        gate.release()
        assert await soon(aborting) == AbortReceipt(aborted_run_ids=(run_id,))
        await check_is_over(bench, run_id)
        assert await bench.messages() == [UserMessage("hi")]


async def test_an_abort_that_finds_the_run_started_but_not_at_work_ends_it(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, StartRun), after=True)
    async with running_bench(tmp_path, gate=gate) as bench:
        run_id = await bench.accept()
        await soon(gate.reached())
        bench.scheduler.stop(run_id, StopCause.ABORT, "rpc")
        gate.release()
        run = await bench.ended(run_id)
        assert (run.state, run.stop_reason) == (RunState.CANCELLED, "rpc")
        await check_is_over(bench, run_id)


async def test_an_abort_while_waiting_for_the_session_lock_ends_the_run(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        other = SessionLocks(tmp_path / "locks", clock=bench.clock, acquire_timeout_s=60)
        held = await other.acquire("default", SESSION, run_id="other")
        run_id = await bench.accept()
        await until_a_run_waits(bench)
        assert (await bench.abort(run_id)).aborted_run_ids == (run_id,)
        await bench.idle()
        assert len(bench.lock_files()) == 2  # the other's, untouched
        await other.release(held)
        other.close()
        await check_is_over(bench, run_id)
        assert bench.provider.calls == []


async def test_an_abort_in_mid_stream_keeps_the_text_so_far(tmp_path: Path) -> None:
    async with running_bench(tmp_path, delta_interval_s=60.0) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("so ", "far", " and held back")
        await bench.until(run_id, lambda event: "assistant" in event)
        assert (await bench.abort(run_id)).aborted_run_ids == (run_id,)
        run = await bench.run(run_id)
        assert (run.state, run.stop_reason) == (RunState.CANCELLED, "rpc")
        assert [payload.text for payload in run.payloads] == ["so far and held back"]
        await check_is_over(bench, run_id)
        assert call.was_closed
        events = await bench.events(run_id)
        assert said(events) == "so far and held back"
        assert shape(events)[-2:] == ["message assistant", "lifecycle end"]
        stopped = AssistantMessage((Text("so far and held back"),), "acme", "m", StopReason.ABORTED, NOT_SAID)
        assert (await bench.messages())[1:] == [stopped]
        assert run.usage == NOT_SAID


async def test_an_abort_before_the_model_said_anything_leaves_no_message(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        await bench.model_call()
        await bench.abort(run_id)
        await check_is_over(bench, run_id)
        assert await bench.messages() == [UserMessage("hi")]


async def test_an_abort_during_a_tool_batch_keeps_what_is_known_and_gives_each_call_one_result(tmp_path: Path) -> None:
    held = RecordingTool("held", hold=True)
    async with running_bench(tmp_path, tools=[held, RecordingTool("quick")]) as bench:
        bench.provider.plan(asks(("c1", "quick"), ("c2", "held"), ("c3", "nothing"), text="let me"))
        run_id = await bench.accept()
        asked = await soon(held.asked.get())
        asked.context.report("half of it")
        await bench.until(
            run_id, lambda event: event.get("tool", {}).get("call_id") == "c1" and event["tool"]["outcome"]
        )
        assert (await bench.abort(run_id)).aborted_run_ids == (run_id,)
        await check_is_over(bench, run_id)
        assert held.cancelled == ["c2"]
        results = [message for message in await bench.messages() if isinstance(message, ToolResultMessage)]
        assert [(result.call_id, result.outcome) for result in results] == [
            ("c1", ToolOutcome.OK),
            ("c2", ToolOutcome.ABORTED),
            ("c3", ToolOutcome.ERROR),
        ]
        assert results[1].text.startswith("half of it\n[aborted")
        rows = await bench.store.tool_calls(run_id)
        assert {row.state for row in rows} == {ToolCallState.FINISHED}
        assert [payload.text for payload in (await bench.run(run_id)).payloads] == ["let me"]


async def test_an_abort_before_the_launch_is_durable_keeps_the_tools_from_being_asked(tmp_path: Path) -> None:
    def launches(command: object) -> bool:
        return isinstance(command, AppendToRun) and any(
            row.state is ToolCallState.LAUNCHED for change in command.changes for row in change.tool_calls
        )

    gate = HoldingGate(launches)
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool], gate=gate) as bench:
        bench.provider.plan(asks(("c1", "rec"), ("c2", "rec")))
        run_id = await bench.accept()
        await soon(gate.reached())
        bench.scheduler.stop(run_id, StopCause.ABORT, "rpc")
        gate.release()
        assert (await bench.ended(run_id)).state is RunState.CANCELLED
        await check_is_over(bench, run_id)
        assert tool.calls == []


async def test_an_abort_during_a_back_off_ends_the_run_without_another_try(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(failure())
        run_id = await bench.accept()
        await until_a_run_waits(bench)
        assert (await bench.abort(run_id)).aborted_run_ids == (run_id,)
        await check_is_over(bench, run_id)
        assert len(bench.provider.calls) == 1


async def test_an_abort_while_the_end_is_being_written_leaves_one_end(tmp_path: Path) -> None:
    def ends(command: object) -> bool:
        return isinstance(command, AppendToRun) and any(change.end for change in command.changes)

    gate = HoldingGate(ends)
    async with running_bench(tmp_path, gate=gate) as bench:
        bench.provider.plan(answer())
        run_id = await bench.accept()
        await soon(gate.reached())
        aborting = asyncio.create_task(bench.abort(run_id))
        await asyncio.sleep(0)
        bench.scheduler.stop(run_id, StopCause.ABORT, "rpc")
        gate.release()
        assert await soon(aborting) == AbortReceipt()
        assert (await bench.run(run_id)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)


async def test_an_abort_after_the_end_changes_nothing(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer())
        run_id = await bench.accept()
        await bench.done(run_id)
        before = await bench.events(run_id)
        assert await bench.abort(run_id) == AbortReceipt()
        assert await bench.events(run_id) == before


async def test_a_session_is_aborted_with_or_without_what_waits_in_it(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        running, queued = await bench.accept(), await bench.accept()
        await bench.model_call()

        async def abort(*, clear_queued: bool) -> AbortReceipt:
            return await bench.registry.abort_session(
                "default", "talk", clear_queued=clear_queued, stop_reason="rpc", reason=""
            )

        assert await abort(clear_queued=False) == AbortReceipt(aborted_run_ids=(running,))
        await bench.model_call()
        third = await bench.accept()
        assert await abort(clear_queued=True) == AbortReceipt((queued,), (third,))
        for run_id in (running, queued, third):
            await check_is_over(bench, run_id)


async def test_an_abort_that_takes_too_long_answers_after_5_seconds_that_the_run_is_pending(tmp_path: Path) -> None:
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        run_id = await bench.accept()
        await soon(tool.asked.get())
        timers = bench.clock.timer_count
        aborting = asyncio.create_task(bench.abort(run_id))
        await soon(bench.clock.wait_for_timers(timers + 2))  # of the unwinding, and of the answer
        await bench.clock.advance(5)
        assert await soon(aborting) == AbortReceipt(pending_run_ids=(run_id,))
        run = await bench.run(run_id)
        assert run.abort_requested_at is not None
        tool.let_go.set()
        assert (await bench.ended(run_id)).state is RunState.CANCELLED
        await check_is_over(bench, run_id)


# --- tools that do not let go ---


async def _none_but_one_at_work(bench: Bench) -> None:
    while bench.scheduler.executing > 1:  # noqa: ASYNC110 - nothing tells when one of several supervisions is over
        await asyncio.sleep(0)


async def test_a_tool_that_does_not_let_go_is_left_behind_after_30_seconds(tmp_path: Path) -> None:
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool], widths={"main": 1}) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        stuck = await bench.accept("talk")
        await soon(tool.asked.get())
        behind, elsewhere = await bench.accept("talk"), await bench.accept("elsewhere")
        bench.scheduler.stop(stuck, StopCause.ABORT, "rpc")
        await soon(tool.asked_to_stop.wait())
        await bench.clock.advance(29.9)
        assert (await bench.run(stuck)).state is RunState.RUNNING
        await bench.clock.advance(0.1)
        run = await bench.ended(stuck)
        assert run.state is RunState.CANCELLED
        events = await bench.events(stuck)

        bench.provider.plan(answer())
        assert (await bench.ended(elsewhere)).state is RunState.SUCCEEDED  # its place in the lane is free
        assert (await bench.run(behind)).state is RunState.QUEUED  # its session is not
        await soon(_none_but_one_at_work(bench))  # an answer comes a moment before its session's lock is given back
        assert len(bench.lock_files()) == 2
        assert bench.locks.path_of("default", SESSION).name in bench.lock_files()

        bench.provider.plan(answer())
        tool.let_go.set()
        assert (await bench.ended(behind)).state is RunState.SUCCEEDED
        assert await bench.events(stuck) == events
        for run_id in (stuck, behind):
            await check_is_over(bench, run_id)


async def test_what_a_forgotten_tool_reports_is_not_shown(tmp_path: Path) -> None:
    tool = StubbornTool()
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "stubborn")))
        run_id = await bench.accept()
        asked = await soon(tool.asked.get())
        bench.scheduler.stop(run_id, StopCause.ABORT, "rpc")
        await soon(tool.asked_to_stop.wait())
        await bench.clock.advance(30)
        await bench.ended(run_id)
        events = await bench.events(run_id)
        asked.context.report("still here")
        tool.let_go.set()
        await check_is_over(bench, run_id)
        assert await bench.events(run_id) == events
