"""In which order recovered runs go on, what they are charged, and the gate that charged ones pass (D-2)."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import check_is_over, is_phase, running_bench, soon
from tests.unit.runs.left_over import LeftOver, left_by
from tests.unit.runs.staged_model import answer, asks

from lanewayd.messages import ToolOutcome
from lanewayd.records import QueueMode, RunState
from lanewayd.runs.interface import AbortReceipt
from lanewayd.store.interface import RunChange
from lanewayd.tools.interface import ToolResult

ANSWER = answer("stored answer")
CALLS = asks(("c1", "rec"), ("c2", "rec"), ("c3", "rec"), text="let me")


async def test_the_interrupted_run_comes_first_in_its_session(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.accept("next")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        first = await bench.model_call()
        assert (await bench.run("next")).state is RunState.QUEUED
        bench.provider.plan(answer("next"))
        first.end(answer("first"))
        await bench.ended("next")
        assert [message.text for message in await bench.messages()] == ["hi", "first", "hi", "next"]


@pytest.mark.parametrize(
    ("steps", "charges"),
    [
        ("", 0),
        ("again", 1),
        ("again again", 2),
        ("again again again", 3),
        ("again again got_on", 0),
        ("again got_on again", 1),
        ("handed_over again", 0),
        ("again handed_over again", 1),
        ("handed_over again again", 1),
        ("again again handed_over again again", 3),
    ],
)
async def test_charges_count_the_dispatches_that_brought_nothing(tmp_path: Path, steps: str, charges: int) -> None:
    left = await LeftOver.open(tmp_path)
    await left.start("r")
    for step in steps.split():
        if step == "again":
            await left.dispatch_again("r")
        else:
            await left.change("r", RunChange(got_on=step == "got_on", handed_over=step == "handed_over"))
    run = await left.store.run("default", "r")
    assert run is not None
    assert (run.charges, run.attempt) == (charges, 1 + steps.split().count("again"))
    await left.close()


@pytest.mark.parametrize("outcome", [ToolOutcome.OK, ToolOutcome.UNKNOWN])
async def test_only_a_result_of_a_tool_that_was_run_takes_the_charge_back(tmp_path: Path, outcome: ToolOutcome) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        rows = await left.message("r", asks(("c1", "rec")))
        if outcome is ToolOutcome.UNKNOWN:
            await left.launched(*rows)

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path, tools=[RecordingTool("rec")]) as bench:
        await bench.model_call()
        await bench.until("r", is_phase("tool", "result"))
        assert (await bench.run("r")).charges == (0 if outcome is ToolOutcome.OK else 1)


async def left_interrupted(home: Path, dispatches: dict[str, int]) -> None:
    """Runs in sessions of their own, dispatched again that often."""
    left = await LeftOver.open(home)
    for run_id, count in dispatches.items():
        await left.start(run_id, f"agent:main:{run_id}")
        for _ in range(count):
            await left.dispatch_again(run_id)
    await left.close()


async def test_runs_that_were_not_charged_go_on_together(tmp_path: Path) -> None:
    await left_interrupted(tmp_path, {"a": 0, "b": 0, "c": 0})
    async with running_bench(tmp_path) as bench:
        for _ in range(3):
            await bench.model_call()


async def test_charged_runs_pass_the_gate_one_by_one_and_others_go_by(tmp_path: Path) -> None:
    await left_interrupted(tmp_path, {"a": 1, "b": 1, "healthy": 0})
    async with running_bench(tmp_path) as bench:
        calls = [await bench.model_call(), await bench.model_call()]
        assert bench.scheduler.book.queued == 1
        assert {(await bench.run(run_id)).attempt for run_id in ("a", "b")} == {3, 2}
        fresh = await bench.accept("fresh")
        (await bench.model_call()).end(answer())
        assert (await bench.ended(fresh)).state is RunState.SUCCEEDED
        for call in calls:
            call.end(answer())
        (await bench.model_call()).end(answer())
        assert {(await bench.ended(run_id)).state for run_id in ("a", "b", "healthy")} == {RunState.SUCCEEDED}
        await bench.idle()
        assert bench.scheduler.book.is_empty
        assert bench.clock.timer_count == 0


async def test_a_run_with_one_charge_holds_the_gate_for_30_seconds_at_most(tmp_path: Path) -> None:
    await left_interrupted(tmp_path, {"a": 1, "b": 1})
    async with running_bench(tmp_path) as bench:
        await bench.model_call()
        await bench.clock.advance(29.9)
        assert bench.scheduler.book.queued == 1
        await bench.clock.advance(0.1)
        await bench.model_call()


async def test_a_run_with_two_charges_holds_the_gate_until_it_gets_on(tmp_path: Path) -> None:
    await left_interrupted(tmp_path, {"a": 2, "b": 2})
    tool = RecordingTool("rec", hold=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        (await bench.model_call()).end(asks(("c1", "rec")))
        asked = await soon(tool.asked.get())
        await bench.clock.advance(3_600)
        assert bench.scheduler.book.queued == 1
        asked.answer.set_result(ToolResult("done"))
        requests = [await bench.model_call(), await bench.model_call()]
        assert len(requests) == 2  # the one goes on, the other one begins


@pytest.mark.parametrize("waits_for", ["lane", "gate"])
async def test_an_abort_of_a_recovered_run_that_still_waits_ends_it(tmp_path: Path, waits_for: str) -> None:
    await left_interrupted(tmp_path, {"a": 1, "b": 1} if waits_for == "gate" else {"a": 0, "b": 0})
    async with running_bench(tmp_path, widths={"main": 8 if waits_for == "gate" else 1}) as bench:
        call = await bench.model_call()
        [waiting] = [
            run.run_id for run in await bench.store.unended_runs() if run.attempt == (2 if waits_for == "gate" else 1)
        ]
        assert await soon(asyncio.ensure_future(bench.abort(waiting))) == AbortReceipt(aborted_run_ids=(waiting,))
        call.end(answer())
        for run_id in ("a", "b"):
            await bench.ended(run_id)
            await bench.idle()
        await check_is_over(bench, waiting, f"agent:main:{waiting}")


async def test_a_message_that_was_to_go_into_an_aborted_run_does_not_overtake_older_ones(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.accept_as("older", QueueMode.COLLECT)
        await left.accept_as("steers", QueueMode.STEER)
        await left.abort_asked("r")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        assert (await bench.ended("r")).state is RunState.CANCELLED
        await bench.clock.advance(1.0)  # the quiet time of what is collected
        (await bench.model_call()).end(answer("first"))
        assert (await bench.ended("older")).payloads[0].text == "first"
        (await bench.model_call()).end(answer("second"))
        assert (await bench.ended("steers")).payloads[0].text == "second"


async def test_recovery_says_how_many_runs_were_interrupted(tmp_path: Path) -> None:
    left = await LeftOver.open(tmp_path)
    await left.start("r1", "agent:main:one")
    await left.start("r2", "agent:main:two")
    await left.accept("r3", "agent:main:three")
    await left.close()
    async with running_bench(tmp_path) as bench:
        assert bench.interrupted == 2
        bench.provider.plan(answer(), answer(), answer())
        for run_id in ("r1", "r2", "r3"):
            await bench.ended(run_id)
