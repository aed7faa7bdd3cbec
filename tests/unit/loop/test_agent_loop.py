"""Turns until the model stops (spec 05, section 2)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.loop.stage import USAGE, CountingGate, Stage, answer, asks, failure

from lanewayd.loop.interface import LoopStart, Parked
from lanewayd.messages import Prices, StopReason, Text, ToolOutcome, ToolResultMessage, Usage, UserMessage
from lanewayd.providers.interface import BlockEnded, Done, ReasoningDelta, StreamEvent, TextDelta

START = LoopStart((UserMessage("hi"),))


async def test_an_answer_without_calls_ends_the_loop() -> None:
    stage = Stage(answer("hello"))
    end = await stage.loop.run(START)
    assert (end.message, end.error, stage.recorder.usage) == (answer("hello"), None, USAGE)
    assert stage.provider.requests[0].messages == START.messages


async def test_results_go_to_the_model_in_the_order_of_the_calls() -> None:
    stage = Stage(asks("rec", "rec"), answer(), tools=[RecordingTool("rec")])
    end = await stage.loop.run(START)
    assert end.message == answer()
    assert stage.recorder.usage == USAGE + USAGE
    [_, request] = stage.provider.requests
    assert [message.call_id for message in request.messages if isinstance(message, ToolResultMessage)] == [
        "rec0",
        "rec1",
    ]
    assert request.system == "system"
    assert (request.idle_timeout_cap_s, [spec.name for spec in request.tools]) == (60.0, ["rec"])


@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.STOP])
async def test_calls_of_a_message_that_did_not_stop_for_them_are_dropped_and_not_run(stop: StopReason) -> None:
    tool = RecordingTool("rec")
    stage = Stage(asks("rec", text="let me", stop=stop), tools=[tool])
    end = await stage.loop.run(START)
    assert tool.calls == []
    assert end.message is not None
    assert (end.message.tool_calls, end.message.text) == ((), "let me")
    assert stage.recorder.of("message") == [("message", end.message)]


async def test_a_message_that_stopped_for_tools_but_calls_none_ends_the_loop() -> None:
    message = answer("hm", StopReason.TOOL_USE)
    assert (await Stage(message).loop.run(START)).message == message


async def test_at_the_turn_cap_the_run_fails_after_its_tools_have_run() -> None:
    tool = RecordingTool("rec")
    stage = Stage(asks("rec"), asks("rec"), answer(), tools=[tool], max_turns=2)
    end = await stage.loop.run(START)
    assert end.error is not None
    assert (end.error.reason, len(tool.calls), len(stage.provider.requests)) == ("MAX_TURNS", 2, 2)


async def test_turns_of_an_earlier_dispatch_count_for_the_cap() -> None:
    stage = Stage(answer(), max_turns=2)
    end = await stage.loop.run(LoopStart(START.messages, turns=2))
    assert end.error is not None
    assert (end.error.reason, stage.provider.requests) == ("MAX_TURNS", [])


async def test_an_allow_list_that_leaves_no_tool_ends_the_run_before_the_first_model_call() -> None:
    stage = Stage(tools=[RecordingTool("rec")], allow=["nothing"])
    end = await stage.loop.run(START)
    assert end.error is not None
    assert (end.error.reason, stage.provider.requests) == ("TOOLS_EMPTY", [])


async def test_a_recovered_run_settles_its_calls_before_the_next_model_call() -> None:
    tool = RecordingTool("rec")
    stage = Stage(answer(), tools=[tool])
    message = asks("rec", "rec", "rec")
    known = ToolResultMessage("rec1", "rec", "kept")
    start = LoopStart((UserMessage("hi"), message), 1, message.tool_calls, (known,))
    end = await stage.loop.run(start)
    assert end.message == answer()
    assert [call.context.call_id for call in tool.calls] == ["rec0", "rec2"]
    results = stage.provider.requests[0].messages[2:]
    assert [result.call_id for result in results if isinstance(result, ToolResultMessage)] == ["rec0", "rec1", "rec2"]
    assert known in results


@pytest.mark.parametrize(("steps", "model_calls", "tool_calls"), [(0, 0, 0), (1, 1, 0), (2, 1, 1)])
async def test_a_closed_gate_parks_the_run_before_its_next_step(steps: int, model_calls: int, tool_calls: int) -> None:
    tool = RecordingTool("rec")
    stage = Stage(asks("rec"), answer(), tools=[tool], gate=CountingGate(steps))
    with pytest.raises(Parked):
        await stage.loop.run(START)
    assert (len(stage.provider.requests), len(tool.calls)) == (model_calls, tool_calls)


async def test_what_the_model_says_is_told_as_it_comes() -> None:
    events: Sequence[StreamEvent] = [
        ReasoningDelta(0, "hm"),
        BlockEnded(0),
        TextDelta(1, "hel"),
        TextDelta(1, "lo"),
        Done(answer("hello")),
    ]
    stage = Stage(events)
    await stage.loop.run(START)
    assert [entry[0] for entry in stage.recorder.told] == ["reasoning", "block ended", "text", "text", "message"]
    assert stage.provider.closed == 1


async def test_a_failure_that_may_pass_is_tried_again_after_growing_waits() -> None:
    stage = Stage(failure(), failure(), failure(), answer())
    running = asyncio.create_task(stage.loop.run(START))
    for delay_s in (1.0, 2.0, 4.0):
        await stage.clock.wait_for_sleepers(1)
        asked = len(stage.provider.requests)
        await stage.clock.advance(delay_s - 0.01)
        assert len(stage.provider.requests) == asked
        await stage.clock.advance(0.01)
    assert (await running).message == answer()
    assert stage.recorder.of("retry") == [
        ("retry", "PROVIDER_UNAVAILABLE", 2, 1.0),
        ("retry", "PROVIDER_UNAVAILABLE", 3, 2.0),
        ("retry", "PROVIDER_UNAVAILABLE", 4, 4.0),
    ]


async def test_after_three_retries_the_failure_stands() -> None:
    stage = Stage(failure(), failure(), failure(), failure())
    running = asyncio.create_task(stage.loop.run(START))
    for delay_s in (1.0, 2.0, 4.0):
        await stage.clock.wait_for_sleepers(1)
        await stage.clock.advance(delay_s)
    end = await running
    assert end.error is not None
    assert (end.error.reason, end.error.http_status) == ("PROVIDER_UNAVAILABLE", 503)


async def test_each_model_call_has_its_own_tries() -> None:
    stage = Stage(failure(), asks("rec"), failure(), answer(), tools=[RecordingTool("rec")])
    running = asyncio.create_task(stage.loop.run(START))
    for _ in range(2):
        await stage.clock.wait_for_sleepers(1)
        await stage.clock.advance(1.0)
    assert (await running).message == answer()


async def test_a_gate_that_closes_during_a_back_off_parks_the_run() -> None:
    stage = Stage(failure(), answer(), gate=CountingGate(1))
    running = asyncio.create_task(stage.loop.run(START))
    await stage.clock.wait_for_sleepers(1)
    await stage.clock.advance(1.0)
    with pytest.raises(Parked):
        await running


async def test_a_failure_for_good_ends_the_loop_with_what_was_said_so_far() -> None:
    stage = Stage([TextDelta(0, "so f"), failure("PROVIDER_AUTH", is_transient=False, text="so f")])
    end = await stage.loop.run(START)
    assert end.error is not None
    assert (end.error.reason, stage.recorder.of("failed")) == ("PROVIDER_AUTH", [("failed", Usage())])
    assert end.message is not None
    assert end.message.content == (Text("so f"),)
    assert stage.recorder.of("message") == []


async def test_a_stream_without_an_outcome_is_a_failure_that_names_the_provider() -> None:
    end = await Stage([TextDelta(0, "so f")], [TextDelta(0, "so f")]).loop.run(START)
    assert end.error is not None
    assert (end.error.reason, end.error.provider, end.error.model) == ("PROVIDER_BAD_RESPONSE", "acme", "m")


async def test_each_call_is_told_with_what_it_cost_failed_ones_too() -> None:
    spent = replace(failure(), partial=replace(failure().partial, usage=Usage(10)))
    stage = Stage(spent, asks("rec"), answer(), tools=[RecordingTool("rec")], prices=Prices(input=1, output=2))
    running = asyncio.create_task(stage.loop.run(START))
    await stage.clock.wait_for_sleepers(1)
    await stage.clock.advance(1.0)
    await running
    told = [entry[1] if entry[0] == "failed" else entry[1].usage for entry in stage.recorder.of("failed", "message")]
    assert told == [Usage(10, cost_usd=10e-6), replace(USAGE, cost_usd=20e-6), replace(USAGE, cost_usd=20e-6)]


async def test_the_tool_is_cancelled_when_the_run_is_cancelled() -> None:
    tool = RecordingTool("rec", hold=True)
    stage = Stage(asks("rec"), tools=[tool])
    running = asyncio.create_task(stage.loop.run(START))
    await tool.asked.get()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tool.cancelled == ["rec0"]
    assert stage.recorder.of("settled") == []


async def test_a_message_that_comes_while_the_model_answers_is_answered_before_the_run_ends() -> None:
    stage = Stage(answer("one"), answer("two"), steered=(1, "and this"))
    end = await stage.loop.run(START)
    assert end.message == answer("two")
    assert stage.provider.requests[-1].messages == (*START.messages, answer("one"), UserMessage("and this"))
    assert end.messages == (*START.messages, answer("one"), UserMessage("and this"), answer("two"))


async def test_a_message_that_waits_keeps_calls_from_being_launched_and_stands_behind_their_results() -> None:
    tool = RecordingTool("rec")
    stage = Stage(asks("rec", "rec"), answer(), tools=[tool], steered=(1, "stop that"))
    assert (await stage.loop.run(START)).message == answer()
    *_, first, second, said = stage.provider.requests[-1].messages
    assert [message.outcome for message in (first, second) if isinstance(message, ToolResultMessage)] == [
        ToolOutcome.SKIPPED,
        ToolOutcome.SKIPPED,
    ]
    assert (said, tool.calls) == (UserMessage("stop that"), [])


async def test_a_message_that_waits_is_not_taken_in_when_no_further_call_may_be_made() -> None:
    stage = Stage(asks("rec"), tools=[RecordingTool("rec")], max_turns=1, steered=(1, "and this"))
    end = await stage.loop.run(START)
    assert end.error is not None
    assert (end.error.reason, len(stage.provider.requests)) == ("MAX_TURNS", 1)
    assert stage.steering is not None
    assert stage.steering.is_waiting
