"""The text of a script -> the turns a scripted model plays. Pure; the format is in docs/scripted-models.md."""

import json
from dataclasses import dataclass
from typing import Any

import yaml

from lanewayd.errors import ErrorCode
from lanewayd.messages import StopReason, Usage, valid_text

_TURN_FIELDS = ("text", "reasoning", "delay_s", "repeat", "tool_calls", "stop", "usage", "error")
_CALL_FIELDS = ("name", "arguments", "id")
_ERROR_FIELDS = ("reason", "message", "http_status", "transient", "retry_after_s")
_USAGE_FIELDS = ("input_tokens", "output_tokens")
_REASONS = tuple(
    code.value for code in ErrorCode if code.value.startswith("PROVIDER_") or code is ErrorCode.CONTEXT_OVERFLOW
)
_STOPS = (StopReason.STOP, StopReason.LENGTH, StopReason.TOOL_USE)


class ScriptError(ValueError):
    """A script that cannot be played; the text names the line or the field."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call. `arguments` may hold placeholders in its texts; an empty `call_id` is made up."""

    name: str
    arguments: dict[str, Any]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ScriptedError:
    """A failure that ends a turn."""

    reason: ErrorCode
    message: str
    http_status: int = 0
    is_transient: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model. `chunks` and `reasoning` are the deltas of one pass; `repeat` passes are played."""

    chunks: tuple[str, ...]
    reasoning: tuple[str, ...]
    calls: tuple[ScriptedCall, ...]
    stop_reason: StopReason
    delay_s: float
    repeat: int
    usage: Usage
    error: ScriptedError | None


def parse_script(text: str) -> tuple[Turn, ...]:
    """The turns, at least one. Raises ScriptError."""
    try:
        document = _mended(yaml.safe_load(text))
    except RecursionError as error:
        raise ScriptError("nested too deeply") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise ScriptError(f"{where}{getattr(error, 'problem', None) or 'not YAML'}") from error
    turns = _mapping(document, "the script", ("turns",)).get("turns")
    if not isinstance(turns, list) or not turns:
        raise ScriptError("turns: a list with at least one turn is needed")
    return tuple(_turn(turn, f"turns[{position}]") for position, turn in enumerate(turns))


def _mended(value: Any) -> Any:
    """`value` with every text in it valid: an escape of YAML can write half a character."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [_mended(part) for part in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(part) for key, part in value.items()}
    return value


def _turn(value: Any, where: str) -> Turn:
    fields = _mapping(value, where, _TURN_FIELDS)
    calls = fields.get("tool_calls", [])
    if not isinstance(calls, list):
        raise ScriptError(f"{where}.tool_calls: a list is needed")
    scripted = tuple(_call(call, f"{where}.tool_calls[{position}]") for position, call in enumerate(calls))
    stop = fields.get("stop", StopReason.TOOL_USE if scripted else StopReason.STOP)
    if stop not in _STOPS:
        raise ScriptError(f"{where}.stop: one of {', '.join(_STOPS)} is needed")
    usage = _mapping(fields.get("usage", {}), f"{where}.usage", _USAGE_FIELDS)
    return Turn(
        chunks=_chunks(fields.get("text"), f"{where}.text"),
        reasoning=_chunks(fields.get("reasoning"), f"{where}.reasoning"),
        calls=scripted,
        stop_reason=StopReason(stop),
        delay_s=_number(fields.get("delay_s", 0), f"{where}.delay_s"),
        repeat=_count(fields.get("repeat", 1), f"{where}.repeat"),
        usage=Usage(
            input_tokens=_count(usage.get("input_tokens", 0), f"{where}.usage.input_tokens"),
            output_tokens=_count(usage.get("output_tokens", 0), f"{where}.usage.output_tokens"),
        ),
        error=_error(fields["error"], f"{where}.error") if fields.get("error") is not None else None,
    )


def _call(value: Any, where: str) -> ScriptedCall:
    fields = _mapping(value, where, _CALL_FIELDS)
    arguments = fields.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise ScriptError(f"{where}.arguments: a mapping is needed")
    try:
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScriptError(f"{where}.arguments: no JSON ({error}); quote dates and times") from error
    name = _string(fields.get("name"), f"{where}.name")
    return ScriptedCall(name, arguments, _string(fields.get("id", "made up"), f"{where}.id") if "id" in fields else "")


def _error(value: Any, where: str) -> ScriptedError:
    fields = _mapping(value, where, _ERROR_FIELDS)
    reason = fields.get("reason", ErrorCode.PROVIDER_UNAVAILABLE.value)
    if reason not in _REASONS:
        raise ScriptError(f"{where}.reason: one of {', '.join(_REASONS)} is needed")
    is_transient = fields.get("transient", False)
    if not isinstance(is_transient, bool):
        raise ScriptError(f"{where}.transient: true or false is needed")
    wait = fields.get("retry_after_s")
    return ScriptedError(
        ErrorCode(reason),
        _string(fields.get("message", "the script says so"), f"{where}.message"),
        _count(fields.get("http_status", 0), f"{where}.http_status"),
        is_transient,
        None if wait is None else _number(wait, f"{where}.retry_after_s"),
    )


def _mapping(value: Any, where: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScriptError(f"{where}: a mapping is needed")
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        raise ScriptError(f"{where}: unknown field {unknown!r}; known are {', '.join(known)}")
    return value


def _chunks(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(chunk, str) for chunk in value):
        return tuple(value)
    raise ScriptError(f"{where}: a text or a list of texts is needed")


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ScriptError(f"{where}: a text is needed")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ScriptError(f"{where}: a number from 0 on is needed")
    return float(value)


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1e12:
        raise ScriptError(f"{where}: a whole number from 0 on is needed")
    return value
