"""The class that a reason of the contract stands for when nothing finer is known, and the other way round. Pure."""

from lanewayd.errors import ErrorCode
from lanewayd.messages import FailureClass

_KINDS: dict[str, FailureClass] = {
    ErrorCode.PROVIDER_UNREACHABLE: FailureClass.TIMEOUT,
    ErrorCode.PROVIDER_AUTH: FailureClass.AUTH,
    ErrorCode.PROVIDER_BILLING: FailureClass.BILLING,
    ErrorCode.PROVIDER_MODEL_NOT_FOUND: FailureClass.MODEL_NOT_FOUND,
    ErrorCode.PROVIDER_REQUEST_REJECTED: FailureClass.FORMAT,
    ErrorCode.PROVIDER_RATE_LIMITED: FailureClass.RATE_LIMIT,
    ErrorCode.PROVIDER_UNAVAILABLE: FailureClass.SERVER_ERROR,
    # An answer that is not what the API promises is to the caller as one that did not come.
    ErrorCode.PROVIDER_BAD_RESPONSE: FailureClass.TIMEOUT,
    ErrorCode.PROVIDER_STREAM_CUT: FailureClass.TIMEOUT,
    ErrorCode.PROVIDER_STALLED: FailureClass.TIMEOUT,
    ErrorCode.PROVIDER_REFUSED: FailureClass.REFUSAL,
    ErrorCode.CONTEXT_OVERFLOW: FailureClass.CONTEXT_OVERFLOW,
}
_REASONS: dict[FailureClass, ErrorCode] = {
    FailureClass.AUTH: ErrorCode.PROVIDER_AUTH,
    FailureClass.AUTH_PERMANENT: ErrorCode.PROVIDER_AUTH,
    FailureClass.BILLING: ErrorCode.PROVIDER_BILLING,
    FailureClass.RATE_LIMIT: ErrorCode.PROVIDER_RATE_LIMITED,
    FailureClass.OVERLOADED: ErrorCode.PROVIDER_UNAVAILABLE,
    FailureClass.SERVER_ERROR: ErrorCode.PROVIDER_UNAVAILABLE,
    FailureClass.TIMEOUT: ErrorCode.PROVIDER_STALLED,
    FailureClass.MODEL_NOT_FOUND: ErrorCode.PROVIDER_MODEL_NOT_FOUND,
    FailureClass.SESSION_EXPIRED: ErrorCode.PROVIDER_REQUEST_REJECTED,
    FailureClass.CONTEXT_OVERFLOW: ErrorCode.CONTEXT_OVERFLOW,
    FailureClass.REFUSAL: ErrorCode.PROVIDER_REFUSED,
    FailureClass.FORMAT: ErrorCode.PROVIDER_REQUEST_REJECTED,
}


def kind_of(reason: str) -> FailureClass:
    """The class of a reason; UNKNOWN for one that is no provider's."""
    return _KINDS.get(reason, FailureClass.UNKNOWN)


def reason_of(kind: FailureClass) -> ErrorCode:
    """The reason of a class; BAD_RESPONSE for what nobody could classify."""
    return _REASONS.get(kind, ErrorCode.PROVIDER_BAD_RESPONSE)
