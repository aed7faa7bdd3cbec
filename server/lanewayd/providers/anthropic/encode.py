"""ModelRequest -> the JSON of a Messages request. Pure. Source: spec 05, R-5.82, and section 7, "Anthropic".

Hygiene works on the request only: turns alternate and begin and end with the user's, each call has one result at the
begin of the next user turn, ids are legal and unique, no text is blank. Thoughts go back unread to the model that had
them, with their signatures; any change to one would have the service reject the conversation.
"""

import json
import re
from collections.abc import Iterator, Sequence

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
from lanewayd.providers.anthropic.answer import REDACTED, THINKING
from lanewayd.providers.anthropic.output_caps import max_tokens
from lanewayd.providers.arguments import CallRefused, argument_object
from lanewayd.providers.call_ids import WireIds
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.interface import ModelRequest

BLANK_USER = "(empty message)"
BLANK_RESULT = "(no output)"
OMITTED_REASONING = "(reasoning omitted)"
BEGIN = "(the conversation goes on)"
"""The user's turn in front of a history that begins with an answer."""
_CACHE_MARK = ',"cache_control":{"type":"ephemeral"}}'
_MARKED_TURNS = 2
"""The newest user turn is read from the cache by the next request; the one before it is what this one reads, also when
more than the 20 blocks that the service looks back lie between them. With tools and system these are the 4 it allows.
"""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_MAX_CHARS = 64
# Whoever says it gets a refusal, for tests. In what a user or a page says it would end the conversation.
_TEST_OF_REFUSAL = re.compile(r"ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL\w*")


def encode_request(request: ModelRequest) -> bytes:
    """The request body."""
    fields = [
        f'"model":{_quoted(request.model)}',
        f'"max_tokens":{max_tokens(request.model)}',
        '"stream":true',
    ]
    # What changes least stands first: the service keeps what it has read up to a mark.
    if request.tools:
        tools = [_tool(spec) for spec in request.tools]
        fields.append(f'"tools":[{",".join([*tools[:-1], _marked(tools[-1])])}]')
    if request.system.strip():
        fields.append(f'"system":[{_marked(_text(request.system))}]')
    fields.append(f'"messages":[{",".join(_turns(request))}]')
    return valid_text("{" + ",".join(fields) + "}").encode()


def _turns(request: ModelRequest) -> list[str]:
    """The JSON of each turn."""
    turns: list[tuple[str, list[str]]] = []
    for role, blocks in _spoken(request):
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if turns and turns[-1][0] == "assistant":
        turns.pop()  # newer models refuse to go on with a begun answer
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [_text(BEGIN)]))
    for _, blocks in [turn for turn in turns if turn[0] == "user"][-_MARKED_TURNS:]:
        blocks[-1] = _marked(blocks[-1])
    return [f'{{"role":"{role}","content":[{",".join(blocks)}]}}' for role, blocks in turns]


def _spoken(request: ModelRequest) -> Iterator[tuple[str, list[str]]]:
    """(role, blocks) of each message that has something to say."""
    ids = WireIds(_ILLEGAL, _MAX_CHARS)
    # After pairing the results follow their calls one to one.
    awaiting: list[str] = []
    for message in pair_calls_with_results(request.messages):
        if isinstance(message, UserMessage):
            yield "user", [_text(_said(message.text) if message.text.strip() else BLANK_USER)]
        elif isinstance(message, AssistantMessage):
            call_ids = [ids.give(call.call_id) for call in message.tool_calls]
            blocks = _answer(message, call_ids, is_same_model=message.model == request.model)
            if blocks:
                yield "assistant", blocks
            awaiting = call_ids[::-1]
        else:
            yield "user", [_result(message, awaiting.pop())]


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
    name = _ILLEGAL.sub("_", call.name)[:_MAX_CHARS] or "unknown"
    try:
        arguments = argument_object(call.name, call.arguments_json)
    except CallRefused:
        arguments = "{}"  # of an imported conversation; our own are checked
    return f'{{"type":"tool_use","id":"{call_id}","name":"{name}","input":{arguments}}}'


def _result(message: ToolResultMessage, call_id: str) -> str:
    text = _quoted(_said(message.text) if message.text.strip() else BLANK_RESULT)
    is_error = ',"is_error":true' if message.is_error else ""
    return f'{{"type":"tool_result","tool_use_id":"{call_id}","content":{text}{is_error}}}'


def _tool(spec: ToolSpec) -> str:
    tool = {"name": spec.name, "description": spec.description, "input_schema": spec.schema}
    return json.dumps(tool, ensure_ascii=False, separators=(",", ":"))


def _text(text: str) -> str:
    return f'{{"type":"text","text":{_quoted(text)}}}'


def _marked(block: str) -> str:
    return block[:-1] + _CACHE_MARK


def _said(text: str) -> str:
    if "ANTHROPIC_MAGIC" not in text:
        return text
    return _TEST_OF_REFUSAL.sub("(a string that tests refusals)", text)


def _quoted(text: str) -> str:
    """`text` as a JSON string; the way for ASCII is the faster one."""
    return json.encoder.encode_basestring_ascii(text) if text.isascii() else json.encoder.encode_basestring(text)
