"""The provider over a process that the tests own: what is asked, what is shown, what is counted, what is given up."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import Answer, delta, failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.providers.calling import CountingClock
from tests.unit.providers.local.engines import HEAD, REFUSES, UNTIL_STDIN_ENDS, command

from lanewayd.messages import StopReason, ToolSpec, UserMessage
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent, TextDelta
from lanewayd.providers.local.dialect import EMBEDDED_MANNERS, OTHER_MANNERS, LocalChat, LocalManners
from lanewayd.providers.local.provider import LocalProvider, LocalService
from lanewayd.providers.local.supervisor import ModelSupervisor

EXEC = ToolSpec("exec", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
PLAIN = ModelRequest("small", "be brief", (UserMessage("hello"),), (EXEC,))
NAMED = ModelRequest("small", "be brief", (UserMessage("use exec: date"),), (EXEC,))
NO_TOOL = '{"tool": "none", "arguments": {}}'


class Stage:
    """A provider whose process says that it serves where the model server does."""

    def __init__(self, model: ModelServer, *, manners: LocalManners = EMBEDDED_MANNERS, program: str = "") -> None:
        port = model.port
        serves = f'{HEAD}print(json.dumps({{"port": {port}}}), flush=True)\n{UNTIL_STDIN_ENDS}'
        self.clock: FakeClock = CountingClock()
        self.supervisor = ModelSupervisor(lambda: command(program or serves), clock=self.clock)
        self.provider = LocalProvider(
            LocalService("small", "secret-key", timeout_s=5),
            supervisor=self.supervisor,
            dialect=LocalChat(manners, new_call_id=lambda: "call_new"),
            clock=self.clock,
            new_call_id=lambda: "call_new",
        )

    async def events(self, request: ModelRequest = PLAIN) -> list[StreamEvent]:
        async with aclosing(self.provider.stream(request)) as events:
            return [event async for event in events]

    async def outcome(self, request: ModelRequest = PLAIN) -> StreamEvent:
        return (await self.events(request))[-1]


@pytest.fixture
async def stage(model: ModelServer) -> AsyncIterator[Stage]:
    stage = Stage(model)
    yield stage
    await stage.provider.close()


@pytest.fixture
async def choosing(model: ModelServer) -> AsyncIterator[Stage]:
    stage = Stage(model, manners=OTHER_MANNERS)
    yield stage
    await stage.provider.close()


async def test_text_comes_as_it_is_said_with_the_key_of_the_endpoint(stage: Stage, model: ModelServer) -> None:
    model.answer(text_answer("Hel", "lo"))
    events = await stage.events()
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.message.text, done.message.provider, done.message.model) == ("Hello", "local", "small")
    assert (done.message.usage.input_tokens, done.message.usage.output_tokens) == (3, 2)
    assert model.requests[0].headers["authorization"] == "Bearer secret-key"


async def test_an_answer_in_json_becomes_a_call_and_is_not_shown(stage: Stage, model: ModelServer) -> None:
    model.answer(text_answer('{"tool": "exec",', ' "arguments": {"command": "date"}}'))
    [done] = await stage.events(NAMED)
    assert isinstance(done, Done)
    [call] = done.message.tool_calls
    assert (call.call_id, call.name, json.loads(call.arguments_json)) == ("call_new", "exec", {"command": "date"})
    assert done.message.stop_reason is StopReason.TOOL_USE
    assert done.message.text == ""
    assert done.message.usage.input_tokens == 3
    assert "response_format" in json.loads(model.requests[0].body)


async def test_after_none_text_is_asked_for_and_both_are_counted(choosing: Stage, model: ModelServer) -> None:
    model.answer(text_answer(NO_TOOL, usage=(100, 7)))
    model.answer(text_answer("Hello", usage=(20, 5)))
    events = await choosing.events()
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello"]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.message.usage.input_tokens, done.message.usage.output_tokens) == (120, 12)
    assert ["response_format" in json.loads(request.body) for request in model.requests] == [True, False]


async def test_a_failed_question_fails_the_call_without_its_words(choosing: Stage, model: ModelServer) -> None:
    model.answer(Answer([delta(content='{"tool"')]))
    failed = await choosing.outcome()
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_STREAM_CUT"
    assert failed.partial.content == ()
    assert failed.is_transient


async def test_a_failed_text_counts_the_question_too(choosing: Stage, model: ModelServer) -> None:
    model.answer(text_answer(NO_TOOL, usage=(100, 7)))
    model.answer(failure(500, {"error": {"message": "out of memory"}}))
    failed = await choosing.outcome()
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_UNAVAILABLE"
    assert failed.partial.usage.input_tokens == 100


async def test_a_conversation_that_is_too_long_is_told_as_such(stage: Stage, model: ModelServer) -> None:
    said = "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"
    model.answer(failure(400, {"error": {"code": 400, "message": said, "type": "exceed_context_size_error"}}))
    failed = await stage.outcome()
    assert isinstance(failed, Failed)
    assert failed.error.reason == "CONTEXT_OVERFLOW"


async def test_another_model_than_the_one_that_is_here_is_not_answered_by_it(stage: Stage, model: ModelServer) -> None:
    failed = await stage.outcome(ModelRequest("large", "", (UserMessage("hi"),)))
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_MODEL_NOT_FOUND"
    assert stage.supervisor.pid is None
    assert not model.requests


async def test_a_process_that_does_not_start_fails_the_call_for_good(model: ModelServer) -> None:
    stage = Stage(model, program=REFUSES)
    failed = await stage.outcome()
    await stage.provider.close()
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_UNAVAILABLE"
    assert "no such architecture" in failed.error.message
    assert not failed.is_transient


async def test_a_process_that_answers_nobody_is_replaced(stage: Stage, model: ModelServer) -> None:
    model.answer(Answer([delta(content="Hel"), asyncio.Event()]))
    async with aclosing(stage.provider.stream(PLAIN)) as events:
        assert isinstance(await anext(events), TextDelta)
        former_pid = stage.supervisor.pid
        waiting = asyncio.ensure_future(anext(events))
        await stage.clock.wait_for_timers(1)
        await stage.clock.advance(6)
        failed = await waiting
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_STALLED"
    await stage.clock.wait_for_sleepers(1)  # its death was seen
    await stage.clock.advance(1)
    model.answer(text_answer("Hello"))
    assert isinstance(await stage.outcome(), Done)
    assert stage.supervisor.pid != former_pid


async def test_a_process_that_is_busy_with_others_is_left_alone(stage: Stage, model: ModelServer) -> None:
    held = asyncio.Event()
    model.answer(Answer([delta(content="Hel"), held]))
    async with aclosing(stage.provider.stream(PLAIN)) as events:
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await stage.clock.wait_for_timers(1)
        await stage.clock.advance(3)
        model.answer(text_answer("Hello"))
        assert isinstance(await stage.outcome(), Done)
        pid = stage.supervisor.pid
        await stage.clock.advance(3)
        assert isinstance(await waiting, Failed)
    model.answer(text_answer("Hello"))
    assert isinstance(await stage.outcome(), Done)
    assert stage.supervisor.pid == pid


async def test_after_a_restart_it_is_asked_on_a_new_connection(stage: Stage, model: ModelServer) -> None:
    await stage.events()
    assert stage.supervisor.pid is not None
    os.kill(stage.supervisor.pid, signal.SIGKILL)
    await stage.clock.wait_for_sleepers(1)
    await stage.clock.advance(1)
    assert isinstance(await stage.outcome(), Done)
    assert model.requests[0].connection is not model.requests[1].connection


async def test_closing_ends_the_process_also_twice(stage: Stage) -> None:
    await stage.events()
    await stage.provider.close()
    assert stage.supervisor.pid is None
    await stage.provider.close()
    failed = await stage.outcome()
    assert isinstance(failed, Failed)
    assert "leaving" in failed.error.message
