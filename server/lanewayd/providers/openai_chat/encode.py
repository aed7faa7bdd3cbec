"""ModelRequest -> the JSON of a chat completions request. Pure. Source: spec 05, section 7, "Chat completions".

Hygiene works on the request only: paired results, no blank turns, legal names, ids that are told apart, no lone
surrogates. Reasoning is repeated within the current tool loop, under the field it came in, to the model it came from.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
    valid_text,
)
from lanewayd.providers.history import pair_calls_with_results, start_of_tool_loop
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_chat.chunk_fields import REASONING_FIELDS

BLANK_USER = "(empty message)"
BLANK_RESULT = "(no output)"
_ILLEGAL_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64


def encode_request(request: ModelRequest, *, max_call_id_chars: int | None = None) -> bytes:
    """The request body. Ids of calls above `max_call_id_chars` are shortened, the same way in call and result."""
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
    # Put together from the messages' own texts: a long conversation is encoded anew at each of its turns.
    messages = ",".join(_encoded(request, max_call_id_chars))
    body = f'{{"model":{_quoted(request.model)},"messages":[{messages}],{_json(options)[1:]}'
    return valid_text(body).encode()


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """`text` as a JSON string; the way for ASCII is the faster one."""
    return json.encoder.encode_basestring_ascii(text) if text.isascii() else json.encoder.encode_basestring(text)


def _said(role: str, text: str) -> str:
    return f'{{"role":"{role}","content":{_quoted(text)}}}'


def _encoded(request: ModelRequest, max_call_id_chars: int | None) -> Iterator[str]:
    """The JSON of each message."""
    if request.system.strip():
        yield _said("system", request.system)
    messages = pair_calls_with_results(request.messages)
    loop_start = start_of_tool_loop(messages)
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    call_ids: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield _said("user", message.text if message.text.strip() else BLANK_USER)
        elif isinstance(message, AssistantMessage):
            call_ids = _wire_ids(message.tool_calls, max_call_id_chars)
            is_replayed = position > loop_start and message.model == request.model
            encoded = _assistant(message, call_ids, is_reasoning_replayed=is_replayed)
            if encoded:
                yield encoded
            call_ids = call_ids[::-1]
        else:
            yield _json(_result(message, call_ids.pop()))


def _assistant(message: AssistantMessage, call_ids: list[str], *, is_reasoning_replayed: bool) -> str:
    """The JSON of the turn, or nothing when nothing of it is left to say."""
    text = message.text
    if not call_ids and not is_reasoning_replayed:
        return _said("assistant", text) if text.strip() else ""
    if not text.strip() and not call_ids:
        return ""
    encoded: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if is_reasoning_replayed:
        for name in REASONING_FIELDS:
            blocks = [block.text for block in message.content if isinstance(block, Reasoning) and block.field == name]
            if blocks:
                encoded[name] = "".join(blocks)
        if details := [detail for call in message.tool_calls if (detail := _signature(call)) is not None]:
            encoded["reasoning_details"] = details
    if call_ids:
        encoded["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": _legal_name(call.name), "arguments": call.arguments_json.strip() or "{}"},
            }
            for call_id, call in zip(call_ids, message.tool_calls, strict=True)
        ]
    return _json(encoded)


def _result(message: ToolResultMessage, call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": message.text if message.text.strip() else BLANK_RESULT}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def _signature(call: ToolCall) -> Any:
    """The encrypted reasoning kept with a call; None for none, or for that of another provider family."""
    if not call.signature:
        return None
    try:
        detail = json.loads(call.signature)
    except ValueError:
        return None
    return detail if isinstance(detail, dict) and detail.get("type") == "reasoning.encrypted" else None


def _wire_ids(calls: Sequence[ToolCall], max_chars: int | None) -> list[str]:
    """One id per call, none empty, none twice in the message, none too long."""
    ids: list[str] = []
    for position, call in enumerate(calls):
        call_id = call.call_id.strip()
        if not call_id or call_id in ids:
            call_id = f"{call_id or 'call'}_{position}"
        if max_chars is not None and len(call_id) > max_chars:
            digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
            call_id = f"{call_id[: max_chars - 9]}_{digest}"
        ids.append(call_id)
    return ids


def _legal_name(name: str) -> str:
    return _ILLEGAL_IN_NAME.sub("_", name)[:_MAX_NAME_CHARS] or "unknown"
