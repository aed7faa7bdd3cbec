"""One run from its message to its end: what is written, when, and in which change (D-2, D-4, D-17)."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import (
    TENANT,
    USAGE,
    Bench,
    answer,
    asks,
    check_is_over,
    failure,
    is_phase,
    running_bench,
    said,
    shape,
    soon,
)
from tests.unit.runs.seen_store import SeenStore

from lanewayd.events import MessageEnded, kind_of
from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.interface import BlockEnded, ReasoningDelta
from lanewayd.records import EntryKind, RunState, ToolCallState
from lanewayd.runs.interface import WaitOutcome
from lanewayd.store.interface import AppendToRun, RunChange, StartRun
from lanewayd.store.sqlite import SqliteStore
from lanewayd.tools.interface import ToolResult


def changes_of(seen: SeenStore) -> list[RunChange]:
    return [change for command in seen.appends for change in command.changes]


class Wrapped:
    """Lets a bench's store be seen."""

    def __init__(self) -> None:
        self.seen: SeenStore

    def wrap(self, store: SqliteStore) -> object:
        self.seen = SeenStore(store)
        return self.seen


# --- the path ---


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


# --- failures and retries ---


async def test_a_retry_voids_what_was_shown_and_says_it_under_a_new_id(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("half a ")
        call.end(failure(text="half a "))
        retry = (await bench.until(run_id, is_phase("lifecycle", "retry")))["lifecycle"]
        waited = await bench.registry.wait(TENANT, run_id, 0)
        assert waited.outcome is WaitOutcome.EXPIRED
        assert waited.pending_error is not None
        assert waited.pending_error.reason == "PROVIDER_UNAVAILABLE"
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(1.0)
        again = await bench.model_call()
        again.say("whole")
        await bench.until(run_id, lambda event: event.get("assistant", {}).get("delta") == "whole")
        assert (await bench.registry.wait(TENANT, run_id, 0)).pending_error is None
        again.end(answer("whole"))
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)
        events = await bench.events(run_id)
        first, second = (event["assistant"] for event in events if "assistant" in event)
        assert (retry["attempt"], retry["delay_s"], retry["void_message_id"]) == (2, 1.0, first["message_id"])
        assert (retry["provider"], retry["model"]) == ("acme", "m")
        assert second["message_id"] != first["message_id"]
        assert second["offset"] == 0
        assert [event["message"]["message_id"] for event in events if "message" in event][1:] == [second["message_id"]]
        assert await bench.messages() == [UserMessage("hi"), answer("whole")]


