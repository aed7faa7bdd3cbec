"""Answers of Gemini as its documentation and its users show them, over real HTTP with either transport."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.model_answers import Answer, failure, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import KEY, events_of

from lanewayd.clock import SystemClock
from lanewayd.messages import Reasoning, StopReason, Text, ToolCall, Usage, UserMessage
from lanewayd.providers.endpoint import address
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.http_provider import HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, ReasoningDelta, TextDelta
from lanewayd.providers.model_list import ModelList, ask_for_models

FIXTURES = Path(__file__).parent / "fixtures" / "gemini"
REQUEST = ModelRequest("gemini-3.8-flash", "be brief", (UserMessage("hello"),))


@pytest.fixture
async def provider(server: ModelServer, transport_kind: TransportKind) -> AsyncIterator[HttpProvider]:
    base_url = server.base_url.removesuffix("/v1")
    made = HttpProvider(
        service=HttpService("gemini", base_url),
        dialect=Gemini(new_call_id=lambda: "call_made_up"),
        clock=SystemClock(),
        api_key=KEY,
        transport=make_transport(transport_kind),
    )
    yield made
    await made.close()


def answer(name: str) -> Answer:
    return wire((FIXTURES / name).read_bytes())


async def test_thoughts_text_signature_and_usage(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("thoughts_and_text.sse"))
    events = await events_of(provider, REQUEST)
    thoughts = [event.text for event in events if isinstance(event, ReasoningDelta)]
    assert [thought.split("\n")[0] for thought in thoughts] == ["**Comparing the two**", "**Answering**"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "The larger of the two",
        " is Jupiter: about 318 Earths. \U0001fa90",
    ]
    done = events[-1]
    assert isinstance(done, Done)
    reasoning, text = done.message.content
    assert isinstance(reasoning, Reasoning)
    assert isinstance(text, Text)
    assert text.signature.startswith("EpwC")
    assert done.message.usage == Usage(48, 158, 64, 0, 140)
    (request,) = server.requests
    assert request.path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers


async def test_parallel_calls_keep_the_ids_of_the_service(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("parallel_calls.sse"))
    done = (await events_of(provider, REQUEST))[-1]
    assert isinstance(done, Done)
    assert done.message.stop_reason is StopReason.TOOL_USE
    first, second = done.message.content
    assert isinstance(first, ToolCall)
    assert (first.call_id, first.name, first.arguments_json) == ("k3v0q8zt", "weather", '{"city": "Paris", "days": 2}')
    assert first.signature.startswith("CiQB")
    assert second == ToolCall("w9m1x2bd", "weather", '{"city": "London", "days": 2}')


@pytest.mark.parametrize(
    ("name", "words", "shown"),
    [("stopped_by_the_filter.sse", "SAFETY", "First you take"), ("blocked_prompt.sse", "prompt was blocked", "")],
)
async def test_what_the_filters_stop_is_refused(
    server: ModelServer, provider: HttpProvider, name: str, words: str, shown: str
) -> None:
    server.answer(answer(name))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.partial.text) == ("PROVIDER_REFUSED", shown)
    assert words in failed.error.message


async def test_the_list_of_models_is_asked_for_with_the_key(server: ModelServer) -> None:
    server.listing = wire('{"models":[{"name":"models/gemini-3.8-flash","inputTokenLimit":1048576}]}')
    dialect = Gemini(new_call_id=lambda: "call_made_up")
    listed = await ask_for_models(
        address(server.base_url.removesuffix("/v1"), dialect.models_path),
        headers=dialect.headers(KEY),
        api_key=KEY,
        transport=make_transport("aiohttp"),
        limit_s=20.0,
        now=SystemClock().now(),
    )
    assert listed == ModelList(None, 200, frozenset({"gemini-3.8-flash"}))
    (request,) = server.requests
    assert request.path == "/v1beta/models?pageSize=1000"
    assert request.headers["x-goog-api-key"] == KEY


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [
        (400, "bad_key.json", "PROVIDER_AUTH"),
        (400, "too_long.json", "CONTEXT_OVERFLOW"),
        (404, "unknown_model.json", "PROVIDER_MODEL_NOT_FOUND"),
        (429, "rate_limit.json", "PROVIDER_RATE_LIMITED"),
    ],
)
async def test_errors_of_the_service_are_told_apart(
    server: ModelServer, provider: HttpProvider, status: int, name: str, reason: str
) -> None:
    server.answer(failure(status, (FIXTURES / name).read_bytes()))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.error.http_status) == (reason, status)
    assert KEY not in repr(failed)
    if reason == "PROVIDER_RATE_LIMITED":
        assert failed.is_transient
        assert failed.retry_after_s == pytest.approx(21.9, abs=0.1)


@pytest.mark.parametrize("model", ["../../other/x", "models/../../../other/x", "./x", "x/..", "a//b", "/x"])
async def test_no_name_of_a_model_leads_out_of_what_the_key_is_for(
    server: ModelServer, provider: HttpProvider, model: str
) -> None:
    server.answer(failure(404))
    await events_of(provider, replace(REQUEST, model=model))
    [request] = server.requests
    name = model.replace("/", "%2F")
    assert request.path == f"/v1beta/models/{name}:streamGenerateContent?alt=sse"
