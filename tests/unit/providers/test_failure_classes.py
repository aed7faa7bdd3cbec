"""The class of a failed call: each row of the table of spec 04, section 5, and R-4.52 to R-4.56, R-4.58."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, FailureClass, RunError, StopReason
from lanewayd.providers.failure_kinds import kind_of, reason_of
from lanewayd.providers.failure_texts import class_by_text, is_short_window, observed_tokens
from lanewayd.providers.failures import (
    Fault,
    classify_error_body,
    classify_response,
    failed_by,
    fault,
    run_error,
    stalled,
)
from lanewayd.providers.interface import Failed, ModelRequest
from lanewayd.providers.openai_chat.dialect import OpenAIChat
from lanewayd.providers.transport_faults import fault_before_response, fault_within_response

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
K = FailureClass


def classified(status: int, message: str = "", **fields: Any) -> Fault:
    body = json.dumps({"error": {"message": message, **fields}}).encode() if message or fields else b""
    return classify_response(status, httpx.Headers(), body, now=NOW)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (402, "Payment required", K.BILLING),
        (402, "insufficient credits", K.BILLING),
        (402, "Daily quota reached, resets at midnight", K.RATE_LIMIT),
        (402, "spend window exhausted, try again in 30 s", K.RATE_LIMIT),
        (429, "", K.RATE_LIMIT),
        (429, "slow down", K.RATE_LIMIT),
        (429, "monthly usage limit", K.RATE_LIMIT),
        (429, "insufficient_quota: check your plan and billing", K.BILLING),
        (401, "nope", K.AUTH),
        (401, "this API key has been revoked", K.AUTH_PERMANENT),
        (403, "your account was deactivated", K.AUTH_PERMANENT),
        (401, "billing hard limit reached", K.BILLING),
        (403, "no", K.AUTH),
        (403, "credit balance is too low", K.BILLING),
        (403, "blocked by our content policy", K.REFUSAL),
        (407, "proxy", K.AUTH),
        (404, "what?", K.MODEL_NOT_FOUND),
        (404, "no such model", K.MODEL_NOT_FOUND),
        (404, "prompt is too long", K.CONTEXT_OVERFLOW),
        (404, "session not found", K.SESSION_EXPIRED),
        (404, "out of credits", K.BILLING),
        (404, "invalid api key", K.AUTH),
        (408, "", K.TIMEOUT),
        (410, "", K.TIMEOUT),
        (410, "conversation expired", K.SESSION_EXPIRED),
        (410, "payment required", K.BILLING),
        (410, "unauthorized", K.AUTH),
        (400, "", K.FORMAT),
        (400, "something odd", K.FORMAT),
        (400, "messages.1: invalid value", K.FORMAT),
        (422, "field required", K.FORMAT),
        (400, "invalid_api_key", K.AUTH),
        (400, "maximum context length is 8192 tokens", K.CONTEXT_OVERFLOW),
        (422, "model not found", K.MODEL_NOT_FOUND),
        (413, "", K.CONTEXT_OVERFLOW),
        (413, "Request too large: tokens per minute (TPM): Limit 8000", K.RATE_LIMIT),
        (499, "", K.TIMEOUT),
        (503, "maintenance", K.TIMEOUT),
        (499, "overloaded", K.OVERLOADED),
        (503, "The model is overloaded", K.OVERLOADED),
        (500, "Oops", K.TIMEOUT),
        (502, "", K.TIMEOUT),
        (504, "gateway", K.TIMEOUT),
        (521, "", K.TIMEOUT),
        (522, "", K.TIMEOUT),
        (523, "", K.TIMEOUT),
        (524, "", K.TIMEOUT),
        (520, "", K.TIMEOUT),
        (529, "", K.OVERLOADED),
        (529, "billing", K.OVERLOADED),
    ],
)
def test_the_status_gives_the_class_and_the_text_refines_it(status: int, message: str, kind: FailureClass) -> None:
    assert classified(status, message).kind is kind


@pytest.mark.parametrize("status", [500, 502, 504, 521, 522, 523, 524])
def test_a_failing_service_that_says_so_by_type_is_a_server_error(status: int) -> None:
    assert classified(status, "x", type="server_error").kind is K.SERVER_ERROR
    assert classified(status, "x", code="internal_error").kind is K.SERVER_ERROR
    assert classified(status, "internal server error").kind is K.TIMEOUT
    assert classified(status, "x", type="server_error").reason is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
def test_an_explicit_code_of_a_revoked_key_goes_before_the_status(status: int) -> None:
    assert classified(status, "no", code="key_revoked").kind is K.AUTH_PERMANENT
    assert classified(status, "no", type="account_deactivated").kind is K.AUTH_PERMANENT


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        ConnectionRefusedError(),
        BrokenPipeError(),
        TimeoutError(),
        httpx.ConnectTimeout("x"),
    ],
)
def test_faults_of_the_connection_are_timeouts(error: Exception) -> None:
    assert fault_before_response(error).kind is K.TIMEOUT
    assert fault_within_response(error).kind is K.TIMEOUT


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "Unknown error, no details"}}, K.NO_ERROR_DETAILS),
        ({"error": {"message": "unknown error (no error details in response)"}}, K.NO_ERROR_DETAILS),
        ({"error": {"message": "the llamas are loose"}}, K.UNCLASSIFIED),
        ({"weird": 1}, K.EMPTY_RESPONSE),
        ([], K.EMPTY_RESPONSE),
        ({"error": {"code": 529}}, K.OVERLOADED),
        ({"error": {"type": "overloaded_error", "message": "x"}}, K.OVERLOADED),
        ({"error": {"type": "api_error", "message": "x"}}, K.SERVER_ERROR),
        ({"error": {"message": "declined by content_filter"}}, K.REFUSAL),
    ],
)
def test_an_error_object_is_classified_by_itself(body: Any, kind: FailureClass) -> None:
    assert classify_error_body(body).kind is kind


# Each text also fits a later pattern of the sequence, so that the sequence is what decides.
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("image exceeds 5 MB maximum: request too large", K.FORMAT),
        ("image dimensions exceed the max allowed size, context length", K.FORMAT),
        ("session abc not found, unknown model", K.SESSION_EXPIRED),
        ("model x does not exist; context length", K.MODEL_NOT_FOUND),
        ("context_length_exceeded: content filter", K.CONTEXT_OVERFLOW),
        ("content policy: check billing", K.REFUSAL),
        ("insufficient_quota: rate limit", K.BILLING),
        ("weekly usage limit reached: server is overloaded", K.RATE_LIMIT),
        ("too many requests, overloaded", K.RATE_LIMIT),
        ("overloaded: internal server error", K.OVERLOADED),
        ("internal server error, HTTP 502", K.SERVER_ERROR),
        ("HTTP 502: unauthorized", K.TIMEOUT),
        ("api key has been disabled: unauthorized", K.AUTH_PERMANENT),
        ("unauthorized: connection was reset", K.AUTH),
        ("connection was reset: invalid request", K.TIMEOUT),
        ("invalid request: timed out", K.FORMAT),
        ("unknown error, no details: timed out", K.NO_ERROR_DETAILS),
        ("the request timed out", K.TIMEOUT),
        ("the llamas are loose", None),
    ],
)
def test_patterns_are_tried_in_the_sequence_of_the_rule(text: str, kind: FailureClass | None) -> None:
    assert class_by_text(text) is kind


@pytest.mark.parametrize(
    "text",
    [
        "request too large",
        "This model's maximum context length is 4096 tokens",
        "prompt is too long",
        "input exceeds the available context window",
        "exceeds context size",
        "model token limit",
        "input token count exceeds the maximum number of tokens",
        "input exceeds max",
        "greater than the context length",
        "please reduce the length of the messages",
        "输入超过模型上下文长度限制",
        "上下文长度超出",
    ],
)
def test_an_overflow_is_recognised_by_each_phrase(text: str) -> None:
    assert class_by_text(text) is K.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    "text",
    [
        "request too large for your tokens per minute",
        "Request too large: TPM",
        "context length: reasoning is mandatory",
        "request too large, check billing",
        "request too large: rate limit",
        "context length: the configured context window is too small",
    ],
)
def test_it_is_no_overflow_when_it_is_about_something_else(text: str) -> None:
    assert class_by_text(text) is not K.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 210_000),
        ("maximum context length is 4096 tokens. However, your messages resulted in 5,123 tokens", 5_123),
        ("maximum context length is 4096 tokens, however you requested 5000 tokens (4500 in the messages)", 4_500),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_200_000),
        ('{"n_prompt_tokens":9000,"n_ctx":8192} exceeds the available context size', 9_000),
        ("maximum context length is 4096 tokens", 0),
    ],
)
def test_the_size_that_an_overflow_names_is_kept(text: str, size: int) -> None:
    assert observed_tokens(text) == size
    assert classified(400, text).observed_tokens == size


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("error", K.SERVER_ERROR),
        ("abort", K.TIMEOUT),
        ("network_error", K.TIMEOUT),
        ("malformed_response", K.TIMEOUT),
    ],
)
def test_a_stop_word_for_a_failure_has_its_class(word: str, kind: FailureClass) -> None:
    decoder = OpenAIChat(new_call_id=lambda: "c").decoder(ModelRequest("m", "", ()), "acme")
    chunk = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": word}]}
    events = decoder.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.kind is kind


@pytest.mark.parametrize(
    ("text", "wait_s", "is_short"),
    [
        ("3 requests per minute", None, True),
        ("TPM", None, True),
        ("anything", 60.0, True),
        ("requests per minute", 61.0, False),
        ("daily limit", None, False),
        ("weekly limit", None, False),
        ("monthly limit", None, False),
        ("your subscription", None, False),
        ("quota", None, False),
        ("daily limit, 3 per minute", None, False),
    ],
)
def test_a_rate_limit_is_short_when_it_is_over_within_a_minute(text: str, wait_s: float | None, is_short: bool) -> None:
    assert is_short_window(text, wait_s) is is_short


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("image exceeds 5 MB maximum", "an image is larger than the model takes"),
        ("roles must alternate between user and assistant", "the order of the messages was not accepted"),
    ],
)
def test_a_request_of_a_wrong_shape_is_explained(text: str, problem: str) -> None:
    found = classified(400, text)
    assert (found.kind, problem in found.what) == (K.FORMAT, True)


def test_a_terminal_event_carries_the_class_of_its_cause() -> None:
    partial = AssistantMessage((), "acme", "m", StopReason.ERROR)
    cause = classified(400, "prompt is too long: 210000 tokens > 200000 maximum")
    failed = failed_by(cause, Failed(run_error(cause, provider="acme", model="m"), partial))
    assert (failed.kind, failed.observed_tokens, failed.is_idle) == (K.CONTEXT_OVERFLOW, 210_000, False)
    idle = failed_by(stalled("silence"), Failed(RunError("PROVIDER_STALLED", "x"), partial))
    assert (idle.kind, idle.is_idle) == (K.TIMEOUT, True)


def test_a_failure_without_a_finer_class_has_that_of_its_reason() -> None:
    for code in ErrorCode:
        failed = Failed(RunError(code.value, "x"), AssistantMessage((), "acme", "m", StopReason.ERROR))
        assert failed.kind is kind_of(code.value)
    assert kind_of("INTERNAL") is K.UNKNOWN


def test_each_class_has_a_reason_of_the_contract() -> None:
    for kind in FailureClass:
        assert run_error(fault(reason_of(kind)), provider="a", model="b").reason == reason_of(kind).value
