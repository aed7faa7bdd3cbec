"""What becomes of the runs a killed process leaves behind (D-2), over real stores."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.store_commands import NOW
from tests.unit.runs.bench import Bench, check_is_over, is_phase, running_bench, said, shape
from tests.unit.runs.left_over import Leave, LeftOver, left_by
from tests.unit.runs.staged_model import answer, asks

from lanewayd.messages import AssistantMessage, ToolOutcome, ToolResultMessage, Usage
from lanewayd.records import Disposition, Priority, Run, RunRequest, RunState
from lanewayd.runs.recovery import RecoveryStep, recovery_step
from lanewayd.transcript.context import Standing

ANSWER = answer("stored answer")
CALLS = asks(("c1", "rec"), ("c2", "rec"), ("c3", "rec"), text="let me")

# --- the decision ---

RUN = Run(
    "run_1",
    1,
    "default",
    "agent:main:talk",
    "s",
    RunRequest("hi", "main", "main", Priority.FOREGROUND, "acme/m", 0),
    RunState.RUNNING,
    Disposition.STARTED,
    0,
    NOW,
)
GOING_ON = Standing((), 0, Usage())
FINAL = replace(GOING_ON, final=ANSWER)


@pytest.mark.parametrize(
    ("run", "standing", "step"),
    [
        (replace(RUN, state=RunState.QUEUED), None, RecoveryStep.WAIT),
        (RUN, GOING_ON, RecoveryStep.RESUME),
        (replace(RUN, charges=2), GOING_ON, RecoveryStep.RESUME),
        (replace(RUN, charges=3), GOING_ON, RecoveryStep.GIVE_UP),
        (replace(RUN, charges=4), GOING_ON, RecoveryStep.GIVE_UP),
        (replace(RUN, charges=3, handed_over=True), GOING_ON, RecoveryStep.RESUME),
        (RUN, FINAL, RecoveryStep.SETTLE),
        (replace(RUN, charges=3), FINAL, RecoveryStep.SETTLE),
        (replace(RUN, abort_requested_at=NOW), GOING_ON, RecoveryStep.CANCEL),
        (replace(RUN, abort_requested_at=NOW), FINAL, RecoveryStep.CANCEL),
        (replace(RUN, abort_requested_at=NOW, charges=3), GOING_ON, RecoveryStep.CANCEL),
    ],
)
def test_the_step_follows_from_the_row_and_the_tail_of_the_transcript(
    run: Run, standing: Standing | None, step: RecoveryStep
) -> None:
    assert recovery_step(run, standing, 3) is step


# --- each state a killed process can leave ---


async def recovered_run(home: Path, leave: Leave, tool: RecordingTool, *turns: AssistantMessage) -> tuple[Run, Bench]:
    """The run `r` as it ends after a restart; the model gives `turns`."""
    await left_by(home, leave)
    async with running_bench(home, tools=[tool]) as bench:
        bench.provider.plan(*turns)
        run = await bench.ended("r")
        await check_is_over(bench, "r")
        await check_started_and_recovered_once(bench)
    return run, bench


async def check_started_and_recovered_once(bench: Bench) -> None:
    words = shape(await bench.events("r"))
    assert words.count("lifecycle start") == 1
    assert words.count("lifecycle recovered") <= 1


async def results_in(bench: Bench) -> list[tuple[str, ToolOutcome, str]]:
    messages = await bench.messages()
    return [(each.call_id, each.outcome, each.text) for each in messages if isinstance(each, ToolResultMessage)]


async def test_a_queued_run_waits_again_and_is_not_charged(tmp_path: Path) -> None:
    run, _ = await recovered_run(tmp_path, lambda left: left.accept("r"), RecordingTool("rec"), answer())
    assert (run.state, run.attempt, run.charges) == (RunState.SUCCEEDED, 1, 0)


async def test_after_the_user_turn_the_model_is_called(tmp_path: Path) -> None:
    run, bench = await recovered_run(tmp_path, lambda left: left.start("r"), RecordingTool("rec"), answer())
    assert (run.state, run.attempt, run.charges) == (RunState.SUCCEEDED, 2, 0)
    assert len(bench.provider.calls) == 1


async def test_text_of_a_message_that_had_not_ended_is_void(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.says("r", "half a ", "msg_half")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        call = await bench.model_call()
        call.say("whole")
        call.end(answer("whole"))
        await bench.ended("r")
        await check_is_over(bench, "r")
        events = await bench.events("r")
        [recovered] = [event["lifecycle"] for event in events if is_phase("lifecycle", "recovered")(event)]
        assert (recovered["void_message_id"], recovered["attempt"]) == ("msg_half", 2)
        assert said(events) == "half a whole"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


async def test_calls_that_were_only_requested_are_run(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.message("r", CALLS)

    tool = RecordingTool("rec")
    run, bench = await recovered_run(tmp_path, leave, tool, answer())
    assert run.state is RunState.SUCCEEDED
    assert [call.context.call_id for call in tool.calls] == ["c1", "c2", "c3"]
    assert len(bench.provider.calls) == 1


async def test_a_launched_call_is_never_run_again_and_its_outcome_is_unknown(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        first, second, _ = await left.message("r", CALLS)
        await left.launched(first, second)
        await left.finished(second, "kept")

    await left_by(tmp_path, leave)
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(answer())
        run = await bench.ended("r")
        await check_is_over(bench, "r")
        assert [call.context.call_id for call in tool.calls] == ["c3"]
        results = await results_in(bench)
        assert [(call_id, outcome) for call_id, outcome, _ in results] == [
            ("c1", ToolOutcome.UNKNOWN),
            ("c2", ToolOutcome.OK),
            ("c3", ToolOutcome.OK),
        ]
        assert "outcome unknown" in results[0][2]
        assert results[1][2] == "kept"
        assert run.usage == Usage(20, 10)  # of both model calls, over both processes
        assert (await bench.store.tool_calls("r"))[0].outcome is ToolOutcome.UNKNOWN
        request = bench.provider.calls[0].request
        assert [each.call_id for each in request.messages if isinstance(each, ToolResultMessage)] == ["c1", "c2", "c3"]


async def test_a_launched_call_of_an_idempotent_tool_is_run_again(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.launched(*(await left.message("r", CALLS)))

    tool = RecordingTool("rec", is_idempotent=True)
    run, _ = await recovered_run(tmp_path, leave, tool, answer())
    assert run.state is RunState.SUCCEEDED
    assert len(tool.calls) == 3


async def test_when_all_results_are_known_they_go_to_the_transcript_and_the_model_is_called(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        rows = await left.message("r", CALLS)
        await left.launched(*rows)
        for row in reversed(rows):
            await left.finished(row, f"of {row.call_id}")

    await left_by(tmp_path, leave)
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(answer())
        await bench.ended("r")
        await check_is_over(bench, "r")
        assert [text for _, _, text in await results_in(bench)] == ["of c1", "of c2", "of c3"]
        assert tool.calls == []


async def test_after_the_results_the_model_is_called(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.launched(*(await left.message("r", CALLS)))
        await left.settled("r", [ToolResultMessage(call.call_id, "rec", "done") for call in CALLS.tool_calls])

    tool = RecordingTool("rec")
    run, bench = await recovered_run(tmp_path, leave, tool, answer())
    assert run.state is RunState.SUCCEEDED
    assert (tool.calls, len(bench.provider.calls)) == ([], 1)


async def test_a_stored_answer_settles_the_run_without_a_model_call(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.message("r", ANSWER)

    run, bench = await recovered_run(tmp_path, leave, RecordingTool("rec"))
    assert (run.state, run.stop_reason, run.attempt) == (RunState.SUCCEEDED, "stop", 1)
    assert [payload.text for payload in run.payloads] == ["stored answer"]
    assert run.usage == Usage(10, 5)
    assert bench.provider.calls == []


async def test_an_abort_that_was_asked_for_is_honoured_and_each_call_gets_its_result(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        first, second, _ = await left.message("r", CALLS)
        await left.launched(first, second)
        await left.finished(first, "kept")
        await left.abort_asked("r")

    await left_by(tmp_path, leave)
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        run = await bench.ended("r")
        await check_is_over(bench, "r")
        assert (run.state, run.stop_reason) == (RunState.CANCELLED, "stop_word")
        assert [payload.text for payload in run.payloads] == ["let me"]
        assert [(call_id, outcome) for call_id, outcome, _ in await results_in(bench)] == [
            ("c1", ToolOutcome.OK),
            ("c2", ToolOutcome.UNKNOWN),
            ("c3", ToolOutcome.ABORTED),
        ]
        tools = [event["tool"] for event in await bench.events("r") if "tool" in event]
        # Of the third call nothing had been shown.
        assert [(each["call_id"], each["phase"]) for each in tools] == [
            ("c2", "result"),
            ("c3", "start"),
            ("c3", "result"),
        ]
        assert (tool.calls, bench.provider.calls) == ([], [])


async def test_a_run_that_was_charged_too_often_is_given_up_with_a_reason(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.launched(*(await left.message("r", CALLS)))
        for _ in range(3):
            await left.dispatch_again("r")

    run, bench = await recovered_run(tmp_path, leave, RecordingTool("rec"))
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert (run.error.reason, "3 times" in run.error.message) == ("RECOVERY_EXHAUSTED", True)
    assert bench.provider.calls == []


async def test_time_used_by_an_earlier_process_counts_and_downtime_does_not(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r", timeout_s=60.0)
        await left.used("r", 45.0)

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        call = await bench.model_call()
        assert call.request.idle_timeout_cap_s == 15.0
        await bench.clock.advance(14.9)
        assert (await bench.run("r")).state is RunState.RUNNING
        await bench.clock.advance(0.1)
        run = await bench.ended("r")
        assert run.state is RunState.TIMED_OUT
        assert run.used_s == pytest.approx(60.0)
        await check_is_over(bench, "r")


async def test_a_run_that_had_used_up_its_time_ends_at_once(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r", timeout_s=60.0)
        await left.launched(*(await left.message("r", CALLS)))
        await left.used("r", 60.0)

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path, tools=[RecordingTool("rec", hold=True)]) as bench:
        await bench.clock.advance(0.0)
        while (await bench.run("r")).state is RunState.RUNNING:
            await bench.clock.advance(0.001)
        assert (await bench.run("r")).state is RunState.TIMED_OUT
        await check_is_over(bench, "r")
