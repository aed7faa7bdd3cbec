"""UpdateSessionRequest -> SessionPatch: every check that needs nothing but the request. Pure.

Whatever parses as an UpdateSessionRequest gives a SessionPatch or a FieldError. The `field` of an error is the path as
it stands in the mask.
"""

from collections.abc import Mapping
from typing import Any

from laneway.v1 import agent_pb2, session_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import LARGEST_QUEUE_CAP, LONGEST_DEBOUNCE_MS, SessionPatch, SessionSettings
from lanewayd.rpc.agent_request import QUEUE_MODES
from lanewayd.rpc.convert import check_enum, duration_s
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.request_fields import check_size

_ENUMS: Mapping[str, tuple[Any, str]] = {
    "thinking": (agent_pb2.ThinkingLevel, "THINKING_LEVEL_"),
    "verbose": (agent_pb2.Verbosity, "VERBOSITY_"),
    "reasoning": (session_pb2.ReasoningVisibility, "REASONING_VISIBILITY_"),
    "queue_drop": (session_pb2.QueueDrop, "QUEUE_DROP_"),
}
_SETTINGS = ("model", *_ENUMS, "trace", "queue_mode", "queue_debounce", "queue_cap")
SETTABLE = (*_SETTINGS, "label", "pinned", "archived")
"""The paths that a mask may name."""
_SHOWN_PATH_LENGTH = 64


def session_patch(request: session_pb2.UpdateSessionRequest, limits: Limits) -> SessionPatch:
    """What the request sets. Raises FieldError: FIELD_INVALID, ENUM_UNKNOWN."""
    paths = frozenset(request.update_mask.paths)
    if not paths:
        raise _bad_mask("update_mask is empty")
    for path in sorted(paths):
        if path not in SETTABLE:
            raise _bad_mask(f"update_mask names {path[:_SHOWN_PATH_LENGTH]!r}, which cannot be set")
    values = {path: _value(request.session, path, limits) for path in SETTABLE if path in paths}
    settings = SessionSettings(**{_name_of(path): value for path, value in values.items() if path in _SETTINGS})
    marks = {path: value for path, value in values.items() if path not in _SETTINGS}
    return SessionPatch(frozenset(map(_name_of, paths)), settings, **marks)


def _name_of(path: str) -> str:
    """Of a field of SessionPatch or SessionSettings: there a time has its unit in the name."""
    return "queue_debounce_ms" if path == "queue_debounce" else path


def _value(session: session_pb2.Session, path: str, limits: Limits) -> Any:
    """What `path` is set to, as SessionPatch holds it."""
    if path in _ENUMS:
        return _word(session, path)
    if path == "trace":
        return session.trace if session.HasField("trace") else None
    if path == "queue_mode":
        return _queue_mode(session)
    if path == "queue_debounce":
        return _debounce_ms(session)
    if path == "queue_cap":
        return _cap(session)
    value = getattr(session, path)
    if isinstance(value, str):
        check_size(value, path, limits.name_bytes)
    return value


def _word(session: session_pb2.Session, path: str) -> str:
    """An enum's value in lower case; UNSPECIFIED is "" (not set)."""
    enum, prefix = _ENUMS[path]
    number = getattr(session, path)
    check_enum(enum, number, path)
    return enum.Name(number).removeprefix(prefix).lower() if number else ""


def _queue_mode(session: session_pb2.Session) -> str:
    check_enum(agent_pb2.QueueMode, session.queue_mode, "queue_mode")
    return QUEUE_MODES[session.queue_mode]


def _debounce_ms(session: session_pb2.Session) -> int | None:
    if not session.HasField("queue_debounce"):
        return None
    milliseconds = round(duration_s(session.queue_debounce, "queue_debounce") * 1000)
    if milliseconds > LONGEST_DEBOUNCE_MS:
        raise FieldError(ErrorCode.FIELD_INVALID, "queue_debounce", "queue_debounce is 1 h at most.")
    return milliseconds


def _cap(session: session_pb2.Session) -> int | None:
    if not 0 <= session.queue_cap <= LARGEST_QUEUE_CAP:
        raise FieldError(ErrorCode.FIELD_INVALID, "queue_cap", f"queue_cap is 1 to {LARGEST_QUEUE_CAP:,}, 0 clears it.")
    return session.queue_cap or None


def _bad_mask(problem: str) -> FieldError:
    return FieldError(ErrorCode.FIELD_INVALID, "update_mask", f"{problem}; name what to set: {', '.join(SETTABLE)}.")
