"""ModelRequest -> the JSON of a request to Ollama's own /api/chat. Pure. Source: spec 05, section 7, and case B-025.

Arguments go back as the object they came as, results name their tool; ids go along for the models whose template joins
results to calls by them, older servers ignore them. Thinking is repeated within the current tool loop, to the model it
came from; all of it where the model's facts say so. Images stand beside the text of their message.
"""

import json
from collections.abc import Iterator
from typing import Any

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    valid_text,
)
from lanewayd.providers.arguments import object_text
from lanewayd.providers.call_ids import ids_within_message
from lanewayd.providers.history import pair_calls_with_results, start_of_tool_loop
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.ollama.options import request_options
from lanewayd.providers.params import with_params
from lanewayd.providers.request_texts import BLANK_USER, result_text

THINKING_FIELD = "thinking"


def encode_request(request: ModelRequest, *, provider: str | None = None) -> bytes:
    """The request body for the service that is configured under the name `provider`."""
    # Put together from texts: a call's arguments stand in it as the model wrote them, numbers with all their digits.
    messages = ",".join(_messages(request, provider))
    options = with_params(request_options(request), request.params)
    body = f'{{"model":{_json(request.model)},"messages":[{messages}],{_json(options)[1:]}'
    return valid_text(body).encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _messages(request: ModelRequest, provider: str | None) -> Iterator[str]:
    """The JSON of each message."""
    if request.system.strip():
        yield _json({"role": "system", "content": request.system})
    messages = pair_calls_with_results(shown_messages(request))
    replay_start = -1 if request.facts.replays_reasoning else start_of_tool_loop(messages)
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    call_ids: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield _json(_user(message, request))
        elif isinstance(message, AssistantMessage):
            call_ids = ids_within_message(call.call_id for call in message.tool_calls)
            is_its_own = message.model == request.model and provider in (None, message.provider)
            is_replayed = position > replay_start and is_its_own
            encoded = _assistant(message, call_ids, is_thinking_replayed=is_replayed)
            if encoded:
                yield encoded
            call_ids = call_ids[::-1]
        else:
            yield _json(_result(message, call_ids.pop()))


def _user(message: UserMessage, request: ModelRequest) -> dict[str, Any]:
    images = [image_base64(request, image) for image in message.attachments]
    text = message.text if message.text.strip() else "" if images else BLANK_USER
    fields: dict[str, Any] = {"role": "user", "content": text}
    return {**fields, "images": images} if images else fields


def _assistant(message: AssistantMessage, call_ids: list[str], *, is_thinking_replayed: bool) -> str:
    """The JSON of the turn, or nothing when nothing of it is left to say."""
    text = message.text
    if not text.strip() and not call_ids:
        return ""
    fields = {"role": "assistant", "content": text if text.strip() else ""}
    if is_thinking_replayed:
        thoughts = [block for block in message.content if isinstance(block, Reasoning)]
        thinking = "".join(block.text for block in thoughts if block.field == THINKING_FIELD)
        if thinking.strip():
            fields[THINKING_FIELD] = thinking
    if not call_ids:
        return _json(fields)
    calls = ",".join(_call(call_id, call) for call_id, call in zip(call_ids, message.tool_calls, strict=True))
    return f'{_json(fields)[:-1]},"tool_calls":[{calls}]}}'


def _call(call_id: str, call: ToolCall) -> str:
    function = f'{{"name":{_json(_name(call.name))},"arguments":{object_text(call.arguments_json)}}}'
    return f'{{"id":{_json(call_id)},"function":{function}}}'


def _result(message: ToolResultMessage, call_id: str) -> dict[str, Any]:
    content = result_text(message.text)
    return {"role": "tool", "content": content, "tool_name": _name(message.name), "tool_call_id": call_id}


def _name(name: str) -> str:
    return name.strip() or "unknown"
