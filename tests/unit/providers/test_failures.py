"""providers/failures.py and redaction.py: what an answer with an error means and what is told of it."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from lanewayd.errors import ErrorCode
from lanewayd.providers.failures import Fault, classify_error_body, classify_response, fault, retry_after_s, run_error
from lanewayd.providers.redaction import MAX_SAID_CHARS, excerpt, hide_secret

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def classified(status: int, message: str = "", headers: dict[str, str] | None = None, **fields: Any) -> Fault:
    body = json.dumps({"error": {"message": message, **fields}}).encode() if message or fields else b""
    return classify_response(status, httpx.Headers(headers or {}), body, now=NOW)


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (400, "bad role", "PROVIDER_REQUEST_REJECTED"),
        (400, "", "PROVIDER_REQUEST_REJECTED"),
        (400, "This model's maximum context length is 4096 tokens", "CONTEXT_OVERFLOW"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "CONTEXT_OVERFLOW"),
        (400, "input token count exceeds the maximum number of tokens", "CONTEXT_OVERFLOW"),
        (400, "输入超过模型上下文长度限制", "CONTEXT_OVERFLOW"),
        (400, "request too large: tokens per minute (TPM) limit", "PROVIDER_RATE_LIMITED"),
        (400, "Your credit balance is too low", "PROVIDER_BILLING"),
        (400, "invalid_api_key", "PROVIDER_AUTH"),
        (400, "model not found", "PROVIDER_MODEL_NOT_FOUND"),
        (400, "flagged by our content policy", "PROVIDER_REFUSED"),
        (401, "nope", "PROVIDER_AUTH"),
        (401, "billing hard limit", "PROVIDER_BILLING"),
        (402, "pay", "PROVIDER_BILLING"),
        (402, "rate limit: spend window, retry in 30 s", "PROVIDER_RATE_LIMITED"),
        (403, "no", "PROVIDER_AUTH"),
        (404, "no", "PROVIDER_MODEL_NOT_FOUND"),
        (404, "invalid api key", "PROVIDER_AUTH"),
        (408, "", "PROVIDER_STALLED"),
        (410, "gone", "PROVIDER_REQUEST_REJECTED"),
        (413, "", "CONTEXT_OVERFLOW"),
        (422, "field required", "PROVIDER_REQUEST_REJECTED"),
        (422, "context length exceeded", "CONTEXT_OVERFLOW"),
        (429, "x", "PROVIDER_RATE_LIMITED"),
        (429, "You exceeded your current quota, check your plan and billing", "PROVIDER_BILLING"),
        (429, "You exceeded your current quota, check your plan and billing. Retry in 21.9s.", "PROVIDER_RATE_LIMITED"),
        (429, "You exceeded your current quota, check your plan and billing. Retry in 61s.", "PROVIDER_BILLING"),
        (400, "API key not valid. Please pass a valid API key.", "PROVIDER_AUTH"),
        (499, "", "PROVIDER_UNAVAILABLE"),
        (500, "x", "PROVIDER_UNAVAILABLE"),
        (502, "", "PROVIDER_UNAVAILABLE"),
        (524, "", "PROVIDER_UNAVAILABLE"),
        (529, "", "PROVIDER_UNAVAILABLE"),
        (301, "", "PROVIDER_BAD_RESPONSE"),
    ],
)
def test_the_status_decides_and_the_text_refines(status: int, message: str, reason: str) -> None:
    assert classified(status, message).reason.value == reason


@pytest.mark.parametrize("status", [500, 502, 503, 504, 524, 529, 499])
def test_failing_services_are_transient(status: int) -> None:
    assert classified(status).is_transient


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 410, 413, 422])
def test_everything_that_will_fail_again_is_not_transient(status: int) -> None:
    assert not classified(status).is_transient


@pytest.mark.parametrize(
    ("message", "headers", "is_short"),
    [
        ("slow down", {}, False),
        ("limit of 3 requests per minute", {}, True),
        ("TPM limit", {}, True),
        ("try again in 20s", {}, True),
        ("please retry after 1m30s", {}, False),
        ("slow down", {"retry-after": "60"}, True),
        ("limit per minute", {"retry-after": "61"}, False),
        ("daily limit", {}, False),
        ("weekly limit", {"retry-after": "30"}, True),
        ("5 requests per minute, 100 per day", {}, False),
    ],
)
def test_a_rate_limit_is_transient_within_a_short_window(message: str, headers: dict[str, str], is_short: bool) -> None:
    found = classified(429, message, headers)
    assert (found.reason, found.is_transient) == (ErrorCode.PROVIDER_RATE_LIMITED, is_short)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9" * 400}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(httpx.Headers(headers), now=NOW) == seconds


@pytest.mark.parametrize(
    ("body", "reason", "is_transient"),
    [
        ({"error": {"type": "overloaded_error", "message": "x"}}, "PROVIDER_UNAVAILABLE", True),
        ({"error": {"code": "429", "message": "x per minute"}}, "PROVIDER_RATE_LIMITED", True),
        ({"error": {"code": 503}}, "PROVIDER_UNAVAILABLE", True),
        ({"error": {"type": "server_error"}}, "PROVIDER_UNAVAILABLE", True),
        ([{"error": {"code": 400, "message": "x"}}], "PROVIDER_REQUEST_REJECTED", False),
        ({"error": "invalid api key"}, "PROVIDER_AUTH", False),
        ({"error": {"message": "content_filter"}}, "PROVIDER_REFUSED", False),
        ({"error": {"type": "invalid_request_error", "message": "y"}}, "PROVIDER_REQUEST_REJECTED", False),
        ({"error": {"message": "upstream request timed out"}}, "PROVIDER_STALLED", False),
        ({"error": {"code": True}}, "PROVIDER_BAD_RESPONSE", False),
        ({"weird": 1}, "PROVIDER_BAD_RESPONSE", False),
        ([], "PROVIDER_BAD_RESPONSE", False),
        (None, "PROVIDER_BAD_RESPONSE", False),
        ("text", "PROVIDER_BAD_RESPONSE", False),
    ],
)
def test_an_error_body_is_classified_by_itself(body: Any, reason: str, is_transient: bool) -> None:
    found = classify_error_body(body)
    assert (found.reason.value, found.is_transient) == (reason, is_transient)


def test_an_error_names_provider_model_status_cause_and_advice() -> None:
    error = run_error(classified(401, "bad key"), provider="acme", model="m1", http_status=401)
    assert error.message == (
        "acme, model m1: the API key was refused (HTTP 401). Check the key that api_key_env or api_key_file of this"
        " provider gives, and its rights. The provider said: bad key"
    )
    assert (error.reason, error.provider, error.model, error.http_status) == ("PROVIDER_AUTH", "acme", "m1", 401)
    assert not error.retryable
    assert run_error(fault(ErrorCode.PROVIDER_STALLED), provider="a", model="b").retryable


def test_every_provider_reason_has_a_sentence_and_advice() -> None:
    for code in ErrorCode:
        if code.value.startswith("PROVIDER_") or code is ErrorCode.CONTEXT_OVERFLOW:
            assert run_error(fault(code), provider="a", model="b").message.count(".") >= 1


def test_an_excerpt_is_one_short_line_and_of_a_page_its_title() -> None:
    assert excerpt("a\n b\t c") == "a b c"
    assert len(excerpt("x" * 9_999)) == MAX_SAID_CHARS
    assert excerpt("<html><head><title>502 Bad\nGateway</title></head>...") == 'a web page titled "502 Bad Gateway"'
    assert excerpt("<html>...") == "a web page"


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghij1234567890",
        "header Authorization: Bearer abcdefghij1234567890",
        "https://x/y?key=abcdefghij1234567890&z=1",
        "api_key=abcdefghij1234567890",
        "AIzaabcdefghij1234567890abcd",
        "key-abcdefghij1234567890",
    ],
)
def test_what_looks_like_a_credential_is_redacted(text: str) -> None:
    assert "abcdefghij" not in excerpt(text)
    assert "[redacted]" in excerpt(text)


def test_a_secret_is_hidden_whole_and_cut() -> None:
    secret = "plainsecretwithoutform"
    assert hide_secret(f"a {secret} b", secret) == "a [redacted] b"
    for padding in range(MAX_SAID_CHARS - len(secret) - 2, MAX_SAID_CHARS):
        said = excerpt("x" * padding + secret + "y" * 50)
        assert secret[:5] not in hide_secret(said, secret)
    assert hide_secret("text", "") == "text"
