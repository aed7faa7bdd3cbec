"""Answers of Ollama as its documentation and its users show them, over real HTTP with either transport."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.model_answers import Answer, failure, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import KEY, events_of

from lanewayd.clock import SystemClock
from lanewayd.messages import Reasoning, StopReason, Text, ToolCall, Usage, UserMessage
from lanewayd.providers.http_provider import HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, ReasoningDelta, TextDelta
from lanewayd.providers.ollama.dialect import Ollama

FIXTURES = Path(__file__).parent / "fixtures" / "ollama"
REQUEST = ModelRequest("qwen3:8b", "be brief", (UserMessage("hello"),))
TYPE = {"content-type": "application/x-ndjson"}


@pytest.fixture
async def provider(server: ModelServer, transport_kind: TransportKind) -> AsyncIterator[HttpProvider]:
    made = HttpProvider(
        service=HttpService("ollama", server.base_url.removesuffix("/v1")),
        dialect=Ollama(new_call_id=lambda: "call_made_up"),
        clock=SystemClock(),
        api_key=KEY,
        transport=make_transport(transport_kind),
    )
    yield made
    await made.close()


def answer(name: str) -> Answer:
    return wire((FIXTURES / name).read_bytes(), headers=TYPE)


async def message_of(provider: HttpProvider) -> Done:
    last = (await events_of(provider, REQUEST))[-1]
    assert isinstance(last, Done), last
    return last


async def test_thinking_text_and_usage(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("thinking_and_text.ndjson"))
    events = await events_of(provider, REQUEST)
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["The user", " greets me."]
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "Hello",
        "! How can I help? \U0001fa90",
    ]
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message.content == (
        Reasoning("The user greets me.", "thinking"),
        Text("Hello! How can I help? \U0001fa90"),
    )
    assert done.message.usage == Usage(26, 282)
    (request,) = server.requests
    assert request.path == "/api/chat"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert "ndjson" in request.headers["accept"]


async def test_each_byte_by_itself_is_the_same_answer(server: ModelServer, provider: HttpProvider) -> None:
    body = (FIXTURES / "parallel_calls.ndjson").read_bytes()
    server.answer(wire(body, headers=TYPE), Answer([body[at : at + 1] for at in range(len(body))], headers=TYPE))
    whole, torn = await message_of(provider), await message_of(provider)
    assert torn == whole
    assert whole.message.stop_reason is StopReason.TOOL_USE
    assert whole.message.tool_calls == (
        ToolCall("call_8nq2hx1v", "weather", '{"city": "Paris", "days": 2}'),
        ToolCall("call_b0f4k2mz", "weather", '{"city": "Zürich"}'),
    )


async def test_an_answer_cut_by_its_length(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("cut_by_length.ndjson"))
    assert (await message_of(provider)).message.stop_reason is StopReason.LENGTH


async def test_a_runner_that_stops_within_the_answer(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("runner_stopped.ndjson"))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.is_transient, failed.partial.text) == ("PROVIDER_UNAVAILABLE", True, "Once")
    assert "model runner has unexpectedly stopped" in failed.error.message


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [
        (404, "unknown_model.json", "PROVIDER_MODEL_NOT_FOUND"),
        (400, "no_tools.json", "PROVIDER_REQUEST_REJECTED"),
    ],
)
async def test_a_refused_request(
    server: ModelServer, provider: HttpProvider, status: int, name: str, reason: str
) -> None:
    server.answer(failure(status, (FIXTURES / name).read_bytes()))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.error.http_status, failed.is_transient) == (reason, status, False)
