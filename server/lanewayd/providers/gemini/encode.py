"""ModelRequest -> the JSON of a streamGenerateContent request. Pure. Source: spec 05, R-5.88, and section 7, "Gemini".

Hygiene works on the request only: turns alternate and the user's is first, results follow their calls, ids are
alphanumeric and told apart, and signatures go back with their parts to the model they came from. Of caching nothing is
said: these models find what they have read before by themselves.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
    valid_text,
)
from lanewayd.providers.call_ids import WireIds
from lanewayd.providers.gemini.generation import generation_of
from lanewayd.providers.gemini.schema import answer_of, parameters_of
from lanewayd.providers.gemini.thinking import thinking_fields
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.params import with_params
from lanewayd.providers.request_texts import BLANK_USER, function_name, result_text

FIRST_USER = "(the conversation begins with the answer below)"
UNSIGNED_CALL = "skip_thought_signature_validator"
"""What a call that another model made carries in place of a signature, which Gemini 3 demands.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs".
"""
_MODEL, _USER = "model", "user"
_ILLEGAL_IN_ID = re.compile(r"[^A-Za-z0-9]")
_MAX_ID_CHARS = 40
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/webp"))
"""No moving ones. Source: https://ai.google.dev/gemini-api/docs/image-understanding, "Supported image formats"."""
_SEEDS = 2**31
_NO_PARTS = frozenset({"", ".", ".."})
"""Of a path: they mean another one."""


def path_of(model: str) -> str:
    """Where `model` is asked for a stream of server-sent events: a path below the base, whatever the caller named."""
    parts = valid_text(model).split("/")
    if len(parts) == 1 or not _NO_PARTS.isdisjoint(parts):
        # One part of a path: the way of dots and slashes would lead out of what the settings have the key for.
        parts = ["models", "/".join(parts)]
    return f"/v1beta/{'/'.join(quote(part, safe='') for part in parts)}:streamGenerateContent?alt=sse"


def encode_request(request: ModelRequest) -> bytes:
    """The request body."""
    options: dict[str, Any] = {}
    if request.system.strip():
        options["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        options["tools"] = [{"functionDeclarations": [_declaration(spec) for spec in request.tools]}]
    if config := _generation_config(request):
        options["generationConfig"] = config
    options = with_params(options, request.params)
    # Put together from the turns' own texts: the arguments of calls go out as they came in.
    contents = ",".join(turn.json for turn in _turns(request))
    more = f",{_json(options)[1:-1]}" if options else ""
    return valid_text(f'{{"contents":[{contents}]{more}}}').encode()


def answer_schema(request: ModelRequest) -> dict[str, Any] | None:
    """The schema to which the service holds the answer; None: it does not.

    The generation 2.5 takes none beside functions. Source: https://ai.google.dev/gemini-api/docs/structured-output.
    """
    generation = generation_of(request.model)
    if request.response_schema is None or not (generation.has_levels or (generation.has_budgets and not request.tools)):
        return None
    return answer_of(request.response_schema)


def _generation_config(request: ModelRequest) -> dict[str, Any]:
    """Source: https://ai.google.dev/api/generate-content#generationconfig."""
    config = thinking_fields(request, generation_of(request.model))
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if request.seed is not None:
        config["seed"] = request.seed % _SEEDS  # an int32; equal seeds stay equal
    if (schema := answer_schema(request)) is not None:
        config |= {"responseMimeType": "application/json", "responseSchema": schema}
    return config


@dataclass(slots=True)
class _Turn:
    """What one side says until the other does. `parts` are JSON texts."""

    role: str
    parts: list[str] = field(default_factory=list)

    @property
    def json(self) -> str:
        return f'{{"role":"{self.role}","parts":[{",".join(self.parts)}]}}'


def _turns(request: ModelRequest) -> list[_Turn]:
    turns: list[_Turn] = []
    for role, parts in _said(request):
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role))
        turns[-1].parts += parts
    if not turns or turns[0].role == _MODEL:
        turns.insert(0, _Turn(_USER, [_json({"text": FIRST_USER if turns else BLANK_USER})]))
    return turns


def _said(request: ModelRequest) -> Iterator[tuple[str, list[str]]]:
    """Role and parts of each message that has something left to say."""
    ids = WireIds(_ILLEGAL_IN_ID, _MAX_ID_CHARS)
    # After pairing the results follow their calls one to one, so ids can be given anew by position.
    awaited: list[tuple[str, str]] = []
    for message in pair_calls_with_results(shown_messages(request, _IMAGE_TYPES)):
        if isinstance(message, UserMessage):
            yield _USER, _question_parts(message, request)
        elif isinstance(message, AssistantMessage):
            awaited = [(ids.give(call.call_id), function_name(call.name)) for call in message.tool_calls]
            parts = _answer_parts(message, awaited, request.model)
            if parts:
                yield _MODEL, parts
            awaited = awaited[::-1]
        else:
            yield _USER, [_json({"functionResponse": _response(message, *awaited.pop())})]


def _question_parts(message: UserMessage, request: ModelRequest) -> list[str]:
    """Images first, as the documentation asks for."""
    images = [
        _json({"inlineData": {"mimeType": image.mime_type, "data": image_base64(request, image)}})
        for image in message.attachments
    ]
    if message.text.strip():
        return [*images, _json({"text": message.text})]
    return images or [_json({"text": BLANK_USER})]


def _answer_parts(message: AssistantMessage, awaited: list[tuple[str, str]], model: str) -> list[str]:
    """The parts of an answer, in its order. Thoughts are worth something with their signature only."""
    is_same_model = message.model == model
    calls = iter(awaited)
    is_first_call = True
    parts: list[str] = []
    for block in message.content:
        signature = block.signature if is_same_model and _is_base64(block.signature) else ""
        signed = {"thoughtSignature": signature} if signature else {}
        if isinstance(block, ToolCall):
            if is_first_call and not signature and generation_of(model).demands_signatures:
                signed = {"thoughtSignature": UNSIGNED_CALL}
            is_first_call = False
            parts.append(_call_part(block, *next(calls), signed))
        elif isinstance(block, Reasoning):
            if signature:
                parts.append(_json({"text": block.text, "thought": True, **signed}))
        elif block.text.strip() or signature:
            parts.append(_text_part(block, signed))
    return parts


def _text_part(block: Text, signed: dict[str, str]) -> str:
    return _json({"text": block.text, **signed})


def _call_part(call: ToolCall, wire_id: str, name: str, signed: dict[str, str]) -> str:
    function = f'{{"id":"{wire_id}","name":"{name}","args":{_arguments(call)}}}'
    rest = f",{_json(signed)[1:-1]}" if signed else ""
    return f'{{"functionCall":{function}{rest}}}'


def _arguments(call: ToolCall) -> str:
    """The JSON text of the arguments, an empty object for what an import may have brought in their place."""
    try:
        value = json.loads(call.arguments_json, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(value, dict):
        return "{}"
    if "\\u" in call.arguments_json:
        return _json(value)  # escapes may stand for halves of a surrogate pair
    return call.arguments_json.strip()


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _response(message: ToolResultMessage, wire_id: str, name: str) -> dict[str, Any]:
    text = result_text(message.text)
    return {"id": wire_id, "name": name, "response": {"error" if message.is_error else "output": text}}


def _declaration(spec: ToolSpec) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": spec.name, "description": spec.description}
    parameters = parameters_of(spec.schema)
    return {**declaration, "parameters": parameters} if parameters is not None else declaration


def _is_base64(signature: str) -> bool:
    return bool(signature) and _BASE64.fullmatch(signature) is not None


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
