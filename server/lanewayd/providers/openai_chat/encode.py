"""ModelRequest -> the JSON of a chat completions request. Pure. Source: spec 05, section 7, "Chat completions".

Hygiene works on the request only: paired results, no blank turns, legal names, ids that are told apart, no lone
surrogates. Reasoning is repeated within the current tool loop, under the field it came in, to the model it came from;
all of it where the model's facts say so. Images stand behind the text of their message as data URLs (OpenAI's API
reference, "Image content part").
"""

import json
import re
from collections.abc import Iterator, Mapping
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
from lanewayd.providers.call_ids import NineCharacterIds, ids_within_message
from lanewayd.providers.history import pair_calls_with_results, start_of_tool_loop
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_chat.chunk_fields import REASONING_FIELDS
from lanewayd.providers.openai_chat.manners import ChatManners
from lanewayd.providers.openai_chat.options import request_options
from lanewayd.providers.openai_models import bare_name
from lanewayd.providers.params import with_params
from lanewayd.providers.request_texts import BLANK_USER, function_name, result_text

# Their tokenizer refuses any other id of a call, wherever they are served: github.com/mistralai/mistral-common.
_MISTRAL = re.compile(r"(?:mistral|mixtral|ministral|magistral|codestral|devstral|pixtral)")


def encode_request(request: ModelRequest, manners: ChatManners, overrides: Mapping[str, Any] | None = None) -> bytes:
    """The request body; `overrides` are fields that take the place of the request's own."""
    options = with_params(request_options(request, manners) | dict(overrides or {}), request.params)
    # Put together from the messages' own texts: a long conversation is encoded anew at each of its turns.
    messages = ",".join(_encoded(request, manners))
    body = f'{{"model":{_quoted(request.model)},"messages":[{messages}],{_json(options)[1:]}'
    return valid_text(body).encode()


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """`text` as a JSON string; the way for ASCII is the faster one."""
    return json.encoder.encode_basestring_ascii(text) if text.isascii() else json.encoder.encode_basestring(text)


def _said(role: str, text: str) -> str:
    return f'{{"role":"{role}","content":{_quoted(text)}}}'


def _encoded(request: ModelRequest, manners: ChatManners) -> Iterator[str]:
    """The JSON of each message."""
    if request.system.strip():
        yield _said("system", request.system)
    messages = pair_calls_with_results(shown_messages(request))
    replay_start = -1 if request.facts.replays_reasoning else start_of_tool_loop(messages)
    nine_characters = NineCharacterIds() if _MISTRAL.match(bare_name(request.model)) else None
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    call_ids: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield _user(message, request)
        elif isinstance(message, AssistantMessage):
            call_ids = [call.call_id for call in message.tool_calls]
            if nine_characters:
                call_ids = list(map(nine_characters.give, call_ids))
            else:
                call_ids = ids_within_message(call_ids, manners.max_call_id_chars)
            is_its_own = message.model == request.model and manners.provider in (None, message.provider)
            is_replayed = position > replay_start and is_its_own
            encoded = _assistant(message, call_ids, is_reasoning_replayed=is_replayed)
            if encoded:
                yield encoded
            call_ids = call_ids[::-1]
        else:
            yield _json(_result(message, call_ids.pop()))


def _user(message: UserMessage, request: ModelRequest) -> str:
    if not message.attachments:
        return _said("user", message.text if message.text.strip() else BLANK_USER)
    parts = [f'{{"type":"text","text":{_quoted(message.text)}}}'] if message.text.strip() else []
    for image in message.attachments:
        url = f"data:{image.mime_type};base64,{image_base64(request, image)}"
        parts.append(f'{{"type":"image_url","image_url":{{"url":{_quoted(url)}}}}}')
    return f'{{"role":"user","content":[{",".join(parts)}]}}'


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
            if (thoughts := "".join(blocks)).strip():
                encoded[name] = thoughts
        if details := [detail for call in message.tool_calls if (detail := _signature(call)) is not None]:
            encoded["reasoning_details"] = details
    if call_ids:
        encoded["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": function_name(call.name), "arguments": object_text(call.arguments_json)},
            }
            for call_id, call in zip(call_ids, message.tool_calls, strict=True)
        ]
    return _json(encoded)


def _result(message: ToolResultMessage, call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": result_text(message.text)}


def _signature(call: ToolCall) -> Any:
    """The encrypted reasoning kept with a call; None for none, or for that of another provider family."""
    if not call.signature:
        return None
    try:
        detail = json.loads(call.signature)
    except ValueError:
        return None
    return detail if isinstance(detail, dict) and detail.get("type") == "reasoning.encrypted" else None
