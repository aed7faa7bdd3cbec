"""ModelRequest -> the JSON of a request to Ollama's own /api/chat. Pure. Source: spec 05, section 7, and case B-025.

Arguments go back as the object they came as, results name their tool; ids go along for the models whose template joins
results to calls by them, older servers ignore them. Thinking is repeated within the current tool loop, to the model it
came from.
"""

import json
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

THINKING_FIELD = "thinking"
BLANK_USER = "(empty message)"
BLANK_RESULT = "(no output)"


def encode_request(request: ModelRequest) -> bytes:
    """The request body."""
    options: dict[str, Any] = {"stream": True}
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
    # Put together from texts: a call's arguments stand in it as the model wrote them, numbers with all their digits.
    body = f'{{"model":{_json(request.model)},"messages":[{",".join(_messages(request))}],{_json(options)[1:]}'
    return valid_text(body).encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _messages(request: ModelRequest) -> Iterator[str]:
    """The JSON of each message."""
    if request.system.strip():
        yield _json({"role": "system", "content": request.system})
    messages = pair_calls_with_results(request.messages)
    loop_start = start_of_tool_loop(messages)
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    call_ids: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield _json({"role": "user", "content": message.text if message.text.strip() else BLANK_USER})
        elif isinstance(message, AssistantMessage):
            call_ids = _wire_ids(message.tool_calls)
            is_replayed = position > loop_start and message.model == request.model
            encoded = _assistant(message, call_ids, is_thinking_replayed=is_replayed)
            if encoded:
                yield encoded
            call_ids = call_ids[::-1]
        else:
            yield _json(_result(message, call_ids.pop()))


def _assistant(message: AssistantMessage, call_ids: list[str], *, is_thinking_replayed: bool) -> str:
    """The JSON of the turn, or nothing when nothing of it is left to say."""
    text = message.text
    if not text.strip() and not call_ids:
        return ""
    fields = {"role": "assistant", "content": text if text.strip() else ""}
    if is_thinking_replayed:
        thoughts = [block for block in message.content if isinstance(block, Reasoning)]
        thinking = "".join(block.text for block in thoughts if block.field == THINKING_FIELD)
        if thinking:
            fields[THINKING_FIELD] = thinking
    if not call_ids:
        return _json(fields)
    calls = ",".join(_call(call_id, call) for call_id, call in zip(call_ids, message.tool_calls, strict=True))
    return f'{_json(fields)[:-1]},"tool_calls":[{calls}]}}'


def _call(call_id: str, call: ToolCall) -> str:
    function = f'{{"name":{_json(_name(call.name))},"arguments":{_arguments(call)}}}'
    return f'{{"id":{_json(call_id)},"function":{function}}}'


def _result(message: ToolResultMessage, call_id: str) -> dict[str, Any]:
    content = message.text if message.text.strip() else BLANK_RESULT
    return {"role": "tool", "content": content, "tool_name": _name(message.name), "tool_call_id": call_id}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def _arguments(call: ToolCall) -> str:
    """The text of the object; an imported call whose arguments are none has none here."""
    try:
        arguments = json.loads(call.arguments_json, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return "{}"
    return call.arguments_json if isinstance(arguments, dict) else "{}"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _name(name: str) -> str:
    return name.strip() or "unknown"


def _wire_ids(calls: Sequence[ToolCall]) -> list[str]:
    """One id per call, none empty, none twice in the message."""
    ids: list[str] = []
    for position, call in enumerate(calls):
        call_id = call.call_id.strip()
        if not call_id or call_id in ids:
            call_id = f"{call_id or 'call'}_{position}"
        ids.append(call_id)
    return ids
