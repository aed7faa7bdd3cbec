"""A run whose answer must fit a schema: what the model is told, how often it may try, what is kept."""

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.fakes.recording_tool import RecordingTool
from tests.unit.loop.stage import USAGE, Stage, answer, asks

from lanewayd.loop.answer_schema import AnswerRefused, AnswerSchema
from lanewayd.loop.interface import LoopEnd, LoopStart
from lanewayd.messages import AssistantMessage, StopReason, UserMessage

START = LoopStart((UserMessage("hi"),))
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
GOOD = '{"n": 1}'


def told(stage: Stage) -> list[Any]:
    """What the recorder was told of messages, voids and retries."""
    return [entry[0] if entry[0] == "message" else entry for entry in stage.recorder.of("message", "failed", "retry")]


async def test_an_answer_that_fits_is_the_answer() -> None:
    stage = Stage(answer(GOOD), schema=SCHEMA)
    end = await stage.loop.run(START)
    assert (end.message, end.error) == (answer(GOOD), None)
    assert told(stage) == ["message"]
    [request] = stage.provider.requests
    assert request.response_schema == SCHEMA
    assert request.messages == START.messages
    assert request.system.startswith("system\n\nYour final answer must be one JSON object")
    assert request.system.endswith(json.dumps(SCHEMA, separators=(",", ":")))


async def test_a_service_with_a_feature_of_its_own_is_not_instructed() -> None:
    stage = Stage(answer(GOOD), schema=SCHEMA)
    stage.provider.has_schemas = True
    await stage.loop.run(START)
    assert (stage.provider.requests[0].system, stage.provider.requests[0].response_schema) == ("system", SCHEMA)


async def test_its_answers_are_checked_all_the_same() -> None:
    stage = Stage(answer("{}"), answer(GOOD), schema=SCHEMA)
    stage.provider.has_schemas = True
    assert (await stage.loop.run(START)).message == answer(GOOD)
    assert len(stage.provider.requests) == 2


async def test_without_a_schema_nothing_is_asked_and_nothing_checked() -> None:
    stage = Stage(answer("no json"))
    assert (await stage.loop.run(START)).message == answer("no json")
    assert (stage.provider.requests[0].system, stage.provider.requests[0].response_schema) == ("system", None)


async def test_an_answer_that_does_not_fit_is_void_and_the_model_is_told_why() -> None:
    stage = Stage(answer('{"n": "one"}'), answer(GOOD), schema=SCHEMA)
    end = await stage.loop.run(START)
    assert end.message == answer(GOOD)
    assert end.messages == (*START.messages, answer(GOOD)), "what was wrong is no part of the conversation"
    assert told(stage) == [("failed", USAGE), ("retry", "OUTPUT_SCHEMA_MISMATCH", 2, 0.0), "message"]
    [_, request] = stage.provider.requests
    user, wrong, correction = request.messages
    assert (user, wrong) == (START.messages[0], answer('{"n": "one"}'))
    assert isinstance(correction, UserMessage)
    assert "n: 'one' is not of type 'integer'" in correction.text


async def test_two_corrections_are_made_and_the_third_wrong_answer_ends_the_run() -> None:
    stage = Stage(answer("one"), answer("{}"), answer("[1]"), schema=SCHEMA)
    end = await stage.loop.run(START)
    assert end.error is not None
    assert (end.error.reason, len(stage.provider.requests)) == ("OUTPUT_SCHEMA_MISMATCH", 3)
    assert "not an object" in end.error.message
    assert told(stage)[-1] == ("failed", USAGE)
    assert [entry[2] for entry in stage.recorder.of("retry")] == [2, 3]
    aside = stage.provider.requests[2].messages[1:]
    assert aside[0] == answer("{}"), "only the last wrong answer is shown"
    assert len(aside) == 2


async def test_tools_may_be_used_before_the_answer_and_after_a_correction() -> None:
    tool = RecordingTool("rec")
    stage = Stage(asks("rec"), answer("one"), asks("rec"), answer(GOOD), tools=[tool], schema=SCHEMA)
    end = await stage.loop.run(START)
    assert (end.message, len(tool.calls)) == (answer(GOOD), 2)
    last = stage.provider.requests[-1].messages
    assert [type(message).__name__ for message in last] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
        "ToolResultMessage",
    ]


async def test_a_silent_answer_is_not_shown_to_the_model_again() -> None:
    silent = AssistantMessage((), "acme", "m", StopReason.STOP, USAGE)
    stage = Stage(silent, answer(GOOD), schema=SCHEMA)
    await stage.loop.run(START)
    assert [type(message) for message in stage.provider.requests[1].messages] == [UserMessage]


async def test_an_answer_cut_by_its_length_is_told_to_be_shorter() -> None:
    stage = Stage(answer('{"n": 1', StopReason.LENGTH), answer(GOOD), schema=SCHEMA)
    await stage.loop.run(START)
    correction = stage.provider.requests[1].messages[-1]
    assert isinstance(correction, UserMessage)
    assert "must be shorter" in correction.text


async def test_a_correction_is_a_model_call_that_the_turn_cap_counts() -> None:
    stage = Stage(answer("one"), schema=SCHEMA, max_turns=1)
    end: LoopEnd = await stage.loop.run(START)
    assert end.error is not None
    assert end.error.reason == "MAX_TURNS"


async def test_a_run_that_is_stopped_while_its_answer_is_checked_has_used_what_that_cost() -> None:
    stage = Stage(answer(GOOD), schema=SCHEMA)
    is_checked, may_end = threading.Event(), threading.Event()
    check = AnswerSchema.check

    def held(schema: AnswerSchema, text: str) -> AnswerRefused | None:
        is_checked.set()
        may_end.wait(10)
        return check(schema, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnswerSchema, "check", held)
        running = asyncio.create_task(stage.loop.run(START))
        await asyncio.to_thread(is_checked.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        may_end.set()
    assert told(stage) == [("failed", USAGE)]
