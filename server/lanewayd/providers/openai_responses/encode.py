"""ModelRequest -> the JSON of a request to /responses. Pure. Source: spec 05, section 7, "OpenAI Responses".

Nothing is kept at the service (`store` is false): reasoning goes back encrypted, whole, in front of the item it led to,
and only to the model it came from. Where it cannot go back, neither do the ids of the items around it: the service
holds an item whose id it knows against the reasoning that it gave with it. Images are data URLs behind the text of
their message.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    valid_text,
)
from lanewayd.providers.arguments import object_text
from lanewayd.providers.call_ids import WireIds
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_responses.item_fields import item_of_signature
from lanewayd.providers.openai_responses.options import request_options
from lanewayd.providers.params import with_params
from lanewayd.providers.request_texts import BLANK_USER, function_name, result_text

_ILLEGAL_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_MAX_ID_CHARS = 64


def encode_request(request: ModelRequest, *, provider: str, is_openai: bool = False) -> bytes:
    """The request body for the service that is configured under the name `provider`."""
    body: dict[str, Any] = {"model": request.model, "input": list(_items(request, provider))}
    if request.system.strip():
        body["instructions"] = request.system
    body |= with_params(request_options(request, is_openai=is_openai), request.params)
    return valid_text(json.dumps(body, ensure_ascii=False, separators=(",", ":"))).encode()


def _items(request: ModelRequest, provider: str) -> Iterator[dict[str, Any]]:
    wire_ids = WireIds(_ILLEGAL_IN_ID, _MAX_ID_CHARS)
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    call_ids: list[str] = []
    for message in pair_calls_with_results(shown_messages(request)):
        if isinstance(message, UserMessage):
            yield {"role": "user", "content": _said_by_user(message, request)}
        elif isinstance(message, AssistantMessage):
            call_ids = [wire_ids.give(call.call_id) for call in message.tool_calls]
            is_same_model = (message.provider, message.model) == (provider, request.model)
            yield from _answer(message, call_ids, is_same_model=is_same_model)
        else:
            yield _result(message, call_ids.pop(0))


def _said_by_user(message: UserMessage, request: ModelRequest) -> list[dict[str, Any]]:
    """The text, and the images behind it."""
    parts: list[dict[str, Any]] = []
    if message.text.strip() or not message.attachments:
        parts.append({"type": "input_text", "text": message.text if message.text.strip() else BLANK_USER})
    for image in message.attachments:
        url = f"data:{image.mime_type};base64,{image_base64(request, image)}"
        parts.append({"type": "input_image", "image_url": url})
    return parts


def _answer(message: AssistantMessage, call_ids: list[str], *, is_same_model: bool) -> Iterator[dict[str, Any]]:
    """The items of one answer, in their order. Reasoning that no item follows is left out."""
    thoughts = [block for block in message.content if isinstance(block, Reasoning)]
    has_ids = is_same_model and all(_thought(block) for block in thoughts)
    ids = iter(call_ids)
    waiting: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, Reasoning):
            thought = _thought(block) if is_same_model else None
            waiting += [thought] if thought else []
            continue
        if isinstance(block, ToolCall):
            item = _call(block, next(ids), has_id=has_ids)
        elif block.text.strip():
            item = _said(block, has_id=has_ids, has_phase=is_same_model)
        else:
            continue
        yield from waiting
        waiting = []
        yield item


def _thought(block: Reasoning) -> dict[str, Any] | None:
    """The reasoning item that the service can read again; None when it gave none such."""
    item = item_of_signature(block.signature, "reasoning")
    if not item.get("encrypted_content") and not item.get("content"):
        return None
    # An empty id is refused; without one the item is read all the same.
    return {"summary": [], **{name: value for name, value in item.items() if value or name != "id"}}


def _said(block: Text, *, has_id: bool, has_phase: bool) -> dict[str, Any]:
    content = [{"type": "output_text", "text": block.text, "annotations": []}]
    item: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed", "content": content}
    known = item_of_signature(block.signature, "message")
    if has_id and known.get("id"):
        item["id"] = known["id"]
    if has_phase and known.get("phase"):
        item["phase"] = known["phase"]
    return item


def _call(call: ToolCall, call_id: str, *, has_id: bool) -> dict[str, Any]:
    name = function_name(call.name)
    arguments = object_text(call.arguments_json)
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    item_id = item_of_signature(call.signature, "function_call").get("id")
    return {**item, "id": item_id} if has_id and item_id else item


def _result(message: ToolResultMessage, call_id: str) -> dict[str, Any]:
    output = result_text(message.text)
    return {"type": "function_call_output", "call_id": call_id, "output": output}
