"""Why a model call failed, read from what a provider answered. Pure. Source: spec 04, section 5, and its R-4.52 ff.

Order: the HTTP status, refined by the text; for a body without a telling status its code, type and text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import RunError, valid_text
from lanewayd.providers.redaction import excerpt

SHORT_WINDOW_S = 60.0
_MAX_TEXT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Fault:
    """A classified failure. `what` is the first sentence of the error; `said` the provider's own words, redacted."""

    reason: ErrorCode
    what: str
    is_transient: bool = False
    retry_after_s: float | None = None
    said: str = ""


def _pattern(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_OVERFLOW = _pattern(
    r"request (?:is )?too large",
    r"(?:maximum )?context[ _]length",
    r"prompt (?:is )?too long",
    r"exceeds? (?:the )?(?:available |model'?s? )?(?:maximum )?context (?:window|size|length)",
    r"model(?:'s)? token limit",
    r"input (?:token count |length )?(?:\S+ )?exceeds (?:the )?(?:\w+ )?max",
    r"greater than the context",
    r"reduce the length of the (?:messages|prompt)",
    r"context_length_exceeded|context_window_exceeded",
    r"too many (?:input )?tokens",
    r"上下文(?:长度|窗口)?.{0,8}(?:超|过长)",
    r"超(?:过|出).{0,8}(?:上下文|最大长度)",
)
_NOT_OVERFLOW = _pattern(
    r"tokens? per (?:min|day)", r"\bTPM\b", r"rate.?limit", r"billing", r"reasoning is (?:mandatory|required)"
)
_BILLING = _pattern(
    r"insufficient[_ ](?:quota|credits?|balance|funds)",
    r"billing",
    r"payment required",
    r"credit balance",
    r"out of credits",
    r"exceeded your current quota",
    r"spend(?:ing)? limit",
    r"account (?:is )?(?:in arrears|overdue)",
)
_RATE_LIMIT = _pattern(
    r"rate.?limit", r"too many requests", r"per[- ]minute", r"\b[RT]PM\b", r"throttl", r"resource.?exhausted"
)
_SHORT_WINDOW = _pattern(
    r"per[- ](?:min|second)", r"\b[RT]PM\b", r"(?:requests|tokens)[/ ]min", r"a (?:few )?(?:second|minute|moment)s?\b"
)
_LONG_WINDOW = _pattern(r"per[- ](?:day|week|month)", r"daily|weekly|monthly", r"subscription", r"\b[RT]PD\b", r"quota")
_WAIT_IN_TEXT = re.compile(
    r"(?:try again|retry|wait|reset)\w*\s+(?:again\s+)?(?:in|after|for)?\s*"
    r"(?:(\d+)m)?\s*(\d+(?:\.\d+)?)\s*(ms|s\b|sec|min)",
    re.IGNORECASE,
)
_OVERLOADED = _pattern(
    r"overloaded", r"at capacity", r"service.?unavailable", r"temporarily unavailable", r"high demand"
)
_SERVER_ERROR = _pattern(
    r"internal.?(?:server.)?error", r"server.?error", r"api_error", r"bad gateway", r"upstream error"
)
_TIMEOUT = _pattern(r"timed? ?out", r"deadline.?exceeded")
_REFUSAL = _pattern(
    r"content.?(?:filter|policy|management)", r"safety (?:system|policy)", r"responsible.?ai", r"moderation"
)
_MODEL_GONE = _pattern(
    r"model[_ ]not[_ ]found",
    r"model (?:\S+ )?(?:does not exist|not found|is not (?:available|supported)|has been (?:deprecated|retired))",
    r"(?:no such|unknown|invalid) model",
)
_AUTH = _pattern(
    r"(?:invalid|incorrect|missing|expired|revoked|no)[_ ](?:\w+[_ ])?(?:api[_ ]?key|token|credentials?)",
    r"api[_ ]?key (?:is )?(?:invalid|not valid|expired|missing)",
    r"unauthori[sz]ed",
    r"authentication",
    r"permission[_ ](?:denied|error)",
    r"forbidden",
)
_REJECTED = _pattern(
    r"invalid[_ ]request",
    r"bad request",
    r"validation",
    r"unprocessable",
    r"invalid[_ ](?:argument|parameter|value|type)",
)

# In this sequence: the first pattern that matches a text decides.
_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (_MODEL_GONE, ErrorCode.PROVIDER_MODEL_NOT_FOUND),
    (_REFUSAL, ErrorCode.PROVIDER_REFUSED),
    (_BILLING, ErrorCode.PROVIDER_BILLING),
    (_RATE_LIMIT, ErrorCode.PROVIDER_RATE_LIMITED),
    (_OVERLOADED, ErrorCode.PROVIDER_UNAVAILABLE),
    (_SERVER_ERROR, ErrorCode.PROVIDER_UNAVAILABLE),
    (_AUTH, ErrorCode.PROVIDER_AUTH),
    (_REJECTED, ErrorCode.PROVIDER_REQUEST_REJECTED),
    (_TIMEOUT, ErrorCode.PROVIDER_STALLED),
)