async def test_a_retry_of_a_call_that_had_shown_nothing_voids_nothing(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(failure(), answer())
        run_id = await bench.accept()
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(1.0)
        await bench.done(run_id)
        [retry] = [event["lifecycle"] for event in await bench.events(run_id) if is_phase("lifecycle", "retry")(event)]
        assert retry["void_message_id"] == ""


async def test_held_text_is_neither_shown_after_a_retry_nor_lost_before_an_end(tmp_path: Path) -> None:
    async with running_bench(tmp_path, delta_interval_s=60.0) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("a", "b", "c")
        call.end(failure(text="abc"))
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(1.0)
        again = await bench.model_call()
        again.say("x", "y", "z")
        again.end(answer("xyz"))
        await bench.done(run_id)
        await bench.clock.advance(60.0)
        events = await bench.events(run_id)
        assert [event["assistant"]["delta"] for event in events if "assistant" in event] == ["a", "x", "yz"]


async def test_held_text_is_shown_when_its_time_has_come(tmp_path: Path) -> None:
    async with running_bench(tmp_path, delta_interval_s=0.025) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("a", "b")
        await soon(bench.clock.wait_for_timers(1))
        await bench.until(run_id, lambda event: "assistant" in event)
        await bench.clock.advance(0.024)
        assert said(await bench.events(run_id)) == "a"
        await bench.clock.advance(0.001)
        shown = await bench.until(run_id, lambda event: event.get("assistant", {}).get("delta") == "b")
        assert shown["assistant"]["offset"] == 1
        call.end(answer("ab"))
        await bench.done(run_id)


async def test_a_failure_for_good_ends_the_run_with_its_text_and_the_error(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("so far")
        call.end(failure("PROVIDER_AUTH", is_transient=False, text="so far"))
        run = await bench.done(run_id)
        await check_is_over(bench, run_id)
        assert (run.state, run.stop_reason) == (RunState.FAILED, "error")
        assert run.error is not None
        assert (run.error.reason, run.error.provider, run.error.model, run.error.http_status) == (
            "PROVIDER_AUTH",
            "acme",
            "m",
            503,
        )
        assert [(payload.text, payload.is_error) for payload in run.payloads] == [
            ("so far", False),
            ("the model service said no", True),
        ]
        assert shape(await bench.events(run_id))[-2:] == ["message assistant", "lifecycle error"]
        assert (await bench.messages())[1:] == [AssistantMessage((Text("so far"),), "acme", "m", StopReason.ERROR)]


async def test_the_turn_cap_ends_the_run_after_its_last_batch(tmp_path: Path) -> None:
    async with running_bench(tmp_path, tools=[RecordingTool("rec")]) as bench:
        bench.provider.plan(asks(("c1", "rec"), text="look"))
        run_id = await bench.accept(max_turns=1)
        run = await bench.done(run_id)
        await check_is_over(bench, run_id)
        assert run.error is not None
        assert (run.error.reason, run.payloads[0].text, run.usage) == ("MAX_TURNS", "look", USAGE)


async def test_an_answer_cut_by_its_length_succeeds_truncated(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer("so f", StopReason.LENGTH))
        run = await bench.done(await bench.accept())
        assert (run.state, run.truncated, run.stop_reason) == (RunState.SUCCEEDED, True, "length")


# --- faults of ours ---


async def check_failed_inside(bench: Bench, run_id: str) -> None:
    run = await bench.ended(run_id)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.reason == "INTERNAL"
    await check_is_over(bench, run_id)


async def check_goes_on(bench: Bench) -> None:
    bench.provider.plan(answer())
    assert (await bench.done(await bench.accept())).state is RunState.SUCCEEDED


async def test_a_provider_that_raises_is_a_fault_of_ours_and_ends_its_run_only(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("so far")
        call.give(RuntimeError("a bug"))
        await check_failed_inside(bench, run_id)
        assert (await bench.run(run_id)).payloads[0].text == "so far"
        await check_goes_on(bench)


async def test_a_fault_before_the_run_is_at_work_ends_it(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.workshop.fault = RuntimeError("a bug")
        run_id = await bench.accept()
        await check_failed_inside(bench, run_id)
        bench.workshop.fault = None
        await check_goes_on(bench)


async def test_a_change_that_the_store_refuses_ends_the_run(tmp_path: Path) -> None:
    """A provider must give unique call ids; one that does not is a fault of ours."""
    async with running_bench(tmp_path, tools=[RecordingTool("rec")]) as bench:
        bench.provider.plan(asks(("same", "rec"), ("same", "rec")))
        run_id = await bench.accept()
        await check_failed_inside(bench, run_id)
        await check_goes_on(bench)


@pytest.mark.parametrize("wild", ["half \ud83d a character", "nul \0 inside"])
async def test_text_that_is_no_valid_utf8_harms_nothing(tmp_path: Path, wild: str) -> None:
    tame = wild.replace("\ud83d", "\ufffd")
    call = ToolCall("c1", "rec", '{"k":"\\ud83d"}')
    async with running_bench(tmp_path, tools=[RecordingTool("rec", result=ToolResult(wild))]) as bench:
        bench.provider.plan(AssistantMessage((Text(wild), call), "acme", "m", StopReason.TOOL_USE, USAGE), answer(wild))
        run_id = await bench.accept()
        run = await bench.done(run_id)
        await check_is_over(bench, run_id)
        assert run.state is RunState.SUCCEEDED
        assert [payload.text for payload in run.payloads] == [tame]
        messages = await bench.messages()
        assert isinstance(messages[1], AssistantMessage)
        assert messages[1].text == tame
        assert messages[1].tool_calls == (call,)
        assert messages[3] == answer(tame)


# --- a store that fails ---


async def test_a_store_that_cannot_commit_holds_the_run_up_and_loses_nothing(tmp_path: Path) -> None:
    gate = FailingGate()
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool], gate=gate) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        gate.is_failing = True
        call.say("look")
        call.end(asks(("c1", "rec"), text="look"))
        await soon(bench.clock.wait_for_sleepers(1))
        assert bench.store_works == [False]
        assert tool.calls == []
        bench.provider.plan(answer())
        gate.is_failing = False
        await bench.clock.advance(0.25)
        run = await bench.done(run_id)
        assert run.state is RunState.SUCCEEDED
        assert bench.store_works == [False, True]
        await check_is_over(bench, run_id)
        assert said(await bench.events(run_id)) == "look"


async def test_a_start_that_fails_is_tried_again(tmp_path: Path) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, wrap=wrapped.wrap) as bench:
        wrapped.seen.failing = ["start", "start"]
        bench.provider.plan(answer())
        run_id = await bench.accept()
        for delay_s in (0.25, 0.5):
            await soon(bench.clock.wait_for_sleepers(1))
            await bench.clock.advance(delay_s)
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED
        assert shape(await bench.events(run_id)).count("lifecycle start") == 1


async def test_a_start_whose_answer_was_lost_is_not_forgotten(tmp_path: Path) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, wrap=wrapped.wrap) as bench:
        wrapped.seen.lost_answers = ["start"]
        bench.provider.plan(answer())
        run_id = await bench.accept()
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(0.25)
        assert (await bench.done(run_id)).state is RunState.SUCCEEDED
        assert shape(await bench.events(run_id)).count("lifecycle start") == 1
        await check_is_over(bench, run_id)


@pytest.mark.parametrize("read", ["context", "run"])
async def test_a_read_that_fails_holds_the_run_up_and_does_not_end_it(tmp_path: Path, read: str) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, wrap=wrapped.wrap, widths={"main": 1}) as bench:
        first = await bench.accept("elsewhere")
        call = await bench.model_call()
        run_id = await bench.accept()  # waits for the lane, so its row is read when its turn comes
        wrapped.seen.failing = [read]
        bench.provider.plan(answer())
        call.end(answer())
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(0.25)
        assert (await bench.ended(run_id)).state is RunState.SUCCEEDED
        assert (await bench.ended(first)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)


async def test_another_dispatch_of_the_run_takes_it_over(tmp_path: Path) -> None:
    """What the overtaken one still does is not written, and the end is not its to write."""
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        await bench.store.start(StartRun(run_id, bench.clock.now(), recovered=True))
        call.say("too late")
        call.end(answer("too late"))
        await bench.idle()
        run = await bench.run(run_id)
        assert (run.state, run.claim, run.payloads) == (RunState.RUNNING, 2, ())
        assert said(await bench.events(run_id)) == ""
        assert await bench.messages() == [UserMessage("hi")]
        assert bench.lock_files() == []
