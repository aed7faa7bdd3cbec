"""Streams and connections of the HTTP provider, with both transports: in time, used again, never leaked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx
import pytest
from tests.fakes.model_answers import DONE, Answer, delta, gzipped, text_answer, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import (
    REQUEST,
    MakeProvider,
    collect,
    events_of,
    failure_of,
    text_of,
)

from lanewayd.clock import SystemClock
from lanewayd.providers.http_provider import HttpProvider, HttpService
from lanewayd.providers.interface import Done, TextDelta
from lanewayd.providers.openai_chat.dialect import OpenAIChat


async def test_a_compressed_answer_streams_byte_by_byte(server: ModelServer, make_provider: MakeProvider) -> None:
    held = asyncio.Event()
    server.answer(gzipped([delta(content="\u2705 ok"), held, delta("stop"), DONE]))
    provider = make_provider(server.base_url)
    async with aclosing(provider.stream(REQUEST)) as events:
        assert await anext(events) == TextDelta(0, "\u2705 ok")
        held.set()
        rest = await collect(events)
    assert isinstance(rest[-1], Done)


async def test_connections_are_used_again(server: ModelServer, make_provider: MakeProvider) -> None:
    provider = make_provider(server.base_url)
    for _ in range(5):
        assert text_of(await events_of(provider)) == "ok"
    assert server.connections_made == 1


async def test_after_200_aborted_calls_the_next_one_is_normal(server: ModelServer, make_provider: MakeProvider) -> None:
    provider = make_provider(server.base_url)

    async def abandon(by_cancel: bool) -> None:
        started = asyncio.Event()

        async def consume() -> None:
            async with aclosing(provider.stream(REQUEST)) as events:
                async for _ in events:
                    started.set()
                    if not by_cancel:
                        return

        consuming = asyncio.ensure_future(consume())
        await started.wait()
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)

    for number in range(200):
        server.answer(Answer([delta(content="x"), asyncio.Event()]))
        await abandon(by_cancel=number % 2 == 0)
    assert text_of(await events_of(provider)) == "ok"
    await server.connections_at_most(1)


async def test_a_call_cancelled_before_its_headers_leaves_nothing_behind(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    provider = make_provider(server.base_url)
    server.answer(*[Answer(before=asyncio.Event()) for _ in range(20)])
    calls = [asyncio.ensure_future(events_of(provider)) for _ in range(20)]
    await server.received(20)
    for call in calls:
        call.cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    await server.connections_at_most(0)
    assert text_of(await events_of(provider)) == "ok"


async def test_many_calls_run_at_once(server: ModelServer, make_provider: MakeProvider) -> None:
    """More than the 100 connections that the libraries allow by themselves."""
    provider = make_provider(server.base_url)
    gate = asyncio.Event()
    server.answer(*[Answer([delta(content="x"), gate, delta("stop"), DONE]) for _ in range(120)])
    calls = [asyncio.ensure_future(events_of(provider)) for _ in range(120)]
    await server.received(120)
    gate.set()
    assert {text_of(events) for events in await asyncio.gather(*calls)} == {"x"}


async def test_a_buffered_burst_lets_other_work_run(server: ModelServer, make_provider: MakeProvider) -> None:
    server.answer(wire(b"".join([delta(content="x") for _ in range(200)]) + delta("stop") + DONE))
    provider = make_provider(server.base_url)
    turns = 0
    most_between = 0
    since = 0
    is_over = False

    async def other_work() -> None:
        nonlocal turns, since
        while not is_over:
            turns += 1
            since = 0
            await asyncio.sleep(0)

    working = asyncio.ensure_future(other_work())
    async with aclosing(provider.stream(REQUEST)) as events:
        async for _ in events:
            since += 1
            most_between = max(most_between, since)
    is_over = True
    await working
    assert most_between <= 8


async def test_an_unused_provider_closes_and_a_closed_one_fails_its_calls(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    provider = make_provider(server.base_url)
    await provider.close()
    await provider.close()
    assert (await failure_of(provider)).error.reason == "PROVIDER_UNREACHABLE"


async def test_the_answer_text_is_exactly_what_was_sent(server: ModelServer, make_provider: MakeProvider) -> None:
    server.answer(text_answer("Hél", "lo ", "\U0001f600", usage=(11, 2)))
    events = await events_of(make_provider(server.base_url))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message.text == text_of(events) == "Hél" + "lo " + "\U0001f600"
    assert (done.message.usage.input_tokens, done.message.usage.output_tokens) == (11, 2)


@pytest.mark.parametrize("base_url", ["ftp://x/v1", "not a url", "http://", ""])
def test_a_base_url_that_is_no_http_address_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url of provider acme"):
        HttpService("acme", base_url)


class HeldClosing(httpx.AsyncBaseTransport, httpx.AsyncByteStream):
    """A transport whose one answer never goes on, and takes until `let_go` to be closed."""

    def __init__(self) -> None:
        self.reading = asyncio.Event()
        self.closing = asyncio.Event()
        self.let_go = asyncio.Event()
        self.is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=self, request=request)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield delta(content="x")
        self.reading.set()
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closing.set()
        await self.let_go.wait()
        self.is_closed = True


async def test_a_connection_is_given_back_although_its_call_is_cancelled_again_meanwhile() -> None:
    """A close that is broken off leaves the connection in the pool of the stock transport, in use for ever."""
    transport = HeldClosing()
    provider = HttpProvider(
        service=HttpService("acme", "http://localhost/v1"),
        dialect=OpenAIChat(new_call_id=lambda: "call_made_up"),
        clock=SystemClock(),
        transport=transport,
    )
    call = asyncio.ensure_future(events_of(provider))
    await transport.reading.wait()
    call.cancel()
    await transport.closing.wait()
    call.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not call.done()
    transport.let_go.set()
    await asyncio.wait({call})
    assert (call.cancelled(), transport.is_closed) == (True, True)
    await provider.close()
