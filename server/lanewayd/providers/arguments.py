"""The arguments of a tool call, as text and checked: what every dialect holds a call against. Pure.

Source: spec 05, R-5.38, R-5.53, R-5.58, R-5.77.
"""

import json
import re
from typing import Any

from lanewayd.messages import valid_text

MAX_ARGUMENT_BYTES = 256_000
MAX_CALLS = 256
_MAX_DEPTH = 128


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_CONTROL = re.compile(r"[\x00-\x1f]")


class CallRefused(ValueError):
    """A call that cannot be run; the text says why, for the error of the turn."""


def check_size(size_bytes: int) -> None:
    """Raises CallRefused for arguments of more bytes than a call may have."""
    if size_bytes > MAX_ARGUMENT_BYTES:
        raise CallRefused(f"the arguments of a tool call exceed {MAX_ARGUMENT_BYTES:,} bytes")


def argument_objects(name: str, text: str) -> list[str]:
    """The texts of the JSON objects in the arguments of the tool `name`: one, or several glued together (B-004).

    Nothing and null are an empty object. Raises CallRefused when there is anything else.
    """
    text = valid_text(text.strip())
    if text in ("", "null"):
        return ["{}"]
    objects: list[str] = []
    position = 0
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            value, end = None, position
        if not isinstance(value, dict) or _is_too_deep(text[position:end]):
            raise CallRefused(f"incomplete or malformed tool call: the arguments of {name} are no JSON object")
        objects.append(_without_lone_surrogates(text[position:end], value))
        position = end
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
    return objects


def argument_object(name: str, text: str) -> str:
    """As `argument_objects`, for a dialect in which a call has one object."""
    objects = argument_objects(name, text)
    if len(objects) != 1:
        raise CallRefused(f"incomplete or malformed tool call: the arguments of {name} are no JSON object")
    return objects[0]


def with_repaired_strings(text: str) -> str:
    """`text` with its string literals made legal: a raw control character is escaped, a lone backslash doubled."""
    return _STRING.sub(lambda literal: _legal(literal.group()), text)


def is_object(text: str) -> bool:
    """Whether `text` is one whole JSON object."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def object_text(text: str) -> str:
    """`text` if it is one whole JSON object, else an empty one: an imported call may have any arguments."""
    return text if is_object(text) else "{}"


def _legal(literal: str) -> str:
    literal = _BAD_ESCAPE.sub(lambda escape: escape.group() if escape.group(1) else "\\\\", literal)
    return _CONTROL.sub(lambda control: f"\\u{ord(control.group()):04x}", literal)


def _without_lone_surrogates(text: str, value: dict[str, Any]) -> str:
    """`text`, or `value` written anew when escapes in it may stand for halves of a surrogate pair."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return valid_text(json.dumps(value, ensure_ascii=False))


def _is_too_deep(text: str) -> bool:
    """Nested so deeply that readers with recursion would fail later."""
    if text.count("{") + text.count("[") <= _MAX_DEPTH:
        return False
    depth = deepest = 0
    in_string = is_escaped = False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif in_string:
            is_escaped = character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest > _MAX_DEPTH