# Reasons that a text may give instead of the one that the status gives by itself.
_REFINEMENTS: dict[int, tuple[ErrorCode, ...]] = {
    400: (
        ErrorCode.PROVIDER_MODEL_NOT_FOUND,
        ErrorCode.PROVIDER_REFUSED,
        ErrorCode.PROVIDER_BILLING,
        ErrorCode.PROVIDER_AUTH,
    ),
    401: (ErrorCode.PROVIDER_BILLING,),
    403: (ErrorCode.PROVIDER_BILLING, ErrorCode.PROVIDER_REFUSED),
    404: (ErrorCode.PROVIDER_BILLING, ErrorCode.PROVIDER_AUTH),
    410: (ErrorCode.PROVIDER_MODEL_NOT_FOUND, ErrorCode.PROVIDER_BILLING, ErrorCode.PROVIDER_AUTH),
    429: (ErrorCode.PROVIDER_BILLING,),
}
_BY_STATUS: dict[int, ErrorCode] = {
    401: ErrorCode.PROVIDER_AUTH,
    402: ErrorCode.PROVIDER_BILLING,
    403: ErrorCode.PROVIDER_AUTH,
    404: ErrorCode.PROVIDER_MODEL_NOT_FOUND,
    407: ErrorCode.PROVIDER_AUTH,
    408: ErrorCode.PROVIDER_STALLED,
    413: ErrorCode.CONTEXT_OVERFLOW,
    429: ErrorCode.PROVIDER_RATE_LIMITED,
    499: ErrorCode.PROVIDER_UNAVAILABLE,
}
_WHAT: dict[ErrorCode, str] = {
    ErrorCode.PROVIDER_UNREACHABLE: "the service cannot be reached",
    ErrorCode.PROVIDER_AUTH: "the API key was refused",
    ErrorCode.PROVIDER_BILLING: "the account has no credit left",
    ErrorCode.PROVIDER_MODEL_NOT_FOUND: "the model or the address is not known there",
    ErrorCode.PROVIDER_REQUEST_REJECTED: "the request was rejected",
    ErrorCode.PROVIDER_RATE_LIMITED: "the rate limit was reached",
    ErrorCode.PROVIDER_UNAVAILABLE: "the service is failing or overloaded",
    ErrorCode.PROVIDER_BAD_RESPONSE: "the answer is not what the API promises",
    ErrorCode.PROVIDER_STREAM_CUT: "the stream was cut before its end",
    ErrorCode.PROVIDER_STALLED: "the model did not answer in time",
    ErrorCode.PROVIDER_REFUSED: "the model or its content filter declined to answer",
    ErrorCode.CONTEXT_OVERFLOW: "the conversation is longer than the model's context window",
}
_ADVICE: dict[ErrorCode, str] = {
    ErrorCode.PROVIDER_UNREACHABLE: "Check base_url and that the service is running.",
    ErrorCode.PROVIDER_AUTH: "Check the key that api_key_env or api_key_file of this provider gives, and its rights.",
    ErrorCode.PROVIDER_BILLING: "Top up the account or use the key of another one.",
    ErrorCode.PROVIDER_MODEL_NOT_FOUND: "Check the model's name and base_url.",
    ErrorCode.PROVIDER_REQUEST_REJECTED: "The same request will be rejected again.",
    ErrorCode.PROVIDER_RATE_LIMITED: "Try again later or use another model.",
    ErrorCode.PROVIDER_UNAVAILABLE: "Try again in a moment or use another model.",
    ErrorCode.PROVIDER_BAD_RESPONSE: "Check that base_url is an API of the configured kind.",
    ErrorCode.PROVIDER_STREAM_CUT: "Try again.",
    ErrorCode.PROVIDER_STALLED: "Try again, or raise timeout_seconds of this provider.",
    ErrorCode.PROVIDER_REFUSED: "Rephrase the message or use another model.",
    ErrorCode.CONTEXT_OVERFLOW: "Start a new session or use a model with a larger window.",
}
_RETRYABLE = frozenset(
    {
        ErrorCode.PROVIDER_UNREACHABLE,
        ErrorCode.PROVIDER_RATE_LIMITED,
        ErrorCode.PROVIDER_UNAVAILABLE,
        ErrorCode.PROVIDER_STREAM_CUT,
        ErrorCode.PROVIDER_STALLED,
    }
)


