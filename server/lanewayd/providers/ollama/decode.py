"""Ollama's lines -> stream events. Pure. Source: spec 05, 4.6, R-5.89 to R-5.92, and cases B-025 and B-026 (they win).

Models whose template Ollama does not know think in the text, between tags; these are split off as for everybody else.
"""

import json
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, StopReason, ToolCall, Usage
from lanewayd.providers.answer import Answer, Part
from lanewayd.providers.arguments import MAX_CALLS, CallRefused, argument_object, check_size
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import Fault, classify_error_body, fault
from lanewayd.providers.interface import Done, StreamEvent
from lanewayd.providers.json_events import JsonEvent, ResponseRefused
from lanewayd.providers.ollama.encode import THINKING_FIELD
from lanewayd.providers.reasoning_tags import ReasoningTags
from lanewayd.providers.response_model import response_model
from lanewayd.providers.surrogates import SurrogateJoiner
from lanewayd.providers.usage_fields import count_of

_THINKING_FIELDS = (THINKING_FIELD, "reasoning")
_CUT_BY_LENGTH = "length"


class OllamaAnswer:
    """Reads the lines of one response, the last of which is `done`. Implements stream_decoder.Interpreter.

    Calls come whole and stand behind all text, wherever in the answer their lines came.
    """

    def __init__(self, *, provider: str, model: str, ids: CallIds) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._answer = Answer()
        self._tags = ReasoningTags()
        self._text = SurrogateJoiner()
        self._thinking = SurrogateJoiner()
        self._calls: list[tuple[str, str, str]] = []
        """Id (mostly empty), name and arguments."""
        self._usage: Usage | None = None
        self._stop_word = ""
        self._response_model = ""

    @property
    def is_complete(self) -> bool:
        # Usage stands in the line that ends the answer: there is nothing left to wait for.
        return False

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        line = event.value
        text = _plain_text_of(line)
        if text:
            self._say(self._text.feed(text), into)
            return
        if not isinstance(line, dict) or line.get("error"):
            raise ResponseRefused(_failure_in(line))
        self._response_model = response_model(line.get("model"), self._response_model, asked=self._model)
        message = line.get("message")
        if isinstance(message, dict):
            self._take_message(message, into)
        if line.get("done") is True:
            self._end(line, into)

    def finish(self, into: list[StreamEvent]) -> None:
        raise ResponseRefused(fault(ErrorCode.PROVIDER_STREAM_CUT))

    def partial(self) -> AssistantMessage:
        return self._message(StopReason.ERROR)

    def _take_message(self, message: dict[str, Any], into: list[StreamEvent]) -> None:
        for name in _THINKING_FIELDS:
            thinking = message.get(name)
            if thinking and isinstance(thinking, str):
                self._think(self._thinking.feed(thinking), into)
                break
        text = message.get("content")
        if isinstance(text, str) and text:
            self._say(self._text.feed(text), into)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._call(call)

    def _think(self, text: str, into: list[StreamEvent]) -> None:
        delta = self._answer.grow(text, is_reasoning=True) if text else None
        if delta is not None:
            into.append(delta)
            return
        into += self._answer.add(Part(text, is_reasoning=True, field=THINKING_FIELD))

    def _say(self, text: str, into: list[StreamEvent]) -> None:
        delta = self._answer.grow(text) if text and self._tags.lets_through(text) else None
        if delta is not None:
            into.append(delta)
            return
        for piece in self._tags.feed(text):
            into += self._answer.add(Part(piece.text, piece.is_reasoning))

    def _call(self, call: Any) -> None:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise ResponseRefused(_bad_call("incomplete or malformed tool call: it has no function"))
        if len(self._calls) == MAX_CALLS:
            raise ResponseRefused(_bad_call(f"an answer with more than {MAX_CALLS} tool calls"))
        name, call_id = function.get("name"), call.get("id")
        if not isinstance(name, str) or not name.strip():
            raise ResponseRefused(_bad_call("incomplete or malformed tool call: it has no name"))
        try:
            arguments = _arguments_of(name.strip(), function.get("arguments"))
        except CallRefused as refused:
            raise ResponseRefused(_bad_call(str(refused))) from None
        self._calls.append((call_id if isinstance(call_id, str) else "", name.strip(), arguments))

    def _end(self, line: dict[str, Any], into: list[StreamEvent]) -> None:
        """The line that says done, with all that was held back. An answer cut by its length runs no call (R-5.35)."""
        self._usage = _usage_of(line)
        word = line.get("done_reason")
        self._stop_word = word if isinstance(word, str) else ""
        self._think(self._thinking.end(), into)
        for piece in [*self._tags.feed(self._text.end()), *self._tags.end()]:
            into += self._answer.add(Part(piece.text, piece.is_reasoning))
        into += self._answer.end_block()
        if self._stop_word == _CUT_BY_LENGTH:
            stop_reason = StopReason.LENGTH
        else:
            calls = tuple(ToolCall(self._ids.claim(call_id), name, text) for call_id, name, text in self._calls)
            self._answer.add_calls(calls)
            stop_reason = StopReason.TOOL_USE if calls else StopReason.STOP
        into.append(Done(self._message(stop_reason)))

    def _message(self, stop_reason: StopReason) -> AssistantMessage:
        usage = self._usage or Usage(unavailable=True)
        content = self._answer.content()
        return AssistantMessage(
            content, self._provider, self._model, stop_reason, usage, self._stop_word, self._response_model
        )


def _plain_text_of(line: Any) -> str:
    """The text of a line that has text and nothing else to say, as nearly all do; empty for any other."""
    try:
        message = line["message"]
        text = message["content"]
        says_more = line.get("done") or line.get("error") or message.get("tool_calls")
    except (KeyError, TypeError, AttributeError):
        return ""
    if says_more or type(text) is not str or message.get(THINKING_FIELD) or message.get("reasoning"):
        return ""
    return text


def _arguments_of(name: str, value: Any) -> str:
    """The text of the object, which comes as an object; as text from some proxies. Raises CallRefused."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise CallRefused(f"incomplete or malformed tool call: the arguments of {name} are nested too deeply") from None
    check_size(len(text.encode("utf-8", "surrogatepass")))
    return argument_object(name, text)


def _usage_of(line: dict[str, Any]) -> Usage | None:
    """Tokens of the prompt and of the answer; Ollama leaves out what it did not count."""
    prompt, answer = count_of(line, "prompt_eval_count"), count_of(line, "eval_count")
    return None if prompt is None and answer is None else Usage(input_tokens=prompt or 0, output_tokens=answer or 0)


def _failure_in(line: Any) -> Fault:
    """What a line in place of an answer reports. An error without a known cause is the model's runner that failed."""
    cause = classify_error_body(line)
    if cause.reason is not ErrorCode.PROVIDER_BAD_RESPONSE or not isinstance(line, dict):
        return cause
    return Fault(
        ErrorCode.PROVIDER_UNAVAILABLE, "the service ended the answer with an error", is_transient=True, said=cause.said
    )


def _bad_call(what: str) -> Fault:
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
