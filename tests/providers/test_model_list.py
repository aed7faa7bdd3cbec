"""What asking a model service for its models tells, over real HTTP."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from tests.fakes.model_answers import Answer, failure, wire
from tests.fakes.model_server import ModelServer

from lanewayd.errors import ErrorCode
from lanewayd.providers.endpoint import bearer
from lanewayd.providers.http_provider import make_transport
from lanewayd.providers.model_list import ModelList, ask_for_models

KEY = "secret-key-0123456789"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def ask(model: ModelServer, *, limit_s: float = 20.0) -> ModelList:
    url = f"{model.base_url}/models"
    transport = make_transport("aiohttp")
    return await ask_for_models(url, headers=bearer(KEY), api_key=KEY, transport=transport, limit_s=limit_s, now=NOW)


async def test_the_names_of_the_models_come_back_and_the_key_is_sent(model: ModelServer) -> None:
    model.listing = wire(json.dumps({"data": [{"id": "a"}, {"id": "b"}, {"id": 3}, "c"]}))
    assert await ask(model) == ModelList(None, 200, frozenset({"a", "b"}))
    [request] = model.requests
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_lists_of_other_families_are_read_too(model: ModelServer) -> None:
    names = [{"name": "models/gemini-x"}, {"name": "llama3:8b"}, {"name": "qwen3:latest"}]
    model.listing = wire(json.dumps({"models": names}))
    assert await ask(model) == ModelList(None, 200, frozenset({"gemini-x", "llama3:8b", "qwen3:latest", "qwen3"}))


async def test_another_kind_of_json_is_an_answer_without_names(model: ModelServer) -> None:
    model.listing = wire('{"data": {"label": "my key"}}')
    assert await ask(model) == ModelList(None, 200, None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (failure(401, {"error": {"message": f"no such key: {KEY}"}}), ErrorCode.PROVIDER_AUTH),
        (failure(403), ErrorCode.PROVIDER_AUTH),
        (failure(404, b"not found"), ErrorCode.PROVIDER_MODEL_NOT_FOUND),
        (failure(405), ErrorCode.PROVIDER_MODEL_NOT_FOUND),
        (failure(429), ErrorCode.PROVIDER_RATE_LIMITED),
        (failure(503), ErrorCode.PROVIDER_UNAVAILABLE),
        (wire("<html><title>Welcome</title></html>"), ErrorCode.PROVIDER_BAD_RESPONSE),
    ],
)
async def test_what_is_no_list_has_a_reason_and_shows_no_key(
    model: ModelServer, answer: Answer, reason: ErrorCode
) -> None:
    model.listing = answer
    listed = await ask(model)
    assert listed.fault is not None
    assert (listed.fault.reason, listed.http_status) == (reason, answer.status)
    assert KEY not in listed.fault.said


async def test_a_service_that_says_nothing_is_given_up(model: ModelServer) -> None:
    model.listing = Answer(before=asyncio.Event())
    listed = await ask(model, limit_s=0.1)
    assert listed.fault is not None
    assert listed.fault.reason is ErrorCode.PROVIDER_STALLED
