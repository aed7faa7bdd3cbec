"""Finds the JSON object in what a model answered. Pure."""

import json
import math
import re
from typing import Any

from lanewayd.messages import valid_text

MAX_ANSWER_DEPTH = 30
"""Deeper objects cannot be read back from a protobuf Struct by all clients."""

_FENCE = re.compile(r"```[\w+-]*\s*")
_MOST_BLOCKS = 8


class AnswerUnreadable(ValueError):
    """There is no object that can be used; the text says why, for the model."""


def object_in(text: str) -> dict[str, Any]:
    """The answer: all of `text`, or the last fenced block in it, is one JSON object. Raises AnswerUnreadable."""
    for candidate in _candidates(text):
        try:
            value = _read(candidate)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict):
            raise AnswerUnreadable("it is JSON, but not an object")
        _check_depth(value, 1)
        return value
    raise AnswerUnreadable("it is not one JSON object")


def object_json(text: str) -> str:
    """The object in an answer, as compact JSON in valid UTF-8. Raises AnswerUnreadable."""
    return valid_text(json.dumps(object_in(text), ensure_ascii=False, separators=(",", ":")))


def _candidates(text: str) -> list[str]:
    """Where the object may be, best first. A fence inside a string of the object does not end it."""
    candidates = [text.strip()]
    closing = text.rfind("```")
    openings = [fence.end() for fence in _FENCE.finditer(text, 0, max(closing, 0)) if text[fence.end()] in "{["]
    candidates += [text[opening:closing].strip() for opening in reversed(openings[-_MOST_BLOCKS:])]
    return candidates


def _read(candidate: str) -> Any:
    """Numbers are those that a double can be near to: no other reader would take them."""
    return json.loads(candidate, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_within_double)


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_ANSWER_DEPTH:
        raise AnswerUnreadable(f"it is nested more than {MAX_ANSWER_DEPTH} deep")
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        _check_depth(member, depth + 1)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _within_double(text: str) -> int:
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number
