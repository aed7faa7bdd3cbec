"""Fixtures of the provider tests: a model server, and providers on either transport that talk to it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from tests.fakes.model_server import ModelServer
from tests.providers.calling import KEY, MakeProvider

from lanewayd.clock import Clock, SystemClock
from lanewayd.providers.http_provider import ApiKey, HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.openai_chat.dialect import OpenAIChat


@pytest.fixture(params=["aiohttp", "httpx"])
def transport_kind(request: pytest.FixtureRequest) -> TransportKind:
    kind: TransportKind = request.param
    return kind


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as model_server:
        yield model_server


@pytest.fixture
async def make_provider(transport_kind: TransportKind) -> AsyncIterator[MakeProvider]:
    made: list[HttpProvider] = []

    def make(
        base_url: str,
        *,
        clock: Clock | None = None,
        api_key: ApiKey = KEY,
        secrets: Callable[[], Sequence[str]] = tuple,
        **settings: Any,
    ) -> HttpProvider:
        provider = HttpProvider(
            service=HttpService("acme", base_url, **settings),
            dialect=OpenAIChat(new_call_id=lambda: "call_made_up"),
            clock=clock or SystemClock(),
            api_key=api_key,
            secrets=secrets,
            transport=make_transport(transport_kind),
        )
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.close()
