"""Readers of a chat completion chunk's loosely typed fields. Pure; whatever does not fit reads as absent."""

import json
from typing import Any

from lanewayd.messages import StopReason
from lanewayd.providers.answer import Part

_PLAIN_FIELDS = frozenset(("content", "role"))
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_NOTHING = ("", "")
STOP_REASONS: dict[str, StopReason] = {
    "stop": StopReason.STOP,
    "end": StopReason.STOP,
    "tool_calls": StopReason.TOOL_USE,
    "tool_call": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.LENGTH,
}


def plain_part_of(chunk: Any) -> tuple[str, str]:
    """The text, or the thought and the field it came in, of a chunk that has nothing else to say, as nearly all do;
    nothing for any other."""
    try:
        choice = chunk["choices"][0]
        delta = choice["delta"]
        text = delta.get("content")
        says_more = choice.get("finish_reason") or choice.get("usage") or chunk.get("usage") or chunk.get("error")
    except (KeyError, IndexError, TypeError, AttributeError):
        return _NOTHING
    if says_more:
        return _NOTHING
    if text:
        if not isinstance(text, str) or (len(delta) > 1 and _has_more(delta)):
            return _NOTHING
        return text, ""
    thought = _NOTHING
    for name, value in delta.items():
        if value and name not in _PLAIN_FIELDS:
            if thought is not _NOTHING or name not in REASONING_FIELDS or not isinstance(value, str):
                return _NOTHING
            thought = value, name
    return thought


def _has_more(delta: dict[str, Any]) -> bool:
    return any(value for name, value in delta.items() if name not in _PLAIN_FIELDS)


def first_choice(chunk: dict[str, Any]) -> dict[str, Any]:
    """`choices[0]`, or an empty choice."""
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def delta_of(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice's `delta`, or the whole `message` that some servers send in its place."""
    for name in ("delta", "message"):
        value = choice.get(name)
        if isinstance(value, dict) and value:
            return value
    return {}


def reasoning_of(delta: dict[str, Any]) -> Part | None:
    """The first reasoning field that is not empty, else the readable `reasoning_details` (R-5.45)."""
    for name in REASONING_FIELDS:
        value = delta.get(name)
        if isinstance(value, str) and value:
            return Part(value, is_reasoning=True, field=name)
    if "reasoning_details" not in delta:
        return None
    texts = [item.get("text") or item.get("summary") for item in _details(delta)]
    text = "".join(text for text in texts if isinstance(text, str))
    return Part(text, is_reasoning=True, field="reasoning") if text else None


def encrypted_reasoning_of(delta: dict[str, Any]) -> dict[str, str]:
    """The encrypted `reasoning_details`, as JSON, by the id of the call they belong to."""
    return {
        item["id"]: json.dumps(item, ensure_ascii=False)
        for item in _details(delta)
        if item.get("type") == "reasoning.encrypted" and isinstance(item.get("id"), str) and item["id"]
    }


def content_of(delta: dict[str, Any]) -> list[Part]:
    """`content` as text, or as a list of typed parts; a `refusal` is what the model says."""
    content = delta.get("content") or delta.get("refusal")
    if isinstance(content, str):
        return [Part(content)]
    if not isinstance(content, list):
        return []
    parts: list[Part] = []
    for item in content:
        if isinstance(item, str):
            parts.append(Part(item))
        elif isinstance(item, dict) and item.get("type") in ("thinking", "reasoning"):
            parts.append(Part(_joined(item.get("thinking") or item.get("text")), is_reasoning=True))
        elif isinstance(item, dict):
            parts.append(Part(_joined(item.get("text"))))
    return [part for part in parts if part.text]


def _details(delta: dict[str, Any]) -> list[dict[str, Any]]:
    details = delta.get("reasoning_details")
    return [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []


def _joined(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    texts = [item.get("text") if isinstance(item, dict) else item for item in value]
    return "".join(text for text in texts if isinstance(text, str))
