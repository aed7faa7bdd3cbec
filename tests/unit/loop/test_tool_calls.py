"""One batch of tool calls (spec 05, 2.1)."""

import asyncio
from typing import Any

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.loop.stage import Stage, asks

from lanewayd.messages import ToolCall, ToolOutcome, ToolResultMessage
from lanewayd.tools.interface import Tool, ToolContext, ToolResult

OK = ToolResult("done")


class SelfCancellingTool(RecordingTool):
    """Raises a CancelledError of its own making."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        raise asyncio.CancelledError


async def run_one(tool: Tool, *, arguments: str = "{}", name: str = "") -> ToolResultMessage:
    stage = Stage(tools=[tool])
    [result] = await stage.batch.run([ToolCall("c", name or tool.spec.name, arguments)])
    finished = stage.recorder.of("finished")
    assert len(finished) == 1
    assert stage.recorder.told[-1] == ("settled", ["c"])
    return result


async def test_parallel_calls_end_as_they_complete_but_settle_in_request_order() -> None:
    tool = RecordingTool("rec", hold=True)
    stage = Stage(tools=[tool])
    running = asyncio.create_task(stage.batch.run(asks("rec", "rec", "rec").tool_calls))
    asked = [await tool.asked.get() for _ in range(3)]
    assert stage.recorder.told == [("launch", ["rec0", "rec1", "rec2"], True)]
    for count, number in enumerate((2, 0, 1)):
        asked[number].answer.set_result(ToolResult(f"result {number}"))
        await stage.recorder.finished(count + 1)
    results = await running
    assert [result.text for result in results] == ["result 0", "result 1", "result 2"]
    assert [entry[1] for entry in stage.recorder.of("finished")] == ["rec2", "rec0", "rec1"]
    assert stage.recorder.told[-1] == ("settled", ["rec0", "rec1", "rec2"])


async def test_a_sequential_tool_makes_its_whole_batch_run_one_by_one() -> None:
    first, second = RecordingTool("first", hold=True), RecordingTool("second", hold=True, is_sequential=True)
    stage = Stage(tools=[first, second])
    running = asyncio.create_task(stage.batch.run(asks("first", "second", "first").tool_calls))
    for tool, call_id, others in ((first, "first0", second), (second, "second1", first), (first, "first2", second)):
        asked = await tool.asked.get()
        assert asked.context.call_id == call_id
        assert others.asked.empty()
        asked.answer.set_result(OK)
    await running
    assert [entry[0] for entry in stage.recorder.told] == ["launch", "finished"] * 3 + ["settled"]


async def test_calls_that_are_refused_end_at_once_and_the_others_run() -> None:
    tool = RecordingTool("rec", schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    stage = Stage(tools=[tool])
    calls = (
        ToolCall("bad", "rec", '{"n":"many"}'),
        ToolCall("good", "rec", '{"n":1}'),
        ToolCall("unknown", "nothing", "{}"),
    )
    results = await stage.batch.run(calls)
    assert [(result.call_id, result.is_error) for result in results] == [
        ("bad", True),
        ("good", False),
        ("unknown", True),
    ]
    assert stage.recorder.told == [
        ("launch", ["bad"], False),
        ("finished", "bad", True, False),
        ("launch", ["unknown"], False),
        ("finished", "unknown", True, False),
        ("launch", ["good"], True),
        ("finished", "good", False, True),
        ("settled", ["bad", "good", "unknown"]),
    ]
    assert "nothing" in results[2].text
    assert len(tool.calls) == 1


@pytest.mark.parametrize(("idempotent", "durable"), [((True, True), False), ((True, False), True)])
async def test_one_durable_launch_for_a_batch_unless_all_its_tools_are_idempotent(
    idempotent: tuple[bool, bool], durable: bool
) -> None:
    tools = [RecordingTool(f"t{number}", is_idempotent=each) for number, each in enumerate(idempotent)]
    stage = Stage(tools=tools)
    await stage.batch.run([ToolCall("a", "t0", "{}"), ToolCall("b", "t1", "{}")])
    assert stage.recorder.of("launch") == [("launch", ["a", "b"], durable)]


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "tried to end the process"),
        (KeyboardInterrupt(), "tried to end the process"),
        (TimeoutError("late"), "TimeoutError: late"),
    ],
    ids=["error", "error without text", "SystemExit", "KeyboardInterrupt", "timeout"],
)
async def test_whatever_a_tool_raises_is_its_error_result(raised: BaseException, text: str) -> None:
    result = await run_one(RecordingTool("rec", result=raised))
    assert (result.is_error, result.outcome) == (True, ToolOutcome.ERROR)
    assert text in result.text


async def test_a_tool_that_cancels_itself_has_failed_and_its_run_goes_on() -> None:
    result = await run_one(SelfCancellingTool("rec"))
    assert (result.is_error, result.text) == (True, "the tool cancelled itself")


async def test_a_tool_that_returns_nothing_has_an_empty_result() -> None:
    result = await run_one(RecordingTool("rec", result=None))
    assert (result.is_error, result.text) == (False, "(no output)")


async def test_a_result_that_says_error_keeps_its_text() -> None:
    result = await run_one(RecordingTool("rec", result=ToolResult("exit 1", is_error=True)))
    assert (result.is_error, result.outcome, result.text) == (True, ToolOutcome.ERROR, "exit 1")


@pytest.mark.parametrize("arguments", ["", "[]", "{", '"x"', "null"])
async def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    tool = RecordingTool("rec", schema={"type": "object", "required": ["path"]})
    result = await run_one(tool, arguments=arguments)
    assert result.is_error
    assert tool.calls == []


async def test_a_failing_tool_does_not_harm_the_others_of_its_batch() -> None:
    held = RecordingTool("held", hold=True)
    stage = Stage(tools=[held, RecordingTool("bad", result=SystemExit(1))])
    running = asyncio.create_task(stage.batch.run(asks("held", "bad").tool_calls))
    asked = await held.asked.get()
    await stage.recorder.finished(1)
    asked.answer.set_result(OK)
    assert [result.is_error for result in await running] == [False, True]
    assert held.cancelled == []


async def test_known_results_are_kept_and_their_calls_not_run() -> None:
    tool = RecordingTool("rec")
    stage = Stage(tools=[tool])
    known = ToolResultMessage("rec0", "rec", "kept", True, ToolOutcome.UNKNOWN)
    results = await stage.batch.run(asks("rec", "rec").tool_calls, known=[known])
    assert (results[0], len(tool.calls)) == (known, 1)
    assert stage.recorder.told[-1] == ("settled", ["rec0", "rec1"])


class ReportingTool(RecordingTool):
    """Keeps the way to report, so that a test can use it when it likes."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        context.report("half")
        return await super().run(arguments, context)


