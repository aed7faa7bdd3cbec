"""Refusals as gRPC statuses: one table, one shape of details, one translation for all handlers."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.messages import valid_text
from lanewayd.rpc.limits import MAX_ERROR_TEXT_BYTES
from lanewayd.rpc.wire_text import cut
from lanewayd.telemetry.logs import trace_without_texts

logger = logging.getLogger(__name__)

DOMAIN = "laneway"

_INVALID_ARGUMENT = (
    ErrorCode.MALFORMED_MESSAGE,
    ErrorCode.MESSAGE_EMPTY,
    ErrorCode.MESSAGE_TOO_LONG,
    ErrorCode.ATTACHMENT_TOO_LARGE,
    ErrorCode.SESSION_KEY_MALFORMED,
    ErrorCode.IDEMPOTENCY_KEY_MALFORMED,
    ErrorCode.TIMEOUT_INVALID,
    ErrorCode.ENUM_UNKNOWN,
    ErrorCode.PAGE_TOKEN_INVALID,
    ErrorCode.MODEL_UNKNOWN,
    ErrorCode.FIELD_INVALID,
)

STATUS_CODES: Mapping[ErrorCode, grpc.StatusCode] = {
    **dict.fromkeys(_INVALID_ARGUMENT, grpc.StatusCode.INVALID_ARGUMENT),
    ErrorCode.RUN_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.SESSION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.AGENT_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.ENTRY_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.IDEMPOTENCY_KEY_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    ErrorCode.MODEL_NOT_CONFIGURED: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.SESSION_ACTIVE: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.SESSION_ARCHIVED: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.SESSION_BUSY: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.NESTED_IN_SESSION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.CURSOR_PRUNED: grpc.StatusCode.OUT_OF_RANGE,
    ErrorCode.CURSOR_AHEAD: grpc.StatusCode.OUT_OF_RANGE,
    ErrorCode.QUEUE_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.TENANT_LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.DRAINING: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.STORE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.NOT_AVAILABLE_YET: grpc.StatusCode.UNIMPLEMENTED,
    ErrorCode.INTERNAL: grpc.StatusCode.INTERNAL,
}
"""Reasons that answer a call. The others are ends of runs; one that leaves a handler is a bug, hence INTERNAL."""

_RETRY_STATUSES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
_DEFAULT_RETRY_S = 1.0
_CUT_MARK = "..."
_METADATA_VALUE_BYTES = 512
_METADATA_BYTES = 1500
_VIOLATION_BYTES = 300
_UNEXPECTED = "The server could not handle this call because of a fault of its own; its log names the place."


def status_code(code: ErrorCode) -> grpc.StatusCode:
    """The gRPC status that carries `code`."""
    return STATUS_CODES.get(code, grpc.StatusCode.INTERNAL)


def status_text(text: str) -> str:
    """`text` cut so that it has at most 1,000 bytes as gRPC sends it.

    gRPC writes each byte outside of printable ASCII, and each percent sign, as three: a message of 16 KiB after that
    growth would replace the status by RESOURCE_EXHAUSTED at the client. Source: gRPC over HTTP/2, Status-Message.
    """
    text = valid_text(text[: MAX_ERROR_TEXT_BYTES + 1])
    if _sent_bytes(text) <= MAX_ERROR_TEXT_BYTES:
        return text
    left = MAX_ERROR_TEXT_BYTES - len(_CUT_MARK)
    for index, character in enumerate(text):
        left -= _sent_bytes(character)
        if left < 0:
            return text[:index] + _CUT_MARK
    return text


def _sent_bytes(text: str) -> int:
    return sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in text.encode())


def status_of(error: LanewayError) -> status_pb2.Status:
    """`error` as google.rpc.Status: ErrorInfo always, BadRequest and RetryInfo where the contract asks for them.

    The text has at most 1,000 bytes, the whole less than 4 KiB.
    """
    code = status_code(error.code)
    text = status_text(error.message)
    metadata = _fitting_metadata(error.metadata)
    status = status_pb2.Status(code=code.value[0], message=text)
    _add(status, error_details_pb2.ErrorInfo(reason=error.code.value, domain=DOMAIN, metadata=metadata))
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=metadata.get("field", ""), description=cut(text, _VIOLATION_BYTES)
        )
        _add(status, error_details_pb2.BadRequest(field_violations=[violation]))
    if code in _RETRY_STATUSES:
        delay_s = _DEFAULT_RETRY_S if error.retry_after_s is None else max(error.retry_after_s, 0.0)
        delay = Duration(seconds=int(delay_s), nanos=int(delay_s % 1 * 1_000_000_000))
        _add(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def _add(status: status_pb2.Status, detail: Any) -> None:
    status.details.add().Pack(detail)


def _fitting_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """`metadata` with long values cut, and without those that would make the details too large."""
    fitting = {}
    left = _METADATA_BYTES
    for key, value in metadata.items():
        short = cut(value, _METADATA_VALUE_BYTES)
        left -= len(key) + len(short.encode())
        if left >= 0:
            fitting[key] = short
    return fitting


@asynccontextmanager
async def errors_as_status(context: grpc.aio.ServicerContext[Any, Any], method: str) -> AsyncIterator[None]:
    """Turn what the body raises into the status of the call `method`.

    A `LanewayError` becomes the status it names. Anything else is a bug: INTERNAL with a neutral text, and one log
    line that says where, without the exception's text, which may quote what a user wrote. Cancellation passes.
    """
    try:
        yield
    except LanewayError as error:
        await context.abort_with_status(rpc_status.to_status(status_of(error)))
    except grpc.aio.AbortError:
        raise
    except Exception as error:  # noqa: BLE001 - the edge of a call: the caller must get a status with a reason
        logger.error(  # noqa: TRY400 - the exception's text would be logged with it
            "call failed unexpectedly",
            extra={
                "rpc_method": method,
                "error_type": type(error).__name__,
                "error_trace": trace_without_texts(error),
            },
        )
        unexpected = LanewayError(ErrorCode.INTERNAL, _UNEXPECTED)
        await context.abort_with_status(rpc_status.to_status(status_of(unexpected)))
