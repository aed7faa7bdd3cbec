"""Wire <-> domain for what several messages share: times, enums, texts, usage, errors, payloads. Pure.

Every text that leaves is scrubbed of lone surrogates, every number fits its field.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from laneway.v1 import run_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import Payload, RunError, ToolOutcome, Usage, valid_text
from lanewayd.records import RunState
from lanewayd.rpc.limits import MAX_ERROR_TEXT_BYTES, MAX_NAME_BYTES
from lanewayd.rpc.wire_text import cut, size_bytes

MAX_DURATION_S = 10_000 * 31_557_600
"""10,000 years, the range of google.protobuf.Duration."""

_NANOS = 1_000_000_000
_USD_DIGITS = 9
"""Less than a token of the cheapest model; it hides in which order a sum was made."""
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1


def timestamp(moment: datetime | None) -> Timestamp | None:
    """The wire form of an aware time; None stays absent."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def duration(seconds: float | None) -> Duration | None:
    """The wire form of a duration, held within 0 to 10,000 years; None stays absent."""
    if seconds is None:
        return None
    nanos = round(min(max(seconds, 0.0), MAX_DURATION_S) * _NANOS)
    return Duration(seconds=nanos // _NANOS, nanos=nanos % _NANOS)


def duration_s(sent: Duration, field: str) -> float:
    """Seconds of a duration that a caller sent. Raises FieldError (TIMEOUT_INVALID) outside 0 to 10,000 years.

    `Duration.ToTimedelta` overflows on values that parse; so the parts are read here.
    """
    whole, nanos = sent.seconds, sent.nanos
    if whole < 0 or not 0 <= nanos < _NANOS or (whole, nanos) > (MAX_DURATION_S, 0):
        raise FieldError(ErrorCode.TIMEOUT_INVALID, field, f"{field} must be between 0 and 10,000 years.")
    return whole + nanos / _NANOS


def int32(number: int) -> int:
    """`number` held within 0 and the largest int32."""
    return min(max(number, 0), _INT32_MAX)


def int64(number: int) -> int:
    """`number` held within 0 and the largest int64."""
    return min(max(number, 0), _INT64_MAX)


def name(text: str) -> str:
    """A word or id that another program gave, at most 512 bytes."""
    return cut(text, MAX_NAME_BYTES)


def check_enum(enum: Any, number: int, field: str) -> None:
    """Raise FieldError (ENUM_UNKNOWN) unless `enum`, a generated enum class, defines `number`."""
    if number not in enum.DESCRIPTOR.values_by_number:
        raise FieldError(ErrorCode.ENUM_UNKNOWN, field, f"{field} has the value {number}, which is not defined.")


def refuse_yet(field: str) -> FieldError:
    """The refusal of a field whose capability has not landed (D-16)."""
    return FieldError(ErrorCode.NOT_AVAILABLE_YET, field, f"{field} is not available yet; leave it out.")


def run_state(state: RunState) -> str:
    """The full name of the wire value, which message constructors take."""
    return f"RUN_STATE_{state.name}"


def run_state_of(number: int, field: str) -> RunState:
    """The state that a caller named. Raises FieldError (ENUM_UNKNOWN), also for UNSPECIFIED."""
    check_enum(run_pb2.RunState, number, field)
    if number == run_pb2.RUN_STATE_UNSPECIFIED:
        raise FieldError(ErrorCode.ENUM_UNKNOWN, field, f"{field} holds RUN_STATE_UNSPECIFIED, which no run has.")
    return RunState(run_pb2.RunState.Name(number).removeprefix("RUN_STATE_").lower())


def tool_outcome(outcome: ToolOutcome | None) -> str | None:
    """The full name of the wire value; None = the call has not ended."""
    return None if outcome is None else f"TOOL_OUTCOME_{outcome.name}"


def usage(used: Usage | None) -> run_pb2.Usage | None:
    """The wire form: there `input_tokens` includes what was read from and written to the cache."""
    if used is None:
        return None
    return run_pb2.Usage(
        input_tokens=int64(used.input_tokens + used.cache_read_tokens + used.cache_write_tokens),
        output_tokens=int64(used.output_tokens),
        cache_read_tokens=int64(used.cache_read_tokens),
        cache_write_tokens=int64(used.cache_write_tokens),
        reasoning_tokens=int64(used.reasoning_tokens),
        total_tokens=int64(used.total_tokens),
        cost_usd=None if used.whole_cost_usd is None else round(used.whole_cost_usd, _USD_DIGITS),
        unavailable=used.unavailable,
    )


def run_error(error: RunError | None) -> run_pb2.RunError | None:
    """The wire form, its text cut at 1,000 bytes."""
    if error is None:
        return None
    return run_pb2.RunError(
        reason=name(error.reason),
        message=cut(error.message, MAX_ERROR_TEXT_BYTES),
        provider=name(error.provider),
        model=name(error.model),
        http_status=int32(error.http_status),
        retryable=error.retryable,
        tool_name=name(error.tool_name),
    )


def payload(piece: Payload, limit_bytes: int) -> run_pb2.Payload:
    """The wire form, its text cut at `limit_bytes`."""
    whole = valid_text(piece.text)
    text = cut(whole, limit_bytes)
    return run_pb2.Payload(
        text=text,
        truncated=piece.truncated or len(text) < len(whole),
        total_bytes=max(piece.total_bytes, size_bytes(whole)),
        is_error=piece.is_error,
        is_reasoning=piece.is_reasoning,
    )


def payloads(pieces: Iterable[Payload], limit_bytes: int) -> list[run_pb2.Payload]:
    """The wire form of a result, its texts cut so that they have at most `limit_bytes` together.

    The last piece gets its room first: it says how a failed run ended.
    """
    left = limit_bytes
    converted = []
    for piece in reversed(tuple(pieces)):
        converted.append(payload(piece, left))
        left -= size_bytes(converted[-1].text)
    return converted[::-1]
