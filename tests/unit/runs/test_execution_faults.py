"""Runs that meet a fault: of the model service, of ours, of the store (D-17, D-19)."""

from pathlib import Path

import pytest
from tests.fakes.commit_gates import FailingGate
from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import TENANT, Bench, check_is_over, is_phase, running_bench, said, shape, soon
from tests.unit.runs.left_over import LeftOver, left_by
from tests.unit.runs.seen_store import Wrapped
from tests.unit.runs.staged_model import USAGE, answer, asks, failure

from lanewayd.messages import (
    AssistantMessage,
    StopReason,
    Text,
    ToolCall,
    UserMessage,
)
from lanewayd.records import RunState
from lanewayd.runs.interface import WaitOutcome
from lanewayd.store.interface import StartRun
from lanewayd.tools.interface import ToolResult

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


async def test_a_row_that_cannot_be_read_holds_the_run_up_and_does_not_end_it(tmp_path: Path) -> None:
    wrapped = Wrapped()
    async with running_bench(tmp_path, wrap=wrapped.wrap, widths={"main": 1}) as bench:
        first = await bench.accept("elsewhere")
        call = await bench.model_call()
        run_id = await bench.accept()  # waits for the lane, so its row is read when its turn comes
        wrapped.seen.failing = ["run"]
        bench.provider.plan(answer())
        call.end(answer())
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(0.25)
        assert (await bench.ended(run_id)).state is RunState.SUCCEEDED
        assert (await bench.ended(first)).state is RunState.SUCCEEDED
        await check_is_over(bench, run_id)


async def test_a_transcript_that_cannot_be_read_holds_the_run_up_and_does_not_end_it(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r1", "agent:main:one")
        await left.start("r2", "agent:main:two")

    await left_by(tmp_path, leave)
    wrapped = Wrapped()
    async with running_bench(tmp_path, wrap=wrapped.wrap, widths={"main": 1}) as bench:
        call = await bench.model_call()
        wrapped.seen.failing = ["context"]  # of the run that waits for the lane
        bench.provider.plan(answer())
        call.end(answer())
        await soon(bench.clock.wait_for_sleepers(1))
        await bench.clock.advance(0.25)
        for run_id, session_key in (("r1", "agent:main:one"), ("r2", "agent:main:two")):
            assert (await bench.ended(run_id)).state is RunState.SUCCEEDED
            await check_is_over(bench, run_id, session_key)


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
