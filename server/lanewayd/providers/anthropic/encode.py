"""ModelRequest -> the JSON of a Messages request. Pure. Source: spec 05, R-5.82, and section 7, "Anthropic".

Hygiene works on the request only: turns alternate and begin and end with the user's, each call has one result at the
begin of the next user turn, ids are legal and unique, no text is blank. Thoughts go back unread to the model that had
them, with their signatures; any change to one would have the service reject the conversation. A seed is left out: the
API has none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Reasoning,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
    valid_text,
)
from lanewayd.providers.anthropic.answer import REDACTED, THINKING
from lanewayd.providers.anthropic.answer_schema import native_schema
from lanewayd.providers.anthropic.families import OTHER, Family, Thinks, family_of
from lanewayd.providers.anthropic.thinking import Thinking, thinking_of
from lanewayd.providers.arguments import CallRefused, argument_object
from lanewayd.providers.call_ids import WireIds
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import image_base64, shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.params import with_params
from lanewayd.providers.request_texts import BLANK_USER, function_name, result_text

OMITTED_REASONING = "(reasoning omitted)"
BEGIN = "(the conversation goes on)"
"""The user's turn in front of a history that begins with an answer."""
_CACHE_MARKS = {
    "none": "",
    "short": ',"cache_control":{"type":"ephemeral"}',
    "long": ',"cache_control":{"type":"ephemeral","ttl":"1h"}',
}
"""By retention; short are 5 minutes. Source: platform.claude.com/docs/en/build-with-claude/prompt-caching."""
_MARKED_TURNS = 2
"""The newest user turn is read from the cache by the next request; the one before it is what this one reads, also when
more than the 20 blocks that the service looks back lie between them. With tools and system these are the 4 it allows.
"""
_MAX_TEMPERATURE = 1.0
"""What is more is said as this. Source: platform.claude.com/docs/en/api/messages, `temperature`."""
_USER, _ASSISTANT = "user", "assistant"
_ILLEGAL_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_MAX_ID_CHARS = 64
# Whoever says it gets a refusal, for tests. In what a user or a page says it would end the conversation.
_TEST_OF_REFUSAL = re.compile(r"ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL\w*")


def encode_request(request: ModelRequest) -> bytes:
    """The request body."""
    family = family_of(request.model)
    mark = _CACHE_MARKS.get(request.cache_retention, _CACHE_MARKS["short"])
    turns = _turns(request)
    begun = _begun(turns)
    thinking = thinking_of(request, family, can_begin=begun is None or _is_thought(begun.blocks[0]))
    if begun is not None and family.thinks is Thinks.BUDGET and family is not OTHER and not thinking.is_on:
        # Thoughts in an answer that goes on without thinking are refused.
        begun.blocks[:] = [block for block in begun.blocks if not _is_thought(block)]
    options = with_params(_options(request, family, thinking), request.params)
    fields = [f'"model":{_quoted(request.model)}', _json(options)[1:-1]]
    # What changes least stands first: the service keeps what it has read up to a mark.
    if request.tools:
        tools = [_tool(spec) for spec in request.tools]
        fields.append(f'"tools":[{",".join([*tools[:-1], _marked(tools[-1], mark)])}]')
    if request.system.strip():
        fields.append(f'"system":[{_marked(_text(request.system), mark)}]')
    for turn in [turn for turn in turns if turn.role == _USER][-_MARKED_TURNS:]:
        turn.blocks[-1] = _marked(turn.blocks[-1], mark)
    fields.append(f'"messages":[{",".join(turn.json for turn in turns)}]')
    return valid_text("{" + ",".join(fields) + "}").encode()


def answer_format(request: ModelRequest) -> dict[str, Any] | None:
    """What has the service hold the answer to the request's schema; None: nothing does."""
    if request.response_schema is None or not family_of(request.model).has_schema:
        return None
    schema = native_schema(request.response_schema)
    return None if schema is None else {"type": "json_schema", "schema": schema}


def _options(request: ModelRequest, family: Family, thinking: Thinking) -> dict[str, Any]:
    options: dict[str, Any] = {"max_tokens": thinking.max_tokens, "stream": True}
    if thinking.thinking is not None:
        options["thinking"] = thinking.thinking
    config: dict[str, Any] = {}
    if thinking.effort is not None:
        config["effort"] = thinking.effort
    if (answer := answer_format(request)) is not None:
        config["format"] = answer
    if config:
        options["output_config"] = config
    # A model that thinks takes no other than its own.
    if request.temperature is not None and family.takes_sampling and not thinking.is_on:
        options["temperature"] = min(max(request.temperature, 0.0), _MAX_TEMPERATURE)
    return options


@dataclass(slots=True)
class _Turn:
    """What one side says until the other does. `blocks` are JSON texts."""

    role: str
    blocks: list[str]

    @property
    def json(self) -> str:
        return f'{{"role":"{self.role}","content":[{",".join(self.blocks)}]}}'


