"""What a model service can do wrong, and what is promised of each fault (spec 04, 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.model_answers import DONE, Answer, End, delta, event, failure, wire
from tests.service.provider_stage import KEY

PARTIAL_CALL = delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "exec", "arguments": '{"command":"tou'}}])

MakeAnswer = Callable[[], Answer]


@dataclass(frozen=True)
class Fault:
    """What a model service does at every try, and what becomes of the run."""

    name: str
    answer: MakeAnswer
    reason: str
    http_status: int = 0
    retryable: bool = False
    delays_s: tuple[float, ...] = ()
    """The waits before the further tries; empty = there is one try only."""
    says: tuple[str, ...] = ()
    """Words of the error's text: what happened, and what to do."""
    text: str = ""
    """What the run had said at its end."""
    voids: bool = False
    """Each failed try had shown text, which is void."""


def said(message: str, **fields: Any) -> dict[str, Any]:
    """An error body, with a key in it as careless services send it back."""
    return {"error": {"message": f"{message} (key {KEY})", **fields}}


def overload_after_text() -> Answer:
    """Text, and then an error in the stream."""
    return Answer([delta(content="Half a "), event(error={"type": "overloaded_error", "message": "Overloaded"})])


BACKOFF = (1.0, 2.0, 4.0)
LIMIT = (10.0, 20.0, 30.0)
UNREACHABLE_ADVICE = ("cannot be reached", "base_url")
FAULTS = [
    Fault(
        "reset before the answer",
        lambda: Answer(sends_head=False, end=End.RESET),
        "PROVIDER_UNREACHABLE",
        0,
        True,
        BACKOFF,
        ("reset", *UNREACHABLE_ADVICE),
    ),
    Fault(
        "closed before the answer",
        lambda: Answer(sends_head=False, end=End.CLOSE),
        "PROVIDER_UNREACHABLE",
        0,
        True,
        BACKOFF,
        UNREACHABLE_ADVICE,
    ),
    Fault(
        "400",
        lambda: failure(400, said("messages: unknown role")),
        "PROVIDER_REQUEST_REJECTED",
        400,
        says=("rejected", "unknown role"),
    ),
    Fault(
        "400 too long",
        lambda: failure(400, said("maximum context length is 8192 tokens")),
        "CONTEXT_OVERFLOW",
        400,
        says=("context window", "new session"),
    ),
    Fault("401", lambda: failure(401, said("Incorrect API key")), "PROVIDER_AUTH", 401, says=("key", "api_key_file")),
    Fault(
        "402", lambda: failure(402, said("Insufficient credits")), "PROVIDER_BILLING", 402, says=("credit", "Top up")
    ),
    Fault(
        "404", lambda: failure(404, said("no such model")), "PROVIDER_MODEL_NOT_FOUND", 404, says=("Check the model",)
    ),
    Fault("408", lambda: failure(408), "PROVIDER_STALLED", 408, True, says=("in time", "timeout_seconds")),
    Fault("422", lambda: failure(422, said("field required")), "PROVIDER_REQUEST_REJECTED", 422, says=("rejected",)),
    Fault(
        "429 for a moment",
        lambda: failure(429, said("slow down"), {"retry-after": "2"}),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        LIMIT,
        ("rate limit", "later"),
    ),
    Fault(
        "429 for a minute",
        lambda: failure(429, said("3 requests per minute")),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        LIMIT,
    ),
    Fault(
        "429 for an hour",
        lambda: failure(429, said("slow down"), {"retry-after": "3600"}),
        "PROVIDER_RATE_LIMITED",
        429,
        True,
        says=("rate limit",),
    ),
    Fault("429 for today", lambda: failure(429, said("daily quota reached")), "PROVIDER_RATE_LIMITED", 429, True),
    Fault(
        "500",
        lambda: failure(500, b"<html>Oops</html>"),
        "PROVIDER_UNAVAILABLE",
        500,
        True,
        BACKOFF,
        ("failing", "Try again"),
    ),
    Fault(
        "503 with a wait",
        lambda: failure(503, said("maintenance"), {"retry-after": "60"}),
        "PROVIDER_UNAVAILABLE",
        503,
        True,
        (60.0, 60.0, 60.0),
    ),
    Fault("503 with a long wait", lambda: failure(503, None, {"retry-after": "61"}), "PROVIDER_UNAVAILABLE", 503, True),
    Fault("529", lambda: failure(529), "PROVIDER_UNAVAILABLE", 529, True, BACKOFF, ("overloaded",)),
    Fault(
        "200 with an error of an unknown kind",
        lambda: failure(200, {"detail": f"what is this {KEY}"}),
        "PROVIDER_BAD_RESPONSE",
        200,
        delays_s=BACKOFF,
        says=("error", "base_url"),
    ),
    Fault(
        "200 with an overload",
        lambda: failure(200, said("Overloaded", type="overloaded_error")),
        "PROVIDER_UNAVAILABLE",
        200,
        True,
        BACKOFF,
    ),
    Fault("200 with a bad key", lambda: failure(200, said("bad key", code=401)), "PROVIDER_AUTH", 200),
    Fault(
        "an overload after text",
        overload_after_text,
        "PROVIDER_UNAVAILABLE",
        200,
        True,
        BACKOFF,
        text="Half a ",
        voids=True,
    ),
    Fault(
        "cut before text",
        lambda: wire(b": hello\n\n", end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
        ("cut", "Try again"),
    ),
    Fault(
        "reset before text",
        lambda: wire(b": hello\n\n", end=End.RESET),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
    ),
    Fault(
        "cut after text",
        lambda: wire(delta(content="Half a "), end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        text="Half a ",
        says=("cut",),
    ),
    Fault(
        "cut in the arguments of a call",
        lambda: wire(PARTIAL_CALL, end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        BACKOFF,
    ),
    Fault(
        "cut in the arguments of a call after text",
        lambda: wire(delta(content="I will ") + PARTIAL_CALL, end=End.CUT),
        "PROVIDER_STREAM_CUT",
        200,
        True,
        text="I will ",
    ),
    Fault(
        "a web page", lambda: wire("<html>Login</html>"), "PROVIDER_BAD_RESPONSE", 200, says=("web page", "base_url")
    ),
    Fault("garbage in an event", lambda: wire("data: {not json}\n\n"), "PROVIDER_BAD_RESPONSE", 200, says=("no JSON",)),
    Fault(
        "garbage after text",
        lambda: wire(delta(content="Half a ") + b"data: \x00\xff\n\n"),
        "PROVIDER_BAD_RESPONSE",
        200,
        text="Half a ",
    ),
    Fault(
        "no HTTP",
        lambda: Answer([b"220 smtp.example ESMTP\r\n\r\n"], sends_head=False, end=End.CLOSE),
        "PROVIDER_BAD_RESPONSE",
        says=("HTTP", "base_url"),
    ),
    Fault(
        "a refusal",
        lambda: Answer([delta(content="I "), delta("content_filter"), DONE]),
        "PROVIDER_REFUSED",
        200,
        text="I ",
        says=("declined", "Rephrase"),
    ),
]
