"""Answers of Anthropic as its documentation shows them, over real HTTP with either transport."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer, event, failure, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import KEY, events_of, text_of

from lanewayd.clock import SystemClock
from lanewayd.messages import AssistantMessage, Reasoning, StopReason, Text, ToolCall, Usage, UserMessage
from lanewayd.providers.anthropic.answer import REDACTED, REDACTED_TEXT, THINKING
from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.http_provider import HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, ReasoningDelta, TextDelta

FIXTURES = Path(__file__).parent / "fixtures" / "anthropic"
REQUEST = ModelRequest("claude-sonnet-4-6", "be brief", (UserMessage("hello"),))


@pytest.fixture
async def provider(server: ModelServer, transport_kind: TransportKind) -> AsyncIterator[HttpProvider]:
    made = HttpProvider(
        service=HttpService("anthropic", server.base_url.removesuffix("/v1")),
        dialect=AnthropicMessages(new_call_id=lambda: "call_made_up", needs_end_mark=True),
        clock=SystemClock(),
        api_key=KEY,
        transport=make_transport(transport_kind),
    )
    yield made
    await made.close()


def answer(name: str) -> Answer:
    return wire((FIXTURES / name).read_bytes())


async def test_text_and_usage_with_the_cache(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("text.sse"))
    events = await events_of(provider, REQUEST)
    assert [each.text for each in events if isinstance(each, TextDelta)] == [
        "Jupiter",
        " is the larger one: about 318 Earths. \U0001fa90",
    ]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.message.stop_reason, done.message.provider_stop) == (StopReason.STOP, "end_turn")
    assert done.message.usage == Usage(25, 18, 1824, 312)
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers


async def test_signed_thoughts_and_parallel_calls(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("thinking_and_calls.sse"))
    events = await events_of(provider, REQUEST)
    assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == (
        "Both cities are asked for.\nI call the tool twice." + REDACTED_TEXT
    )
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message.stop_reason is StopReason.TOOL_USE
    thought, hidden, text, first, second = done.message.content
    assert isinstance(thought, Reasoning)
    assert (thought.field, thought.signature[:8], thought.signature[-8:]) == (THINKING, "EqQBCgIY", "LqIG/w==")
    assert isinstance(hidden, Reasoning)
    assert (hidden.field, hidden.signature[:8]) == (REDACTED, "EmwKAhgB")
    assert text == Text("Okay, let's check the weather in both:")
    place = '{"location": "San Francisco, CA", "unit": "celsius"}'
    assert first == ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", place)
    assert second == ToolCall("toolu_01A09q90qw90lq917835lq9", "get_weather", '{"location": "Zürich"}')


async def test_what_the_service_searched_by_itself_is_left_out(server: ModelServer, provider: HttpProvider) -> None:
    server.answer(answer("web_search.sse"))
    done = (await events_of(provider, REQUEST))[-1]
    assert isinstance(done, Done)
    assert done.message.content == (Text("I'll check."), Text("It is 72 °F."))
    assert done.message.usage == Usage(10682, 510)


@pytest.mark.parametrize(
    ("name", "reason", "shown", "is_transient"),
    [
        ("overloaded.sse", "PROVIDER_UNAVAILABLE", "Jupi", True),
        ("refusal.sse", "PROVIDER_REFUSED", "First you", False),
    ],
)
async def test_a_stream_may_fail_after_its_begin(
    server: ModelServer, provider: HttpProvider, name: str, reason: str, shown: str, is_transient: bool
) -> None:
    server.answer(answer(name))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.is_transient) == (reason, is_transient)
    assert failed.partial.text == shown


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [
        (401, "bad_key.json", "PROVIDER_AUTH"),
        (404, "unknown_model.json", "PROVIDER_MODEL_NOT_FOUND"),
        (400, "too_long.json", "CONTEXT_OVERFLOW"),
        (413, "too_large.json", "CONTEXT_OVERFLOW"),
        (400, "no_credit.json", "PROVIDER_BILLING"),
        (400, "bad_turns.json", "PROVIDER_REQUEST_REJECTED"),
        (429, "rate_limit.json", "PROVIDER_RATE_LIMITED"),
        (529, "overloaded.json", "PROVIDER_UNAVAILABLE"),
    ],
)
async def test_errors_of_the_service_are_told_apart(
    server: ModelServer, provider: HttpProvider, status: int, name: str, reason: str
) -> None:
    server.answer(failure(status, (FIXTURES / name).read_bytes(), {"retry-after": "7"}))
    failed = (await events_of(provider, REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.error.http_status) == (reason, status)
    assert failed.is_transient == (status in (429, 529))
    assert failed.retry_after_s == 7
    assert KEY not in repr(failed)


SIGNED = AssistantMessage((Reasoning("a", THINKING, "s"), Text("b")), "anthropic", "claude-sonnet-4-6", StopReason.STOP)


async def test_rejected_signatures_are_left_out_of_one_more_request(
    server: ModelServer, provider: HttpProvider
) -> None:
    rejection = failure(400, (FIXTURES / "bad_signature.json").read_bytes())
    request = replace(REQUEST, messages=(UserMessage("x"), SIGNED, UserMessage("y")))
    server.answer(rejection, LANGUAGES["anthropic"].text("ok"))
    assert text_of(await events_of(provider, request)) == "ok"
    with_thought, without = (sent.messages[1]["content"] for sent in server.requests)
    assert [block["type"] for block in with_thought] == ["thinking", "text"]
    assert [block["type"] for block in without] == ["text"]

    # Once: what is rejected without them too stands, and so does any other rejection.
    server.answer(rejection, rejection)
    failed = (await events_of(provider, request))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.error.http_status) == ("PROVIDER_REQUEST_REJECTED", 400)
    assert len(server.requests) == 4
    server.answer(failure(400, (FIXTURES / "bad_turns.json").read_bytes()))
    assert isinstance((await events_of(provider, request))[-1], Failed)
    server.answer(rejection)
    assert isinstance((await events_of(provider, REQUEST))[-1], Failed)
    assert len(server.requests) == 6


async def test_a_call_that_is_given_up_leaves_the_others_alone(server: ModelServer, provider: HttpProvider) -> None:
    """200 are given up while another goes on; then one more is as good as the first."""
    begin, *rest = LANGUAGES["anthropic"].text("fine").steps
    piece = event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "x"})
    held = asyncio.Event()
    server.answer(Answer([begin, piece, held, *rest]))
    async with aclosing(provider.stream(REQUEST)) as lasting:
        assert await anext(lasting) == TextDelta(0, "x")
        for number in range(200):
            server.answer(Answer([begin, piece, asyncio.Event()]))
            calling = asyncio.ensure_future(_first_of(provider))
            if number % 2:
                await calling
            else:
                await server.received(number + 2)
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)
        held.set()
        events = [each async for each in lasting]
    assert isinstance(events[-1], Done)
    assert text_of(events) == "fine"
    server.answer(LANGUAGES["anthropic"].text("ok"))
    assert text_of(await events_of(provider, REQUEST)) == "ok"


async def _first_of(provider: HttpProvider) -> None:
    async with aclosing(provider.stream(REQUEST)) as events:
        await anext(events)
