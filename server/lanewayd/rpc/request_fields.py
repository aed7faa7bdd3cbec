"""Checks of fields that several requests have. Pure."""

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.wire_text import has_control_characters, size_bytes


def required(text: str, field: str) -> str:
    """`text`. Raises FieldError (FIELD_INVALID) when it is empty."""
    if not text:
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} is required.")
    return text


def check_size(text: str, field: str, limit_bytes: int) -> None:
    """Raise FieldError (FIELD_INVALID) for a text of more than `limit_bytes`."""
    if size_bytes(text) > limit_bytes:
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} has at most {limit_bytes:,} bytes.")


def check_session_key(session_key: str, limits: Limits, *, field: str = "session_key") -> None:
    """Raise FieldError (SESSION_KEY_MALFORMED) for a key that no session can have. Empty passes."""
    if size_bytes(session_key) > limits.session_key_bytes:
        problem = f"A session key has at most {limits.session_key_bytes:,} bytes."
    elif has_control_characters(session_key):
        problem = "A session key has no control characters."
    else:
        return
    raise FieldError(ErrorCode.SESSION_KEY_MALFORMED, field, problem)


def required_session_key(session_key: str, limits: Limits) -> str:
    """`session_key`. Raises FieldError when it is empty (FIELD_INVALID) or malformed (SESSION_KEY_MALFORMED)."""
    check_session_key(session_key, limits)
    return required(session_key, "session_key")
