"""Every fault of a model service, over real HTTP, with both transports: what the caller is told, and that no key is."""

import asyncio
import socket
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.model_answers import Answer, End, delta, failure, text_answer, wire
from tests.fakes.model_server import ModelServer
from tests.providers.calling import (
    KEY,
    PARTIAL_CALL,
    REQUEST,
    MakeProvider,
    events_of,
    failure_of,
    text_of,
)

from lanewayd.providers.http_provider import TransportKind
from lanewayd.providers.interface import Done, TextDelta


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
    def read(_profile: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", "/secret/place")

    failed = await failure_of(make_provider(server.base_url, api_key=read))
    assert failed.error.reason == "PROVIDER_AUTH"
    assert "No such file" in failed.error.message


async def test_the_key_is_asked_for_at_each_call_and_sent_as_bearer(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    keys = iter(["first", "second"])
    provider = make_provider(server.base_url, api_key=lambda _profile: next(keys))
    await events_of(provider)
    await events_of(provider)
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer first", "Bearer second"]
    await events_of(make_provider(server.base_url, api_key=None))
    assert "authorization" not in server.requests[-1].headers


PROFILE_KEYS = {"work": "sk-work-0123456789abcdef", "default": KEY}


def key_of(profile: str) -> str:
    return PROFILE_KEYS[profile]


async def test_a_call_is_made_with_the_key_of_its_profile(server: ModelServer, make_provider: MakeProvider) -> None:
    provider = make_provider(server.base_url, api_key=key_of)
    for profile in PROFILE_KEYS:
        await events_of(provider, replace(REQUEST, profile=profile))
    sent = [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]
    assert sent == list(PROFILE_KEYS.values())


@pytest.mark.parametrize(("status", "is_named"), [(401, True), (402, True), (403, True), (429, True), (500, False)])
async def test_who_refuses_a_key_has_its_profile_named_and_no_key_shown(
    server: ModelServer, make_provider: MakeProvider, status: int, is_named: bool
) -> None:
    provider = make_provider(server.base_url, api_key=key_of, secrets=lambda: list(PROFILE_KEYS.values()))
    said = f"no, neither {PROFILE_KEYS['work']} nor {KEY} nor odd"
    server.answer(failure(status, {"error": {"message": said}}))
    failed = await failure_of(provider, replace(REQUEST, profile="work"))
    assert ("the profile 'work'" in failed.error.message) is is_named
    assert not any(key in repr(failed) for key in PROFILE_KEYS.values())
    server.answer(failure(status, {"error": {"message": said}}))
    assert "profile" not in (await failure_of(make_provider(server.base_url))).error.message


async def test_a_key_that_cannot_be_read_has_its_profile_named(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    def read(_profile: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", "/secret/place")

    failed = await failure_of(make_provider(server.base_url, api_key=read), replace(REQUEST, profile="work"))
    assert failed.error.message.endswith("(the key was that of the profile 'work')")


async def test_a_long_header_is_read_or_named_as_what_it_is(
    server: ModelServer, make_provider: MakeProvider, transport_kind: TransportKind
) -> None:
    answer = text_answer("hi")
    answer.headers["x-trace"] = "t" * 9_000
    server.answer(answer)
    provider = make_provider(server.base_url)
    if transport_kind == "httpx":
        assert text_of(await events_of(provider)) == "hi"
        return
    failed = await failure_of(provider)
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert 'a header of its answer is longer than 8 KB; `models.transport = "httpx"`' in failed.error.message
