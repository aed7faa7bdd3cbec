"""One run from its message to its end: what is written, when, and in which change (D-2, D-4)."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import check_is_over, is_phase, running_bench, said, shape, soon
from tests.unit.runs.seen_store import SeenStore, Wrapped
from tests.unit.runs.staged_model import USAGE, answer, asks

from lanewayd.events import MessageEnded, kind_of
from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    StopReason,
    Text,
    ToolOutcome,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.interface import BlockEnded, ReasoningDelta
from lanewayd.records import EntryKind, RunState, ToolCallState
from lanewayd.store.interface import AppendToRun, RunChange
from lanewayd.tools.interface import ToolResult


def changes_of(seen: SeenStore) -> list[RunChange]:
    return [change for command in seen.appends for change in command.changes]


# --- the path ---


async def test_what_a_run_asks_of_its_model_reaches_every_call_also_after_a_restart(tmp_path: Path) -> None:
    lane = {"main": 0}
    async with running_bench(tmp_path, widths=lane) as bench:
        run_id = await bench.accept(max_output_tokens=500, temperature=0.0, seed=0)
        plain_id = await bench.accept("other")
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(asks(("c1", "no-such-tool")), answer(), answer())
        await bench.done(run_id)
        await bench.done(plain_id)
        asked = [
            (request.max_output_tokens, request.temperature, request.seed)
            for request in (call.request for call in bench.provider.calls)
        ]
        assert sorted(asked, key=str) == sorted([(500, 0.0, 0), (500, 0.0, 0), (0, None, None)], key=str)


async def test_a_message_becomes_an_answer(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("hel", "lo")
        call.end(answer("hello"))
        run = await bench.done(run_id)
        events = await bench.events(run_id)
        assert run.state is RunState.SUCCEEDED
        assert [payload.text for payload in run.payloads] == ["hello"]
        assert (run.usage, run.attempt, run.claim, run.charges) == (USAGE, 1, 1, 0)
        assert shape(events) == [
            "lifecycle start",
            "message user",
            "assistant",
            "assistant",
            "message assistant",
            "lifecycle end",
        ]
        assert said(events) == "hello"
        message = events[4]["message"]
        assert (message["text"], message["stop_reason"]) == ("hello", "stop")
        assert message["message_id"] == events[2]["assistant"]["message_id"]
        assert await bench.messages() == [UserMessage("hi"), answer("hello")]
        assert message["entry_id"] == (await bench.entries())[1].entry_id
        assert len(bench.watches) == 0
        await check_is_over(bench, run_id)


async def test_a_tool_call_and_its_result(tmp_path: Path) -> None:
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec"), text="look"), answer())
        run_id = await bench.accept()
        run = await bench.done(run_id)
        assert run.state is RunState.SUCCEEDED
        assert run.usage == USAGE + USAGE
        assert shape(await bench.events(run_id)) == [
            "lifecycle start",
            "message user",
            "message assistant",
            "tool start c1",
            "tool result c1 ok",
            "message assistant",
            "lifecycle end",
        ]
        assert (await bench.messages())[2] == ToolResultMessage("c1", "rec", "done")
        [call] = tool.calls
        assert (call.context.run_id, call.context.session_key) == (run_id, "agent:main:talk")


async def test_the_model_sees_what_earlier_runs_of_the_session_said(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer("one"), answer("two"))
        await bench.done(await bench.accept(message="first", extra_system_prompt="Be brief."))
        await bench.done(await bench.accept(message="second"))
        first, second = (call.request for call in bench.provider.calls)
        assert first.messages == (UserMessage("first"),)
        assert second.messages == (UserMessage("first"), answer("one"), UserMessage("second"))
        assert first.system.endswith("Be brief.")
        assert str(bench.home / "workspace") in first.system
        assert not second.system.endswith("Be brief.")


async def test_reasoning_is_shown_and_kept_beside_the_text(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.give(ReasoningDelta(0, "hm"), BlockEnded(0))
        call.say("hello")
        message = AssistantMessage((Reasoning("hm", "reasoning"), Text("hello")), "acme", "m", StopReason.STOP, USAGE)
        call.end(message)
        await bench.done(run_id)
        assert shape(await bench.events(run_id))[2:4] == ["reasoning", "assistant"]
        assert (await bench.messages())[1] == message


# --- one change ---


async def test_a_message_end_its_entry_and_the_rows_of_its_calls_are_one_change(tmp_path: Path) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, tools=[RecordingTool("rec")], wrap=wrapped.wrap) as bench:
        bench.provider.plan(asks(("c1", "rec"), ("c2", "rec")), answer())
        await bench.done(await bench.accept())
        [change] = [change for change in changes_of(wrapped.seen) if len(change.tool_calls) == 2 and change.entries]
        assert [type(event.payload) for event in change.events] == [MessageEnded]
        assert [entry.kind for entry in change.entries] == [EntryKind.ASSISTANT]
        assert [(row.call_id, row.call_index, row.state) for row in change.tool_calls] == [
            ("c1", 0, ToolCallState.REQUESTED),
            ("c2", 1, ToolCallState.REQUESTED),
        ]
        assert {row.entry_id for row in change.tool_calls} == {change.entries[0].entry_id}


async def test_a_tools_result_and_its_row_are_one_change_and_the_end_is_one(tmp_path: Path) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, tools=[RecordingTool("rec")], wrap=wrapped.wrap) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer())
        await bench.done(await bench.accept())
        changes = changes_of(wrapped.seen)
        [finished] = [
            change for change in changes if any(row.state is ToolCallState.FINISHED for row in change.tool_calls)
        ]
        assert [kind_of(event.payload).value for event in finished.events] == ["tool"]
        assert finished.got_on
        [end] = [change for change in changes if change.end is not None]
        assert [kind_of(event.payload).value for event in end.events] == ["lifecycle"]


async def test_the_message_is_durable_before_anything_of_its_tools(tmp_path: Path) -> None:
    gate = HoldingGate(
        lambda command: (
            isinstance(command, AppendToRun)
            and any(row.state is ToolCallState.REQUESTED for change in command.changes for row in change.tool_calls)
        )
    )
    tool = RecordingTool("rec", is_idempotent=True)
    async with running_bench(tmp_path, tools=[tool], gate=gate) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer())
        run_id = await bench.accept()
        await soon(gate.reached())
        for _ in range(100):
            await asyncio.sleep(0)
        assert tool.calls == []
        gate.release()
        await bench.done(run_id)
        assert len(tool.calls) == 1


async def test_a_launch_is_durable_before_its_tools_are_asked(tmp_path: Path) -> None:
    def launches(command: object) -> bool:
        return isinstance(command, AppendToRun) and any(
            row.state is ToolCallState.LAUNCHED for change in command.changes for row in change.tool_calls
        )

    gate = HoldingGate(launches)
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool], gate=gate) as bench:
        bench.provider.plan(asks(("c1", "rec"), ("c2", "rec")), answer())
        run_id = await bench.accept()
        await soon(gate.reached())
        for _ in range(100):
            await asyncio.sleep(0)
        assert tool.calls == []
        [command] = [command for command in gate.held if launches(command)]
        assert isinstance(command, AppendToRun)
        launched = [row.call_id for change in command.changes for row in change.tool_calls if launches(command)]
        assert launched[-2:] == ["c1", "c2"]  # one commit for both
        gate.release()
        await bench.done(run_id)
        assert len(tool.calls) == 2


async def test_an_idempotent_tool_needs_no_durable_launch(tmp_path: Path) -> None:
    wrapped = Wrapped()
    tool = RecordingTool("rec", is_idempotent=True)
    async with running_bench(tmp_path, tools=[tool], wrap=wrapped.wrap) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer())
        await bench.done(await bench.accept())
        states = [row.state for change in changes_of(wrapped.seen) for row in change.tool_calls]
        assert states == [ToolCallState.REQUESTED, ToolCallState.FINISHED]


# --- tool batches ---


async def test_end_events_come_in_completion_order_and_entries_in_request_order(tmp_path: Path) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec"), ("c2", "rec"), ("c3", "rec")), answer())
        run_id = await bench.accept()
        asked = {call.context.call_id: call for call in [await soon(tool.asked.get()) for _ in range(3)]}
        for call_id in ("c3", "c1", "c2"):
            asked[call_id].answer.set_result(ToolResult(f"of {call_id}"))
            await bench.until(
                run_id,
                lambda event, call_id=call_id: (  # type: ignore[misc]
                    event.get("tool", {}).get("phase") == "result" and event["tool"]["call_id"] == call_id
                ),
            )
            assert len([m for m in await bench.messages() if isinstance(m, ToolResultMessage)]) in (0, 3)
        await bench.done(run_id)
        results = [event for event in shape(await bench.events(run_id)) if event.startswith("tool result")]
        assert results == ["tool result c3 ok", "tool result c1 ok", "tool result c2 ok"]
        texts = [message.text for message in await bench.messages() if isinstance(message, ToolResultMessage)]
        assert texts == ["of c1", "of c2", "of c3"]
        await check_is_over(bench, run_id)


async def test_sequential_tools_run_one_by_one(tmp_path: Path) -> None:
    tool = RecordingTool("rec", is_sequential=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec"), ("c2", "rec")), answer())
        run_id = await bench.accept()
        await bench.done(run_id)
        assert [event for event in shape(await bench.events(run_id)) if event.startswith("tool")] == [
            "tool start c1",
            "tool result c1 ok",
            "tool start c2",
            "tool result c2 ok",
        ]


@pytest.mark.parametrize(
    ("tool", "name", "text"),
    [
        (RecordingTool("rec", result=ValueError("broken")), "rec", "ValueError: broken"),
        (RecordingTool("rec", result=SystemExit(3)), "rec", "tried to end the process"),
        (RecordingTool("rec", result=asyncio.CancelledError()), "rec", "cancelled itself"),
        (RecordingTool("rec"), "nothing", "nothing"),
        (RecordingTool("rec", schema={"type": "object", "required": ["path"]}), "rec", "path"),
    ],
    ids=["raises", "SystemExit", "own CancelledError", "unknown tool", "bad arguments"],
)
async def test_a_failing_call_is_a_result_and_the_run_goes_on(
    tmp_path: Path, tool: RecordingTool, name: str, text: str
) -> None:
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", name)), answer())
        run_id = await bench.accept()
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)
        result = (await bench.messages())[2]
        assert isinstance(result, ToolResultMessage)
        assert (result.is_error, result.outcome) == (True, ToolOutcome.ERROR)
        assert text in result.text
        assert [event for event in shape(await bench.events(run_id)) if event.startswith("tool")] == [
            "tool start c1",
            "tool result c1 error",
        ]


async def test_a_tool_that_returns_nothing_has_an_empty_result(tmp_path: Path) -> None:
    async with running_bench(tmp_path, tools=[RecordingTool("rec", result=None)]) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer())
        run_id = await bench.accept()
        await bench.done(run_id)
        assert (await bench.messages())[2] == ToolResultMessage("c1", "rec", "(no output)")


async def test_what_a_tool_reports_is_shown_while_it_runs(tmp_path: Path) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec")), answer())
        run_id = await bench.accept()
        asked = await soon(tool.asked.get())
        asked.context.report("half\ud800")
        update = await bench.until(run_id, is_phase("tool", "update"))
        assert update["tool"]["result"]["text"] == "half\ufffd"
        asked.answer.set_result(ToolResult("whole"))
        await bench.done(run_id)
        asked.context.report("too late")
        assert shape(await bench.events(run_id)).count("tool update c1") == 1
