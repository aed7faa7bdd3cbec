"""How calls fail: one exception family, made from what the server or gRPC says. Owns the classes and their choice.

`reason` is what to branch on where a class is too coarse: a word of the contract (ErrorInfo.reason), stable, and empty
when no service answered, but gRPC or something on the way. The text is for people and not stable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "laneway"
_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class Details:
    """What a status carries beside its code and text."""

    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    field: str = ""
    retry_after_s: float | None = None


NO_DETAILS = Details()


class LanewayError(Exception):
    """A call that failed. This class itself: a failure that has no class of its own here."""

    def __init__(self, status: grpc.StatusCode, message: str, details: Details = NO_DETAILS) -> None:
        text = message or "no details"
        super().__init__(f"{text} ({details.reason or status.name})")
        self.status = status
        """The gRPC status."""
        self.message = message
        """The server's text, for people."""
        self.reason = details.reason
        """The contract's reason, for programs; empty when no Laneway service gave one."""
        self.metadata = details.metadata
        """What goes with the reason: `field`, `run_id`, `earliest_seq`, `latest_seq`, `earliest_cursor` ..."""
        self.field = details.field
        """The field of the request that was refused; empty when it is not about one."""
        self.retry_after_s = details.retry_after_s
        """Seconds after which the server suggests another try; None when it suggests none."""


class InvalidRequest(LanewayError):
    """INVALID_ARGUMENT: the same request will always be refused; `field` names the culprit where there is one."""


class NotFound(LanewayError):
    """NOT_FOUND: the run, session, agent or entry does not exist, or retention has removed it."""


class IdempotencyKeyReused(LanewayError):
    """ALREADY_EXISTS: the idempotency key belongs to another request."""


class PreconditionFailed(LanewayError):
    """FAILED_PRECONDITION: not in this state of the service, for example MODEL_NOT_CONFIGURED, SESSION_ACTIVE."""


class CursorError(LanewayError):
    """OUT_OF_RANGE: the log does not go on where the reader stands."""

    @property
    def earliest_seq(self) -> int | None:
        """The oldest event of the run that is still stored; None for sessions and `all`."""
        return _number(self.metadata.get("earliest_seq"))

    @property
    def latest_seq(self) -> int | None:
        """The newest event of the run; None for sessions and `all`."""
        return _number(self.metadata.get("latest_seq"))

    @property
    def earliest_cursor(self) -> str:
        """The cursor to subscribe with in order to read from the oldest stored event; empty when there is none."""
        return self.metadata.get("earliest_cursor", "")


class CursorPruned(CursorError):
    """Events between the reader and the oldest stored one are gone: go on at `earliest_seq` or `earliest_cursor`."""


class CursorAhead(CursorError):
    """The reader stands above the last stored event: its position is of another store, or of one put back in time."""


class LimitReached(LanewayError):
    """RESOURCE_EXHAUSTED: nothing was done; try again later, `retry_after_s` says when. Also a message that is too
    large for gRPC, then without a reason."""


class Unavailable(LanewayError):
    """UNAVAILABLE: no server could be reached in the time given, or it is leaving (DRAINING), or it cannot write
    (STORE_UNAVAILABLE). What was asked for may have happened unless the reason is DRAINING."""


class DeadlineExceeded(LanewayError):
    """DEADLINE_EXCEEDED: no answer came in time. What was asked for may have happened."""


class NotAvailable(LanewayError):
    """UNIMPLEMENTED: this server cannot do that (NOT_AVAILABLE_YET names the field), or it is no Laneway server."""


class ClientClosed(LanewayError):
    """The client was closed before or during the call."""

    def __init__(self) -> None:
        super().__init__(grpc.StatusCode.CANCELLED, "the client was closed")


_BY_REASON: Mapping[str, type[LanewayError]] = {"CURSOR_PRUNED": CursorPruned, "CURSOR_AHEAD": CursorAhead}
_BY_STATUS: Mapping[grpc.StatusCode, type[LanewayError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: IdempotencyKeyReused,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionFailed,
    grpc.StatusCode.OUT_OF_RANGE: CursorError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitReached,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNIMPLEMENTED: NotAvailable,
}


def make_error(status: grpc.StatusCode, message: str, details: Details = NO_DETAILS) -> LanewayError:
    """The error of the class that fits."""
    error_class = _BY_REASON.get(details.reason) or _BY_STATUS.get(status, LanewayError)
    return error_class(status, message, details)


def error_of(error: grpc.aio.AioRpcError) -> LanewayError:
    """What gRPC raised, as an error of ours. Raise it `from` the original."""
    encoded = b""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            encoded = value
    return make_error(error.code(), error.details() or "", read_details(encoded))


def read_details(encoded: bytes) -> Details:
    """The details in an encoded google.rpc.Status; none when it does not parse. An ErrorInfo of another domain is of
    something on the way, and gives no reason."""
    try:
        status = status_pb2.Status.FromString(encoded)
    except DecodeError:
        return NO_DETAILS
    info, retry, bad = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), error_details_pb2.BadRequest()
    has_retry = False
    for detail in status.details:
        if not detail.Unpack(info) and not detail.Unpack(bad):
            has_retry = detail.Unpack(retry) or has_retry
    if info.domain != DOMAIN:
        info.Clear()
    metadata = dict(info.metadata)
    fields = [violation.field for violation in bad.field_violations if violation.field]
    delay = retry.retry_delay
    return Details(
        reason=info.reason,
        metadata=metadata,
        field=metadata.get("field") or (fields[0] if fields else ""),
        retry_after_s=max(0.0, delay.seconds + delay.nanos / 1e9) if has_retry else None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None
