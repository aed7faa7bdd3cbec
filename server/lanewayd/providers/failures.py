"""Why a model call failed, read from what a provider answered. Pure. Source: spec 04, section 5, and its R-4.52 ff.

Order: the HTTP status, refined by the text; for a body without a telling status its code, type and text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import FailureClass, RunError, valid_text
from lanewayd.providers.failure_kinds import kind_of, reason_of
from lanewayd.providers.failure_texts import (
    SHORT_WINDOW_S,
    class_by_text,
    is_billing,
    is_overloaded,
    is_permanent,
    is_quota_window,
    is_server_error,
    is_short_window,
    observed_tokens,
    shape_problem,
    wait_in,
)
from lanewayd.providers.interface import Failed
from lanewayd.providers.redaction import excerpt

_MAX_TEXT_CHARS = 20_000

_K = FailureClass
_UNAVAILABLE = ErrorCode.PROVIDER_UNAVAILABLE
_REJECTED = ErrorCode.PROVIDER_REQUEST_REJECTED

# What a status says by itself.
_BY_STATUS: dict[int, FailureClass] = {
    401: _K.AUTH,
    402: _K.BILLING,
    403: _K.AUTH,
    404: _K.MODEL_NOT_FOUND,
    407: _K.AUTH,
    408: _K.TIMEOUT,
    410: _K.TIMEOUT,
    413: _K.CONTEXT_OVERFLOW,
    429: _K.RATE_LIMIT,
    529: _K.OVERLOADED,
}
# What a text may say instead. 400 and 422 say nothing by themselves: there the text alone decides.
_REFINEMENTS: dict[int, frozenset[FailureClass]] = {
    401: frozenset({_K.BILLING, _K.AUTH_PERMANENT}),
    403: frozenset({_K.BILLING, _K.AUTH_PERMANENT, _K.REFUSAL}),
    404: frozenset({_K.CONTEXT_OVERFLOW, _K.SESSION_EXPIRED, _K.BILLING, _K.AUTH, _K.AUTH_PERMANENT}),
    410: frozenset({_K.SESSION_EXPIRED, _K.BILLING, _K.AUTH, _K.AUTH_PERMANENT, _K.MODEL_NOT_FOUND}),
    413: frozenset({_K.RATE_LIMIT, _K.BILLING}),
}
_SAID_OVERLOADED = frozenset({499, 503})
_SAID_SERVER_ERROR = frozenset({500, 502, 504, 521, 522, 523, 524})
# 408 is what an idle wait is; a status of a failing service stays PROVIDER_UNAVAILABLE, whatever its class.
_STALLED_STATUS = 408
_GONE_STATUS = 410


@dataclass(frozen=True, slots=True)
class Fault:
    """A classified failure. `what` is the first sentence of the error; `said` the provider's own words, redacted."""

    reason: ErrorCode
    what: str
    is_transient: bool = False
    retry_after_s: float | None = None
    said: str = ""
    finer: FailureClass | None = None
    """None: what the reason stands for."""
    observed_tokens: int = 0
    """The size of the prompt as an overflow names it (R-4.55); 0 = it does not."""
    is_idle: bool = False
    """Nothing came for too long (spec 05, section 8)."""

    @property
    def kind(self) -> FailureClass:
        """What is done about it depends on this (spec 04, section 6)."""
        return self.finer or kind_of(self.reason)


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


def fault(
    reason: ErrorCode,
    what: str = "",
    *,
    is_transient: bool | None = None,
    said: str = "",
    finer: FailureClass | None = None,
) -> Fault:
    """A fault seen on this side. Transient by default when another try is worth while: unreachable, failing, cut."""
    if is_transient is None:
        is_transient = reason in _RETRYABLE - {ErrorCode.PROVIDER_STALLED, ErrorCode.PROVIDER_RATE_LIMITED}
    return Fault(reason, what or _WHAT[reason], is_transient, None, said, finer)


def stalled(what: str) -> Fault:
    """Nothing came for too long: the call was given up on this side."""
    return Fault(ErrorCode.PROVIDER_STALLED, what, is_idle=True)


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


def failed_by(cause: Fault, failed: Failed) -> Failed:
    """The terminal event, with what the cause says about another try."""
    return replace(
        failed,
        is_transient=cause.is_transient,
        retry_after_s=cause.retry_after_s,
        finer=cause.finer,
        observed_tokens=cause.observed_tokens,
        is_idle=cause.is_idle,
    )


