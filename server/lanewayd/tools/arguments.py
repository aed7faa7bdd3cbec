"""Checks what a model gave as arguments against a tool's JSON schema (R-5.23). Pure.

The text must be one JSON object and nothing else. Where the schema wants another type than the value has and the value
says exactly one such thing ("5" for a number, 5 for a string), it is taken as that. Integers keep every digit.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from lanewayd.tools.result_limits import Ends, shorten
from lanewayd.tools.terminal_text import without_nul

_MOST_PROBLEMS = 20
_PROBLEM_CHARS = 300
_RECEIVED_CHARS = 2_200
_WRAPPED_NUMBER_CHARS = 400
_NO_VALUE = object()


@dataclass(frozen=True, slots=True)
class ArgumentsRefused:
    """Why the arguments cannot be used, for the model: each path with its problem, then what was received."""

    text: str


class ArgumentCheck:
    """The check of one tool."""

    def __init__(self, tool_name: str, schema: dict[str, Any]) -> None:
        self._tool_name = tool_name
        self._schema = schema
        self._validator = Draft202012Validator(schema)

    def check(self, arguments_json: str) -> dict[str, Any] | ArgumentsRefused:
        """The arguments to run with. Blank text counts as no arguments: some models send it for `{}`."""
        try:
            arguments = _parse(arguments_json) if arguments_json.strip() else {}
        except (ValueError, RecursionError) as error:
            problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            return self._refused([f"they are not one JSON object: {problem}"], arguments_json)
        if not isinstance(arguments, dict):
            return self._refused(["they are not a JSON object"], arguments_json)
        try:
            coerced = _coerced(arguments, self._schema)
            errors = sorted(self._validator.iter_errors(coerced), key=lambda error: error.json_path)
        except RecursionError:
            return self._refused(["they are nested too deeply"], arguments_json)
        if errors:
            return self._refused([_problem(error) for error in errors], arguments_json)
        return dict(coerced)

    def _refused(self, problems: list[str], arguments_json: str) -> ArgumentsRefused:
        lines = [f"The arguments of {self._tool_name} cannot be used:"]
        lines += [f"- {problem[:_PROBLEM_CHARS]}" for problem in problems[:_MOST_PROBLEMS]]
        if len(problems) > _MOST_PROBLEMS:
            lines.append(f"- and {len(problems) - _MOST_PROBLEMS} more")
        received = shorten(Ends(arguments_json, "", len(arguments_json)), _RECEIVED_CHARS)
        return ArgumentsRefused(without_nul("\n".join([*lines, f"Received: {received}"])))


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_without_duplicates)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:80]!r} stands there twice")
    return result


def _problem(error: ValidationError) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".") or "(arguments)"
    if error.validator == "required" and isinstance(error.instance, dict):
        required: Any = error.validator_value
        missing = [name for name in required if name not in error.instance]
        # One error per missing name; its message begins with that name.
        name = next((name for name in missing if error.message.startswith(repr(name))), missing[0])
        prefix = "" if path == "(arguments)" else f"{path}."
        return f"{prefix}{name}: is required but missing"
    return f"{path}: {error.message}"


def _types_of(schema: dict[str, Any]) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _coerced(value: Any, schema: Any) -> Any:
    """`value` with the types that `schema` wants, as far as that is clear; never the caller's own containers."""
    if not isinstance(schema, dict):
        return value
    types = _types_of(schema)
    if types and not _has_type(value, types):
        value = _converted(value, types)
    if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
        value = int(value)
    if isinstance(value, dict):
        return _coerced_members(value, schema)
    if isinstance(value, list):
        return [_coerced(item, schema.get("items")) for item in value]
    return value


def _coerced_members(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    required = schema.get("required") or ()
    result = {}
    for name, member in value.items():
        member_schema = properties.get(name, others)
        if member is None and name not in required and name in properties and _refuses_null(member_schema):
            # Models write null for an optional argument they leave out.
            continue
        result[name] = _coerced(member, member_schema)
    return result


def _refuses_null(schema: Any) -> bool:
    types = _types_of(schema) if isinstance(schema, dict) else ()
    return bool(types) and "null" not in types


def _has_type(value: Any, types: Iterable[str]) -> bool:
    checker = Draft202012Validator.TYPE_CHECKER
    return any(checker.is_type(value, name) for name in types)


def _converted(value: Any, types: tuple[str, ...]) -> Any:
    for name in types:
        converted = _as_type(value, name)
        if converted is not _NO_VALUE:
            return converted
    return value


def _as_type(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return _text_as_type(value, name)
    if name == "string" and isinstance(value, bool):
        return "true" if value else "false"
    if name == "string" and isinstance(value, int | float):
        return json.dumps(value)
    return _NO_VALUE


def _text_as_type(text: str, name: str) -> Any:
    """What `text` says as JSON, if that is of the wanted type."""
    if name in ("integer", "number") and len(text) > _WRAPPED_NUMBER_CHARS:
        return _NO_VALUE
    try:
        value = _parse(text)
    except (ValueError, RecursionError):
        return _NO_VALUE
    return value if _has_type(value, (name,)) else _NO_VALUE