def _turns(request: ModelRequest) -> list[_Turn]:
    turns: list[_Turn] = []
    for role, blocks in _spoken(request):
        if turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(_Turn(role, blocks))
    for turn in turns:
        if turn.role == _ASSISTANT:
            _end_with_words(turn.blocks)
    if turns and turns[-1].role == _ASSISTANT:
        turns.pop()  # newer models refuse to go on with a begun answer
    if not turns or turns[0].role == _ASSISTANT:
        turns.insert(0, _Turn(_USER, [_text(BEGIN)]))
    return turns


def _begun(turns: Sequence[_Turn]) -> _Turn | None:
    """The answer under way, to whose calls the last turn brings results; None: the next answer is a new one."""
    if len(turns) < 2 or not turns[-1].blocks[0].startswith('{"type":"tool_result"'):
        return None
    return turns[-2]


def _end_with_words(blocks: list[str]) -> None:
    """A turn that ends with a thought is refused: thoughts behind the last text or call are left out."""
    while blocks and _is_thought(blocks[-1]):
        blocks.pop()
    if not blocks:
        blocks.append(_text(OMITTED_REASONING))


def _is_thought(block: str) -> bool:
    return block.startswith(('{"type":"thinking"', '{"type":"redacted_thinking"'))


def _spoken(request: ModelRequest) -> Iterator[tuple[str, list[str]]]:
    """(role, blocks) of each message that has something to say."""
    ids = WireIds(_ILLEGAL_IN_ID, _MAX_ID_CHARS)
    # After pairing the results follow their calls one to one.
    awaiting: list[str] = []
    for message in pair_calls_with_results(shown_messages(request)):
        if isinstance(message, UserMessage):
            yield _USER, _question(message, request)
        elif isinstance(message, AssistantMessage):
            call_ids = [ids.give(call.call_id) for call in message.tool_calls]
            blocks = _answer(message, call_ids, is_same_model=message.model == request.model)
            if blocks:
                yield _ASSISTANT, blocks
            awaiting = call_ids[::-1]
        else:
            yield _USER, [_result(message, awaiting.pop())]


def _question(message: UserMessage, request: ModelRequest) -> list[str]:
    """Images first: so they are understood best. Source: platform.claude.com/docs/en/build-with-claude/vision."""
    images = [_image(image, request) for image in message.attachments]
    if message.text.strip():
        return [*images, _text(_said(message.text))]
    return images or [_text(BLANK_USER)]


def _image(image: Attachment, request: ModelRequest) -> str:
    source = f'"type":"base64","media_type":{_quoted(image.mime_type)},"data":"{image_base64(request, image)}"'
    return f'{{"type":"image","source":{{{source}}}}}'


def _answer(message: AssistantMessage, call_ids: Sequence[str], *, is_same_model: bool) -> list[str]:
    blocks: list[str] = []
    calls = iter(call_ids)
    has_omitted = False
    for block in message.content:
        if isinstance(block, ToolCall):
            blocks.append(_call(block, next(calls)))
        elif isinstance(block, Text):
            if block.text.strip():
                blocks.append(_text(block.text))
        elif thought := _thought(block) if is_same_model else "":
            blocks.append(thought)
        else:
            has_omitted = True
    if not blocks and has_omitted:
        blocks.append(_text(OMITTED_REASONING))
    return blocks


def _thought(block: Reasoning) -> str:
    """The block as it came; nothing for one that has no signature, or that of another family."""
    if not block.signature:
        return ""
    if block.field == REDACTED:
        return f'{{"type":"redacted_thinking","data":{_quoted(block.signature)}}}'
    if block.field == THINKING:
        text, signature = _quoted(block.text), _quoted(block.signature)
        return f'{{"type":"thinking","thinking":{text},"signature":{signature}}}'
    return ""


def _call(call: ToolCall, call_id: str) -> str:
    name = function_name(call.name)
    try:
        arguments = argument_object(call.name, call.arguments_json)
    except CallRefused:
        arguments = "{}"  # of an imported conversation; our own are checked
    return f'{{"type":"tool_use","id":"{call_id}","name":"{name}","input":{arguments}}}'


def _result(message: ToolResultMessage, call_id: str) -> str:
    text = _quoted(_said(result_text(message.text)))
    is_error = ',"is_error":true' if message.is_error else ""
    return f'{{"type":"tool_result","tool_use_id":"{call_id}","content":{text}{is_error}}}'


def _tool(spec: ToolSpec) -> str:
    return _json({"name": spec.name, "description": spec.description, "input_schema": spec.schema})


def _text(text: str) -> str:
    return f'{{"type":"text","text":{_quoted(text)}}}'


def _marked(block: str, mark: str) -> str:
    return f"{block[:-1]}{mark}}}"


def _said(text: str) -> str:
    if "ANTHROPIC_MAGIC" not in text:
        return text
    return _TEST_OF_REFUSAL.sub("(a string that tests refusals)", text)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """`text` as a JSON string; the way for ASCII is the faster one."""
    return json.encoder.encode_basestring_ascii(text) if text.isascii() else json.encoder.encode_basestring(text)
