"""One run from its message to its end: what is written, when, and in which change."""

from pathlib import Path

from tests.fakes.recording_tool import RecordingTool
from tests.unit.runs.bench import USAGE, answer, asks, running_bench, said, shape

from lanewayd.messages import ToolResultMessage, UserMessage
from lanewayd.records import RunState


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
        assert [event["seq"] for event in events] == [1, 2, 3, 4, 5, 6]
        assert said(events) == "hello"
        assert await bench.messages() == [UserMessage("hi"), answer("hello")]
        assert bench.lock_files() == []
        assert bench.scheduler.book.is_empty
        assert len(bench.watches) == 0


async def test_a_tool_call_and_its_result(tmp_path: Path) -> None:
    tool = RecordingTool("rec")
    async with running_bench(tmp_path, tools=[tool]) as bench:
        bench.provider.plan(asks(("c1", "rec"), text="look"), answer())
        run_id = await bench.accept()
        run = await bench.done(run_id)
        assert run.state is RunState.SUCCEEDED
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