def fault(reason: ErrorCode, what: str = "", *, is_transient: bool | None = None, said: str = "") -> Fault:
    """A fault seen on this side. Transient by default when another try is worth while: unreachable, failing, cut."""
    if is_transient is None:
        is_transient = reason in _RETRYABLE - {ErrorCode.PROVIDER_STALLED, ErrorCode.PROVIDER_RATE_LIMITED}
    return Fault(reason, what or _WHAT[reason], is_transient, None, said)


def run_error(cause: Fault, *, provider: str, model: str, http_status: int = 0) -> RunError:
    """The error as a caller sees it: who, what happened, what to do, what the provider said."""
    status = f" (HTTP {http_status})" if http_status else ""
    message = f"{provider}, model {model}: {cause.what}{status}. {_ADVICE[cause.reason]}"
    if cause.said:
        message += f" The provider said: {cause.said}"
    return RunError(
        cause.reason.value,
        valid_text(message),
        provider=provider,
        model=model,
        http_status=http_status,
        retryable=cause.reason in _RETRYABLE,
    )


def classify_response(status: int, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Fault:
    """The failure that a response with an error status reports. `headers` is case-insensitive; `now` is wall time."""
    text = body.decode("utf-8", "replace")
    return _refine(status, _error_text(_parsed(text), text), retry_after_s(headers, now=now))


def classify_error_body(body: Any) -> Fault:
    """The failure that an error object in a successful response reports: its class comes from the object alone."""
    text = _error_text(body, json.dumps(body, ensure_ascii=False, default=str))
    status = _status_in(body)
    if status is not None:
        return _refine(status, text, None)
    reason = ErrorCode.CONTEXT_OVERFLOW if _is_overflow(text) else _reason_by_text(text)
    if reason is None:
        return Fault(
            ErrorCode.PROVIDER_BAD_RESPONSE, "the answer holds an error of an unknown kind", said=excerpt(text)
        )
    return _with_window(reason, text, None)


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds that the server asks to wait, never negative; None when it does not say. Source: RFC 9110, 10.2.3."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())


def _refine(status: int, text: str, wait_s: float | None) -> Fault:
    if 300 <= status < 400:
        return Fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the service answered with a redirect", said=excerpt(text))
    by_status = _BY_STATUS.get(status)
    if by_status is None:
        by_status = ErrorCode.PROVIDER_UNAVAILABLE if status >= 500 else ErrorCode.PROVIDER_REQUEST_REJECTED
    reason = by_status
    if status in {400, 404, 413, 422} and _is_overflow(text):
        reason = ErrorCode.CONTEXT_OVERFLOW
    elif status == 402 and _RATE_LIMIT.search(text):
        reason = ErrorCode.PROVIDER_RATE_LIMITED
    else:
        by_text = _reason_by_text(text)
        if by_text in _REFINEMENTS.get(400 if status == 422 else status, ()):
            reason = by_text or by_status
        if status == 429 and reason is ErrorCode.PROVIDER_BILLING and _ends_soon(text, wait_s):
            # Google sends everyone to "plan and billing", also whom it lets in again after some seconds.
            reason = ErrorCode.PROVIDER_RATE_LIMITED
    return _with_window(reason, text, wait_s)


def _with_window(reason: ErrorCode, text: str, wait_s: float | None) -> Fault:
    if wait_s is None:
        wait_s = _wait_in(text)
    if reason is ErrorCode.PROVIDER_RATE_LIMITED:
        is_transient = _is_short_window(text, wait_s)
    else:
        is_transient = reason in {ErrorCode.PROVIDER_UNAVAILABLE, ErrorCode.PROVIDER_UNREACHABLE}
    return Fault(reason, _WHAT[reason], is_transient, wait_s, excerpt(text))


def _is_short_window(text: str, wait_s: float | None) -> bool:
    """The limit is over within a minute (R-4.58)."""
    if wait_s is not None:
        return wait_s <= SHORT_WINDOW_S
    return bool(_SHORT_WINDOW.search(text)) and not _LONG_WINDOW.search(_SHORT_WINDOW.sub("", text))


def _ends_soon(text: str, wait_s: float | None) -> bool:
    """A wait is named, and it is a short one."""
    wait_s = _wait_in(text) if wait_s is None else wait_s
    return wait_s is not None and wait_s <= SHORT_WINDOW_S


def _wait_in(text: str) -> float | None:
    found = _WAIT_IN_TEXT.search(text)
    if not found:
        return None
    minutes, amount, unit = found.groups()
    factor = {"ms": 0.001, "min": 60.0}.get(unit.lower(), 1.0)
    return float(minutes or 0) * 60 + float(amount) * factor


def _is_overflow(text: str) -> bool:
    return bool(_OVERFLOW.search(text)) and not _NOT_OVERFLOW.search(text)


def _reason_by_text(text: str) -> ErrorCode | None:
    return next((reason for pattern, reason in _BY_TEXT if pattern.search(text)), None)


def _number(value: str) -> float | None:
    """A count without sign or exponent, as headers have it."""
    value = value.strip()
    return float(value) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error_object(body: Any) -> Any:
    """Where the error stands: `{"error": ...}`, a list with it first, or the body itself."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and body.get("error"):
        return body["error"]
    return body


def _error_text(body: Any, raw: str) -> str:
    """Type, code and message of an error body; the whole text when it has none of them."""
    error = _error_object(body)
    if isinstance(error, str):
        return error[:_MAX_TEXT_CHARS]
    parts: list[str] = []
    if isinstance(error, dict):
        for name in ("type", "code", "status", "message", "detail", "error_description"):
            value = error.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value) not in parts:
                parts.append(str(value))
    return (": ".join(parts) or raw)[:_MAX_TEXT_CHARS]


def _status_in(body: Any) -> int | None:
    """An HTTP error status that an error object carries as its code."""
    error = _error_object(body)
    if not isinstance(error, dict):
        return None
    for name in ("status", "status_code", "code", "http_status"):
        value = error.get(name)
        if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None
