"""Responses as OpenAI's documentation shows them, over real HTTP with either transport."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.model_answers import Answer, failure, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import KEY, events_of

from lanewayd.clock import SystemClock
from lanewayd.messages import Reasoning, StopReason, Text, ToolCall, ToolResultMessage, Usage, UserMessage
from lanewayd.providers.http_provider import HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, ReasoningDelta, TextDelta
from lanewayd.providers.openai_responses.dialect import OpenAIResponses

FIXTURES = Path(__file__).parent / "fixtures" / "openai_responses"
REQUEST = ModelRequest("gpt-5.2", "be brief", (UserMessage("hello"),))


@pytest.fixture
async def provider(server: ModelServer, transport_kind: TransportKind) -> AsyncIterator[HttpProvider]:
    made = HttpProvider(
        service=HttpService("openai", server.base_url),
        dialect=OpenAIResponses(provider="openai", new_call_id=lambda: "call_made_up"),
        clock=SystemClock(),
        api_key=KEY,
        transport=make_transport(transport_kind),
    )
    yield made
    await made.close()


def answer(name: str) -> Answer:
    return wire((FIXTURES / name).read_bytes())


async def message_of(provider: HttpProvider, request: ModelRequest = REQUEST) -> Done:
    last = (await events_of(provider, request))[-1]
    assert isinstance(last, Done), last
    return last


async def test_reasoning_text_and_usage(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("reasoning_and_text.sse"))
    events = await events_of(provider, REQUEST)
    thoughts = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert thoughts == "**Comparing planets**\n\nJupiter is larger."
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "Jupiter",
        " is the larger one: about 318 Earths. \U0001fa90",
    ]
    done = events[-1]
    assert isinstance(done, Done)
    reasoning, text = done.message.content
    assert isinstance(reasoning, Reasoning)
    assert isinstance(text, Text)
    assert json.loads(reasoning.signature)["encrypted_content"].startswith("gAAAA")
    assert (done.message.stop_reason, done.message.usage) == (StopReason.STOP, Usage(274, 91, 768, 0, 64))
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_an_answer_with_calls_goes_back_as_it_came(server: ModelServer, provider: HttpProvider) -> None:
    body = (FIXTURES / "commentary_and_parallel_calls.sse").read_bytes()
    server.answer(wire(body), Answer([body[at : at + 7] for at in range(0, len(body), 7)]))
    whole, torn = await message_of(provider), await message_of(provider)
    assert torn == whole
    message = whole.message
    assert [type(block) for block in message.content] == [Reasoning, Text, ToolCall, ToolCall]
    assert [(call.call_id, call.arguments_json) for call in message.tool_calls] == [
        ("call_Xq1", '{"city":"Paris","days":2}'),
        ("call_Yr2", '{"city":"Zürich"}'),
    ]
    results = tuple(ToolResultMessage(call.call_id, call.name, "sunny") for call in message.tool_calls)
    server.answer(answer("reasoning_and_text.sse"))
    await message_of(provider, ModelRequest("gpt-5.2", "", (*REQUEST.messages, message, *results)))
    sent = server.requests[-1].json["input"]
    last = json.loads(body.split(b"\n\n")[-2].split(b"data: ")[1])["response"]["output"]
    for given, listed in zip(sent[1:5], last, strict=True):
        assert {name: given[name] for name in ("type", "id")} == {name: listed[name] for name in ("type", "id")}
        for name in ("encrypted_content", "phase", "call_id", "name", "arguments"):
            assert given.get(name) == listed.get(name)
    assert [item["call_id"] for item in sent[5:]] == ["call_Xq1", "call_Yr2"]


async def test_an_answer_cut_by_its_length_has_no_calls(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("cut_by_length.sse"))
    message = (await message_of(provider)).message
    assert (message.stop_reason, message.text, message.tool_calls) == (StopReason.LENGTH, "Once upon", ())


async def test_a_response_that_fails_within_the_stream(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("failed_within.sse"))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.is_transient, failed.partial.text) == ("PROVIDER_UNAVAILABLE", True, "Once")
    assert "failed to generate a response" in failed.error.message


async def test_reasoning_that_cannot_be_read_again_is_left_out_once(
    server: ModelServer, provider: HttpProvider
) -> None:
    server.answer(answer("commentary_and_parallel_calls.sse"))
    message = (await message_of(provider)).message
    results = tuple(ToolResultMessage(call.call_id, call.name, "sunny") for call in message.tool_calls)
    rejected = failure(400, (FIXTURES / "bad_encrypted_content.json").read_bytes())
    server.answer(rejected, answer("reasoning_and_text.sse"))
    await message_of(provider, ModelRequest("gpt-5.2", "", (*REQUEST.messages, message, *results)))
    first, second = (request.json["input"] for request in server.requests[1:])
    assert [item["type"] for item in first[1:3]] == ["reasoning", "message"]
    assert [item["type"] for item in second[1:3]] == ["message", "function_call"]
    assert not [item for item in second if "id" in item]


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [(401, "bad_key.json", "PROVIDER_AUTH"), (400, "too_long.json", "CONTEXT_OVERFLOW")],
)
async def test_a_refused_request(
    server: ModelServer, provider: HttpProvider, status: int, name: str, reason: str
) -> None:
    server.answer(failure(status, (FIXTURES / name).read_bytes()))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.error.http_status, failed.is_transient) == (reason, status, False)
    assert KEY not in repr(failed)
