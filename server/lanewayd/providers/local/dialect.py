"""The chat completions language as the embedded model's process takes it: plain text, tools as a question. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewayd.messages import Message, ToolResultMessage, UserMessage
from lanewayd.providers.call_ids import CallIdFactory
from lanewayd.providers.images import shown_messages
from lanewayd.providers.interface import Decoder, ModelRequest
from lanewayd.providers.local.plain_messages import (
    FOR_OTHERS,
    FOR_THE_EMBEDDED_MODEL,
    Wording,
    plain_messages,
)
from lanewayd.providers.local.tool_choice import ToolQuestion, question_about
from lanewayd.providers.openai_chat.dialect import UNKNOWN_SERVICE, OpenAIChat
from lanewayd.providers.openai_chat.encode import encode_request


@dataclass(frozen=True, slots=True)
class LocalManners:
    """How a local model is talked to. `options` are added to each request for text, `result_options` to one for what
    a tool's result means."""

    chooses_tools_by_itself: bool
    wording: Wording
    options: Mapping[str, Any]
    result_options: Mapping[str, Any]


EMBEDDED_MANNERS = LocalManners(
    False,
    FOR_THE_EMBEDDED_MODEL,
    # Greedy: at its size every draw from the less likely words is a mistake, and a penalty on repeating costs it facts
    # that it knows (measured). What goes round in circles is ended by the limit of an answer.
    {"temperature": 0},
    {"temperature": 0, "max_tokens": 64},
)
OTHER_MANNERS = LocalManners(True, FOR_OTHERS, {}, {})


class LocalChat:
    """Implements providers.interface.Dialect. The answer to a `question` is text too: the JSON that its schema asks."""

    def __init__(self, manners: LocalManners, *, new_call_id: CallIdFactory) -> None:
        self._manners = manners
        self._chat = OpenAIChat(new_call_id=new_call_id)

    def question(self, request: ModelRequest) -> ToolQuestion | None:
        """What `request` asks about its tools; None: it asks for text."""
        return question_about(request.tools, request.messages, chooses_by_itself=self._manners.chooses_tools_by_itself)

    @property
    def models_path(self) -> str:
        return self._chat.models_path

    def path(self, request: ModelRequest) -> str:
        return self._chat.path(request)

    def headers(self, api_key: str) -> dict[str, str]:
        return self._chat.headers(api_key)

    def has_native_schema(self, request: ModelRequest) -> bool:
        return request.response_schema is not None

    def encode(self, request: ModelRequest) -> bytes:
        question = self.question(request)
        messages = plain_messages(shown_messages(request), self._manners.wording, reminds=question is None)
        is_about_result = bool(request.messages) and isinstance(request.messages[-1], ToolResultMessage)
        options = dict(self._manners.result_options if is_about_result else self._manners.options)
        if request.temperature is not None:
            options.pop("temperature", None)
        if question is not None:
            messages = _asked(messages, question.instruction)
            schema = {"name": "tool_choice", "schema": question.schema}
            options = {"temperature": 0, "response_format": {"type": "json_schema", "json_schema": schema}}
        elif request.response_schema is not None:
            schema = {"name": "answer", "schema": _in_grammar(request.response_schema)}
            options |= {"response_format": {"type": "json_schema", "json_schema": schema}}
            options.pop("max_tokens", None)
        return encode_request(replace(request, messages=messages, tools=()), UNKNOWN_SERVICE, options)

    def decoder(self, request: ModelRequest, provider: str) -> Decoder:
        return self._chat.decoder(request, provider)


def _in_grammar(schema: Any) -> Any:
    """`schema` without what the process refuses to hold a model to; the answer is checked against all of it."""
    if isinstance(schema, Mapping):
        is_refused = {name for name in _NOT_IN_GRAMMARS if isinstance(schema.get(name), str)}
        return {name: _in_grammar(member) for name, member in schema.items() if name not in is_refused}
    return [_in_grammar(item) for item in schema] if isinstance(schema, list) else schema


_NOT_IN_GRAMMARS = frozenset({"pattern", "format"})


def _asked(messages: tuple[Message, ...], instruction: str) -> tuple[Message, ...]:
    """At the end, so that the process finds the conversation before it among what it has read already."""
    last = messages[-1] if messages else None
    if isinstance(last, UserMessage):
        return (*messages[:-1], UserMessage(f"{last.text}\n\n{instruction}"))
    return (*messages, UserMessage(instruction))
