"""providers/scripted.py and scripts.py: what a scripted model plays, and what it says of a script it cannot play."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.providers.interface import BlockEnded, Done, Failed, ModelRequest, ReasoningDelta, StreamEvent, TextDelta
from lanewayd.providers.scripted import ScriptedProvider
from lanewayd.providers.scripts import parse_script

USER = UserMessage("what is up?")
DOCS = Path(__file__).parents[3] / "docs" / "scripted-models.md"


class Stage:
    """A provider with a folder of scripts."""

    def __init__(self, scripts_dir: Path) -> None:
        self.scripts_dir = scripts_dir
        self.clock = FakeClock()
        numbers = iter(range(1, 100))
        self.provider = ScriptedProvider(
            scripts_dir=scripts_dir, clock=self.clock, new_call_id=lambda: f"made_up_{next(numbers)}"
        )

    def write(self, text: str, name: str = "demo") -> None:
        (self.scripts_dir / f"{name}.yaml").write_text(text, encoding="utf-8")

    async def play(self, *messages: Message, model: str = "demo") -> list[StreamEvent]:
        request = ModelRequest(model, "", messages or (USER,))
        async with aclosing(self.provider.stream(request)) as events:
            return [event async for event in events]

    async def message(self, *messages: Message) -> AssistantMessage:
        done = (await self.play(*messages))[-1]
        assert isinstance(done, Done), done
        return done.message

    async def failure(self, *messages: Message, model: str = "demo") -> Failed:
        events = await self.play(*messages, model=model)
        assert len([event for event in events if isinstance(event, Done | Failed)]) == 1
        failed = events[-1]
        assert isinstance(failed, Failed), failed
        assert (failed.error.provider, failed.error.model) == ("scripted", model)
        return failed


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    await made.provider.close()


ANSWERED = AssistantMessage((), "scripted", "demo", StopReason.TOOL_USE)


async def test_a_turn_is_played_delta_by_delta(stage: Stage) -> None:
    stage.write("turns: [{reasoning: hm, text: [a, b], usage: {input_tokens: 3, output_tokens: 2}}]")
    assert await stage.play() == [
        ReasoningDelta(0, "hm"),
        BlockEnded(0),
        TextDelta(1, "a"),
        TextDelta(1, "b"),
        BlockEnded(1),
        Done(AssistantMessage((Reasoning("hm"), Text("ab")), "scripted", "demo", StopReason.STOP, Usage(3, 2), "stop")),
    ]


async def test_the_number_of_answers_behind_the_last_user_message_gives_the_turn(stage: Stage) -> None:
    stage.write("turns: [{text: one, tool_calls: [{name: rec}]}, {text: two}]")
    first = await stage.message()
    assert (first.text, first.stop_reason) == ("one", StopReason.TOOL_USE)
    assert first.tool_calls == (ToolCall("made_up_1", "rec", "{}"),)
    result = ToolResultMessage("made_up_1", "rec", "r")
    second = await stage.message(USER, first, result)
    assert (second.text, second.stop_reason) == ("two", StopReason.STOP)
    assert (await stage.message(USER, first, result, second, USER)).text == "one"


async def test_failed_answers_do_not_count(stage: Stage) -> None:
    stage.write("turns: [{text: one}, {text: two}]")
    failed = AssistantMessage((), "scripted", "demo", StopReason.ERROR)
    assert (await stage.message(USER, failed)).text == "one"


async def test_the_last_turn_is_repeated_only_if_it_calls_nothing(stage: Stage) -> None:
    stage.write("turns: [{text: only}]")
    assert (await stage.message(USER, ANSWERED, ANSWERED)).text == "only"
    stage.write("turns: [{tool_calls: [{name: rec}]}]")
    failed = await stage.failure(USER, ANSWERED)
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "demo.yaml has 1 turns and turn 2 was asked for" in failed.error.message


async def test_placeholders_are_filled_in_texts_and_arguments(stage: Stage) -> None:
    stage.write(
        """
        turns:
          - text: "You said ${message}"
            tool_calls:
              - {name: rec, id: "id-${message}", arguments: {deep: ["${message}", 3], "n": 12345678901234567890}}
          - text: "It gave ${tool_result}"
        """
    )
    first = await stage.message(UserMessage("${tool_result}"))
    assert first.text == "You said ${tool_result}"
    assert json.loads(first.tool_calls[0].arguments_json) == {"deep": ["${tool_result}", 3], "n": 12345678901234567890}
    assert first.tool_calls[0].call_id == "id-${tool_result}"
    second = await stage.message(USER, first, ToolResultMessage("id", "rec", "r1"))
    assert second.text == "It gave r1"


async def test_a_given_id_that_the_session_knows_is_replaced(stage: Stage) -> None:
    stage.write("turns: [{tool_calls: [{name: rec, id: a}, {name: rec, id: a}]}, {text: x}]")
    first = await stage.message()
    assert [call.call_id for call in first.tool_calls] == ["a", "made_up_1"]
    again = await stage.message(USER, first, USER)
    assert not {call.call_id for call in again.tool_calls} & {call.call_id for call in first.tool_calls}


async def test_delays_go_by_the_clock_and_repeat_plays_again(stage: Stage) -> None:
    stage.write("turns: [{text: [a, b], delay_s: 2, repeat: 2}]")
    playing = asyncio.ensure_future(stage.message())
    for _ in range(4):
        await stage.clock.wait_for_sleepers(1)
        await stage.clock.advance(2)
    assert (await playing).text == "abab"
    assert stage.clock.monotonic() == 8


async def test_a_large_output_lets_other_work_run(stage: Stage) -> None:
    stage.write("turns: [{text: x, repeat: 1000}]")
    turns = 0
    playing = asyncio.ensure_future(stage.message())
    while not playing.done():
        turns += 1
        await asyncio.sleep(0)
    assert len((await playing).text) == 1000
    assert turns > 100


async def test_length_drops_the_calls(stage: Stage) -> None:
    stage.write("turns: [{text: half, stop: length, tool_calls: [{name: rec}]}]")
    message = await stage.message()
    assert (message.stop_reason, message.tool_calls) == (StopReason.LENGTH, ())


async def test_an_error_ends_the_turn_after_its_text(stage: Stage) -> None:
    stage.write(
        "turns: [{text: Half, error: {reason: PROVIDER_RATE_LIMITED, message: slow, http_status: 429, transient: true,"
        " retry_after_s: 2.5}}]"
    )
    failed = await stage.failure()
    assert (failed.error.reason, failed.error.message, failed.error.http_status) == (
        "PROVIDER_RATE_LIMITED",
        "slow",
        429,
    )
    assert (failed.is_transient, failed.retry_after_s, failed.partial.text) == (True, 2.5, "Half")


async def test_a_missing_script_is_named_with_its_path(stage: Stage) -> None:
    failed = await stage.failure(model="nothing")
    assert failed.error.reason == "PROVIDER_MODEL_NOT_FOUND"
    assert str(stage.scripts_dir / "nothing.yaml") in failed.error.message


@pytest.mark.parametrize(
    "name", ["../demo", "a/b", "..", "", "a..b", "/etc/passwd", "a\\b", "a\x00", "x" * 200, ".hidden"]
)
async def test_names_cannot_leave_the_folder(stage: Stage, name: str) -> None:
    stage.write("turns: [{text: x}]")
    assert (await stage.failure(model=name)).error.reason == "PROVIDER_MODEL_NOT_FOUND"


async def test_a_script_that_cannot_be_read_is_not_found(stage: Stage) -> None:
    (stage.scripts_dir / "folder.yaml").mkdir()
    assert (await stage.failure(model="folder")).error.reason == "PROVIDER_MODEL_NOT_FOUND"


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("turns:\n  - text: [a\n", "line 3"),
        ("", "the script: a mapping is needed"),
        ("[]", "the script: a mapping is needed"),
        ("turns: []", "turns: a list with at least one turn"),
        ("turn: [{}]", "unknown field 'turn'"),
        ("turns: [{}, 3]", "turns[1]: a mapping"),
        ("turns: [{txt: a}]", "turns[0]: unknown field 'txt'"),
        ("turns: [{text: 3}]", "turns[0].text"),
        ("turns: [{text: [a, 3]}]", "turns[0].text"),
        ("turns: [{delay_s: -1}]", "turns[0].delay_s"),
        ("turns: [{delay_s: soon}]", "turns[0].delay_s"),
        ("turns: [{repeat: 1.5}]", "turns[0].repeat"),
        ("turns: [{repeat: true}]", "turns[0].repeat"),
        ("turns: [{stop: error}]", "turns[0].stop"),
        ("turns: [{usage: {tokens: 3}}]", "turns[0].usage: unknown field 'tokens'"),
        ("turns: [{usage: {input_tokens: x}}]", "turns[0].usage.input_tokens"),
        ("turns: [{tool_calls: {name: x}}]", "turns[0].tool_calls"),
        ("turns: [{tool_calls: [{arguments: {}}]}]", "turns[0].tool_calls[0].name"),
        ("turns: [{tool_calls: [{name: x, arguments: [1]}]}]", "turns[0].tool_calls[0].arguments"),
        ("turns: [{tool_calls: [{name: x, arguments: {d: 2024-01-01}}]}]", "turns[0].tool_calls[0].arguments"),
        ("turns: [{tool_calls: [{name: x, id: 3}]}]", "turns[0].tool_calls[0].id"),
        ("turns: [{error: {reason: RUN_DEADLINE}}]", "turns[0].error.reason"),
        ("turns: [{error: {transient: 3}}]", "turns[0].error.transient"),
        ("turns: [{error: {retry_after_s: x}}]", "turns[0].error.retry_after_s"),
    ],
)
async def test_a_malformed_script_names_the_line_or_the_field(stage: Stage, script: str, named: str) -> None:
    stage.write(script)
    failed = await stage.failure()
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert named in failed.error.message
    assert "demo.yaml" in failed.error.message


async def test_bytes_that_are_no_text_are_malformed(stage: Stage) -> None:
    (stage.scripts_dir / "demo.yaml").write_bytes(b"turns: \xff")
    assert (await stage.failure()).error.reason == "PROVIDER_BAD_RESPONSE"


async def test_a_changed_script_counts_from_the_next_call_on(stage: Stage) -> None:
    stage.write("turns: [{text: old}]")
    assert (await stage.message()).text == "old"
    stage.write("turns: [{text: newer}]")
    assert (await stage.message()).text == "newer"


def test_the_scripts_of_the_documentation_can_be_played() -> None:
    scripts = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert scripts
    for script in scripts:
        assert parse_script(script)