async def test_reports_of_a_call_are_told_until_it_has_ended() -> None:
    tool = ReportingTool("rec")
    stage = Stage(tools=[tool])
    await stage.batch.run(asks("rec").tool_calls)
    tool.calls[0].context.report("too late")
    assert stage.recorder.of("update") == [("update", "rec0", "half")]


async def test_a_cancelled_batch_returns_when_every_tool_has_let_go() -> None:
    tool = RecordingTool("rec", hold=True)
    stage = Stage(tools=[tool])
    running = asyncio.create_task(stage.batch.run(asks("rec", "rec").tool_calls))
    for _ in range(2):
        await tool.asked.get()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(tool.cancelled) == sorted(tool.ended) == ["rec0", "rec1"]
    assert stage.recorder.of("finished", "settled") == []


class ClingingTool(RecordingTool):
    """Swallows its cancellation and returns what it had."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            return await super().run(arguments, context)
        except asyncio.CancelledError:
            return ToolResult("what I had")


async def test_a_tool_that_swallows_its_cancellation_does_not_keep_the_run_going() -> None:
    tool = ClingingTool("rec", hold=True)
    stage = Stage(tools=[tool])
    running = asyncio.create_task(stage.batch.run(asks("rec").tool_calls))
    await tool.asked.get()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stage.recorder.of("settled") == []