def classify_response(status: int, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Fault:
    """The failure that a response with an error status reports. `headers` is case-insensitive; `now` is wall time."""
    text = body.decode("utf-8", "replace")
    return _by_status(status, _parsed(text), text, retry_after_s(headers, now=now))


def classify_error_body(body: Any) -> Fault:
    """The failure that an error object in a successful response reports: its class comes from the object alone."""
    raw = json.dumps(body, ensure_ascii=False, default=str)
    status = _status_in(body)
    if status is not None:
        return _by_status(status, body, raw, None)
    text = _error_text(body, raw)
    kind = class_by_text(text)
    if kind is not None and kind is not FailureClass.NO_ERROR_DETAILS:
        return _fault_of(kind, text, None)
    if kind is None:
        kind = FailureClass.UNCLASSIFIED if _error_text(body, "") else FailureClass.EMPTY_RESPONSE
    what = "the answer holds an error of an unknown kind"
    return Fault(ErrorCode.PROVIDER_BAD_RESPONSE, what, said=excerpt(text), finer=kind)


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


def _by_status(status: int, body: Any, raw: str, wait_s: float | None) -> Fault:
    text = _error_text(body, raw)
    if 300 <= status < 400:
        return Fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the service answered with a redirect", said=excerpt(text))
    found = _fault_of(_kind_by_status(status, body, text, wait_s), text, wait_s)
    if status == _GONE_STATUS and found.kind is FailureClass.TIMEOUT:
        return replace(found, reason=ErrorCode.PROVIDER_REQUEST_REJECTED, what=_WHAT[_REJECTED], is_transient=False)
    if found.kind is FailureClass.TIMEOUT and status != _STALLED_STATUS and (status >= 500 or status == 499):
        return replace(found, reason=_UNAVAILABLE, what=_WHAT[_UNAVAILABLE], is_transient=True)
    return found


def _kind_by_status(status: int, body: Any, text: str, wait_s: float | None) -> FailureClass:
    code = _code_of(body)
    if is_permanent(code):
        return FailureClass.AUTH_PERMANENT
    if status in _SAID_OVERLOADED:
        return FailureClass.OVERLOADED if is_overloaded(text) else FailureClass.TIMEOUT
    if status in _SAID_SERVER_ERROR:
        return FailureClass.SERVER_ERROR if is_server_error(code) else FailureClass.TIMEOUT
    if status == 402 and is_quota_window(text):
        return FailureClass.RATE_LIMIT
    if status == 429 and is_billing(text) and not _ends_soon(text, wait_s):
        # Google sends everyone to "plan and billing", also whom it lets in again after some seconds.
        return FailureClass.BILLING
    by_text = class_by_text(text)
    by_status = _BY_STATUS.get(status)
    if by_status is None:
        return FailureClass.TIMEOUT if status >= 500 else by_text or FailureClass.FORMAT
    return by_text if by_text in _REFINEMENTS.get(status, ()) and by_text else by_status


def _fault_of(kind: FailureClass, text: str, wait_s: float | None) -> Fault:
    """A failure of this class, with what else the text tells."""
    if wait_s is None:
        wait_s = wait_in(text)
    reason = reason_of(kind)
    what = _WHAT[reason]
    is_limited = kind is FailureClass.RATE_LIMIT
    if kind is FailureClass.FORMAT and (problem := shape_problem(text)):
        what += f": {problem}"
    size = observed_tokens(text) if kind is FailureClass.CONTEXT_OVERFLOW else 0
    is_transient = is_short_window(text, wait_s) if is_limited else reason is _UNAVAILABLE
    return Fault(reason, what, is_transient, wait_s, excerpt(text), kind, size)


def _ends_soon(text: str, wait_s: float | None) -> bool:
    """A wait is named, and it is a short one."""
    wait_s = wait_in(text) if wait_s is None else wait_s
    return wait_s is not None and wait_s <= SHORT_WINDOW_S


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


def _code_of(body: Any) -> str:
    """The type and code of an error body: what it is called by, without the message."""
    error = _error_object(body)
    if not isinstance(error, dict):
        return ""
    return " ".join(str(error[name]) for name in ("type", "code", "status") if isinstance(error.get(name), str))


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
