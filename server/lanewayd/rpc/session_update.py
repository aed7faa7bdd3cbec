"""UpdateSessionRequest -> SessionPatch: every check that needs nothing but the request. Pure.

Whatever parses as an UpdateSessionRequest gives a SessionPatch or a FieldError. The `field` of an error is the path as
it stands in the mask.
"""

from collections.abc import Mapping
from typing import Any

from laneway.v1 import agent_pb2, session_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import SessionPatch, SessionSettings
from lanewayd.rpc.agent_request import QUEUE_MODES
from lanewayd.rpc.convert import check_enum
from lanewayd.rpc.limits import Limits
from lanewayd.rpc.request_fields import check_size

_ENUMS: Mapping[str, tuple[Any, str]] = {
    "thinking": (agent_pb2.ThinkingLevel, "THINKING_LEVEL_"),
    "verbose": (agent_pb2.Verbosity, "VERBOSITY_"),
    "reasoning": (session_pb2.ReasoningVisibility, "REASONING_VISIBILITY_"),
}
_SETTINGS = ("model", *_ENUMS, "trace", "queue_mode")
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
    settings = SessionSettings(**{path: value for path, value in values.items() if path in _SETTINGS})
    return SessionPatch(paths, settings, **{path: value for path, value in values.items() if path not in _SETTINGS})


def _value(session: session_pb2.Session, path: str, limits: Limits) -> Any:
    """What `path` is set to, as SessionPatch holds it."""
    if path in _ENUMS:
        return _word(session, path)
    if path == "trace":
        return session.trace if session.HasField("trace") else None
    if path == "queue_mode":
        return _queue_mode(session)
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


def _bad_mask(problem: str) -> FieldError:
    return FieldError(ErrorCode.FIELD_INVALID, "update_mask", f"{problem}; name what to set: {', '.join(SETTABLE)}.")
