"""Every fault of a model service, over real HTTP, with both transports: what the caller is told, and that no key is."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import DONE, Answer, End, ModelServer, delta, failure, gzipped, text_answer, wire

from lanewayd.clock import Clock, SystemClock, TimerHandle
from lanewayd.messages import ToolSpec, UserMessage
from lanewayd.providers.http_provider import ApiKey, HttpProvider, HttpService, TransportKind, make_transport
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent, TextDelta
from lanewayd.providers.openai_chat.dialect import OpenAIChat

KEY = "sk-canary-0123456789abcdef"
REQUEST = ModelRequest("m1", "be brief", (UserMessage("hello"),))
PARTIAL_CALL = delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "rec", "arguments": '{"a":1,"b":"unf'}}])


class CountingClock(FakeClock):
    """Also tells how often a timer was set."""

    def __init__(self) -> None:
        super().__init__()
        self._armed: asyncio.Queue[None] = asyncio.Queue()
        self._seen = 0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        self._armed.put_nowait(None)
        return super().call_later(delay_s, callback)

    async def armed(self, count: int) -> None:
        """Return when a timer was set for the `count`th time."""
        while self._seen < count:
            await self._armed.get()
            self._seen += 1


MakeProvider = Callable[..., HttpProvider]


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

    def make(base_url: str, *, clock: Clock | None = None, api_key: ApiKey = KEY, **settings: Any) -> HttpProvider:
        provider = HttpProvider(
            service=HttpService("acme", base_url, **settings),
            dialect=OpenAIChat(new_call_id=lambda: "call_made_up"),
            clock=clock or SystemClock(),
            api_key=api_key,
            transport=make_transport(transport_kind),
        )
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.close()


async def events_of(provider: HttpProvider, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def failure_of(provider: HttpProvider, request: ModelRequest = REQUEST) -> Failed:
    events = await events_of(provider, request)
    assert [event for event in events if isinstance(event, Done | Failed)] == events[-1:]
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.provider, failed.error.model) == ("acme", "m1")
    assert "acme" in failed.error.message
    assert "m1" in failed.error.message
    assert KEY not in repr(failed)
    assert not failed.partial.tool_calls
    return failed


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def error_body(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("answer", "reason", "is_transient"),
    [
        (failure(400, error_body("messages: unknown role")), "PROVIDER_REQUEST_REJECTED", False),
        (failure(400, error_body("maximum context length is 8192 tokens")), "CONTEXT_OVERFLOW", False),
        (failure(401, error_body(f"Incorrect API key provided: {KEY}")), "PROVIDER_AUTH", False),
        (failure(402, error_body("Insufficient credits")), "PROVIDER_BILLING", False),
        (failure(403, error_body("forbidden")), "PROVIDER_AUTH", False),
        (failure(404, error_body("The model `m1` does not exist")), "PROVIDER_MODEL_NOT_FOUND", False),
        (failure(408), "PROVIDER_STALLED", False),
        (failure(422, error_body("tools.0: field required")), "PROVIDER_REQUEST_REJECTED", False),
        (failure(429, error_body("slow down"), {"retry-after": "2"}), "PROVIDER_RATE_LIMITED", True),
        (failure(429, error_body("slow down"), {"retry-after": "3600"}), "PROVIDER_RATE_LIMITED", False),
        (failure(429, error_body("daily quota reached")), "PROVIDER_RATE_LIMITED", False),
        (failure(500, b"<html><title>Oops</title></html>"), "PROVIDER_UNAVAILABLE", True),
        (failure(503, error_body("overloaded")), "PROVIDER_UNAVAILABLE", True),
        (failure(529), "PROVIDER_UNAVAILABLE", True),
        (failure(302, b"", {"location": "https://elsewhere.example"}), "PROVIDER_BAD_RESPONSE", False),
    ],
)
async def test_an_error_status_is_classified_and_named(
    server: ModelServer, make_provider: MakeProvider, answer: Answer, reason: str, is_transient: bool
) -> None:
    server.answer(answer)
    failed = await failure_of(make_provider(server.base_url))
    assert (failed.error.reason, failed.is_transient) == (reason, is_transient)
    assert failed.error.http_status == answer.status
    assert f"HTTP {answer.status}" in failed.error.message


async def test_the_wait_that_the_server_asks_for_is_passed_on(server: ModelServer, make_provider: MakeProvider) -> None:
    server.answer(failure(429, error_body("x"), {"retry-after": "7"}), failure(503, None, {"retry-after-ms": "1500"}))
    provider = make_provider(server.base_url)
    assert (await failure_of(provider)).retry_after_s == 7
    assert (await failure_of(provider)).retry_after_s == 1.5


@pytest.mark.parametrize(
    ("body", "reason", "is_transient"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, "PROVIDER_UNAVAILABLE", True),
        ({"error": {"code": 401, "message": f"bad key {KEY}"}}, "PROVIDER_AUTH", False),
        ({"error": {"message": "Rate limit: 3 requests per minute"}}, "PROVIDER_RATE_LIMITED", True),
        ({"detail": "what is this"}, "PROVIDER_BAD_RESPONSE", False),
    ],
)
async def test_an_error_body_with_status_200_is_classified_by_the_body(
    server: ModelServer, make_provider: MakeProvider, body: Any, reason: str, is_transient: bool
) -> None:
    server.answer(failure(200, body))
    failed = await failure_of(make_provider(server.base_url))
    assert (failed.error.reason, failed.is_transient, failed.error.http_status) == (reason, is_transient, 200)


async def test_an_error_event_after_text_keeps_the_text_and_is_classified_by_its_body(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    long_text = "x" * 480 + KEY
    server.answer(
        wire(delta(content="Half a ") + b'data: {"error":{"code":502,"message":"%s"}}\n\n' % long_text.encode())
    )
    failed = await failure_of(make_provider(server.base_url))
    assert failed.error.reason == "PROVIDER_UNAVAILABLE"
    assert failed.partial.text == "Half a "
    assert KEY[:8] not in failed.error.message


async def test_a_whole_completion_without_a_stream_is_an_answer(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    message = {"role": "assistant", "content": "all at once"}
    usage = {"prompt_tokens": 4, "completion_tokens": 3}
    server.answer(failure(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}))
    done = (await events_of(make_provider(server.base_url)))[-1]
    assert isinstance(done, Done)
    assert (done.message.text, done.message.usage.input_tokens, done.message.usage.output_tokens) == (
        "all at once",
        4,
        3,
    )


@pytest.mark.parametrize("end", [End.CLOSE, End.CUT, End.RESET])
@pytest.mark.parametrize(
    ("body", "text"), [(b"", ""), (delta(content="Half"), "Half"), (PARTIAL_CALL, ""), (b'data: {"choices":[{"del', "")]
)
async def test_a_cut_stream_is_an_interrupted_attempt(
    server: ModelServer, make_provider: MakeProvider, end: End, body: bytes, text: str
) -> None:
    server.answer(wire(body, end=end))
    failed = await failure_of(make_provider(server.base_url))
    assert failed.error.reason == "PROVIDER_STREAM_CUT"
    assert (failed.is_transient, failed.error.http_status, failed.partial.text) == (True, 200, text)


@pytest.mark.parametrize("end", [End.CLOSE, End.CUT, End.RESET])
async def test_a_cut_after_the_finish_reason_is_a_normal_end(
    server: ModelServer, make_provider: MakeProvider, end: End
) -> None:
    held = asyncio.Event()
    server.answer(Answer([delta(content="fine") + delta("stop"), held], end=end))
    provider = make_provider(server.base_url)
    async with aclosing(provider.stream(REQUEST)) as events:
        assert isinstance(await anext(events), TextDelta)
        held.set()
        rest = [event async for event in events]
    assert isinstance(rest[-1], Done)
    assert rest[-1].message.text == "fine"


@pytest.mark.parametrize(
    "answer",
    [
        wire("<html><body>Gateway login</body></html>"),
        wire("data: {not json}\n\n"),
        wire("data: [1, 2]\n\n"),
        wire(b"\x00\xff\xfe garbage \x80" * 50),
        wire("{broken"),
        Answer([b"not gzip at all"], headers={"content-type": "text/event-stream", "content-encoding": "gzip"}),
    ],
)
async def test_garbage_is_a_bad_response(server: ModelServer, make_provider: MakeProvider, answer: Answer) -> None:
    server.answer(answer)
    failed = await failure_of(make_provider(server.base_url))
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_BAD_RESPONSE", False)


async def test_what_does_not_speak_http_is_a_bad_response(server: ModelServer, make_provider: MakeProvider) -> None:
    server.answer(Answer([b"220 smtp.example ESMTP ready\r\n\r\n"], sends_head=False, end=End.CLOSE))
    assert (await failure_of(make_provider(server.base_url))).error.reason == "PROVIDER_BAD_RESPONSE"


async def test_a_refused_connection_is_unreachable_and_transient(make_provider: MakeProvider) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        failed = await failure_of(make_provider(f"http://127.0.0.1:{unused.getsockname()[1]}/v1"))
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_UNREACHABLE", True)
    assert "refused" in failed.error.message


@pytest.mark.parametrize("end", [End.RESET, End.CLOSE])
async def test_a_reset_before_the_answer_is_unreachable_and_transient(
    server: ModelServer, make_provider: MakeProvider, end: End
) -> None:
    server.answer(Answer(sends_head=False, end=end))
    failed = await failure_of(make_provider(server.base_url))
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_UNREACHABLE", True)
    assert "reset" in failed.error.message or "closed" in failed.error.message


async def test_a_host_that_does_not_resolve_is_unreachable(make_provider: MakeProvider) -> None:
    failed = await failure_of(make_provider("http://no-such-host.invalid/v1"))
    assert failed.error.reason == "PROVIDER_UNREACHABLE"
    assert "resolve" in failed.error.message


async def test_a_port_that_speaks_no_tls_is_unreachable_for_good(make_provider: MakeProvider) -> None:
    def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as plain:
        port = plain.sockets[0].getsockname()[1]
        failed = await failure_of(make_provider(f"https://127.0.0.1:{port}/v1"))
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_UNREACHABLE", False)
    assert "TLS" in failed.error.message


@pytest.mark.parametrize("key", ["sk-with\nnewline-0123", "sk-ümlaut-0123456789", "two words"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(
    server: ModelServer, make_provider: MakeProvider, key: str
) -> None:
    failed = await failure_of(make_provider(server.base_url, api_key=key))
    assert failed.error.reason == "PROVIDER_AUTH"
    assert key not in failed.error.message
    assert not server.requests


async def test_a_key_file_that_cannot_be_read_is_an_auth_failure(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    def read() -> str:
        raise FileNotFoundError(2, "No such file or directory", "/secret/place")

    failed = await failure_of(make_provider(server.base_url, api_key=read))
    assert failed.error.reason == "PROVIDER_AUTH"
    assert "No such file" in failed.error.message


async def test_the_key_is_asked_for_at_each_call_and_sent_as_bearer(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    keys = iter(["first", "second"])
    provider = make_provider(server.base_url, api_key=lambda: next(keys))
    await events_of(provider)
    await events_of(provider)
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer first", "Bearer second"]
    await events_of(make_provider(server.base_url, api_key=None))
    assert "authorization" not in server.requests[-1].headers


async def test_a_stalled_stream_ends_at_the_idle_limit_and_comments_do_not_keep_it_alive(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    comments = [asyncio.Event() for _ in range(3)]
    steps: list[bytes | asyncio.Event | float] = [delta(content="Half")]
    for comment in comments:
        steps += [comment, b": keepalive\n\n"]
    server.answer(Answer([*steps, asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    async with aclosing(provider.stream(REQUEST)) as events:
        assert isinstance(await anext(events), TextDelta)
        rest = asyncio.ensure_future(_collect(events))
        for comment in comments:
            await clock.wait_for_timers(1)
            await clock.advance(0.5)
            comment.set()
        await clock.wait_for_timers(1)
        while not rest.done():
            await clock.advance(0.1)
        failed = (await rest)[-1]
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_STALLED"
    assert failed.partial.text == "Half"
    assert clock.monotonic() <= 2.5
    await server.connections_at_most(0)


async def test_a_slow_but_live_stream_is_never_cut(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = CountingClock()
    gates = [asyncio.Event() for _ in range(6)]
    steps: list[bytes | asyncio.Event | float] = []
    for number, gate in enumerate(gates):
        # Reasoning that is not shown and empty content are progress too.
        steps += [gate, delta(content=f"{number} ") if number % 2 else delta(content="")]
    server.answer(Answer([*steps, delta("stop"), DONE]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    collecting = asyncio.ensure_future(events_of(provider))
    # The first timer is for the headers, the second for the first bytes, the others for those behind each gate.
    await clock.armed(2)
    for number, gate in enumerate(gates):
        await clock.advance(1.5)
        gate.set()
        await clock.armed(3 + number)
    events = await collecting
    assert isinstance(events[-1], Done)
    assert text_of(events) == "1 3 5 "


async def test_the_time_the_consumer_takes_is_not_idle_time(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = FakeClock()
    gate = asyncio.Event()
    server.answer(Answer([delta(content="a"), gate, delta(content="b"), delta("stop"), DONE]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    async with aclosing(provider.stream(REQUEST)) as events:
        await anext(events)
        await clock.advance(3600)
        gate.set()
        rest = await _collect(events)
    assert isinstance(rest[-1], Done)
    assert rest[-1].message.text == "ab"


async def test_no_first_event_in_time_names_large_requests_as_a_cause(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    server.answer(Answer(before=asyncio.Event()), Answer([asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=60, first_event_timeout_s=5)
    request = ModelRequest("m1", "", (UserMessage("x"),), (ToolSpec("big", "d" * 200_000),))
    for count in (1, 2):
        failing = asyncio.ensure_future(failure_of(provider, request))
        await server.received(count)
        await clock.wait_for_timers(1)
        await clock.advance(5)
        failed = await failing
        assert failed.error.reason == "PROVIDER_STALLED"
        assert "oversized tool schemas" in failed.error.message
    await server.connections_at_most(0)


async def test_a_finite_run_budget_caps_the_idle_limit(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = FakeClock()
    server.answer(Answer(before=asyncio.Event()))
    provider = make_provider(server.base_url, clock=clock, timeout_s=600)
    request = ModelRequest("m1", "", (UserMessage("x"),), idle_timeout_cap_s=3)
    failing = asyncio.ensure_future(failure_of(provider, request))
    await server.received(1)
    await clock.advance(3)
    assert (await failing).error.reason == "PROVIDER_STALLED"


async def test_the_end_mark_ends_the_answer_although_the_socket_stays_open(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    held = asyncio.Event()
    server.answer(Answer([delta(content="fine"), delta("stop"), DONE, held]))
    provider = make_provider(server.base_url)
    async with asyncio.timeout(1):
        events = await events_of(provider)
    assert isinstance(events[-1], Done)
    await server.connections_at_most(0)
    assert text_of(await events_of(provider)) == "ok"


async def test_a_finished_answer_without_end_mark_counts_when_the_stream_stands_still(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    server.answer(Answer([delta(content="fine"), delta("stop"), asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=120)
    collecting = asyncio.ensure_future(events_of(provider))
    await server.received(1)
    while not collecting.done():
        await clock.advance(1)
    events = await collecting
    assert isinstance(events[-1], Done)
    assert text_of(events) == "fine"


async def test_a_compressed_answer_streams_byte_by_byte(server: ModelServer, make_provider: MakeProvider) -> None:
    held = asyncio.Event()
    server.answer(gzipped([delta(content="\u2705 ok"), held, delta("stop"), DONE]))
    provider = make_provider(server.base_url)
    async with aclosing(provider.stream(REQUEST)) as events:
        assert await anext(events) == TextDelta(0, "\u2705 ok")
        held.set()
        rest = await _collect(events)
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


async def _collect(events: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    return [event async for event in events]
