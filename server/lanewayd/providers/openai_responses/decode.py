"""Events of a response -> stream events. Pure. Source: spec 05, 3 and 4.3, R-5.62 to R-5.72, and case B-021 (it wins).

What an event is stands in its JSON; the `event:` line counts only where that says nothing. Events of kinds that are not
known here are progress and nothing else.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, StopReason, ToolCall, Usage
from lanewayd.providers.arguments import CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import Fault, classify_error_body, fault
from lanewayd.providers.interface import Done, StreamEvent
from lanewayd.providers.json_events import JsonEvent, ResponseRefused
from lanewayd.providers.openai_responses.item_fields import ItemKind, index_of, text_of
from lanewayd.providers.openai_responses.output import Output, OutputRefused
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.response_model import response_model
from lanewayd.providers.usage_fields import usage_of

_PREFIX = "response."
_ENDINGS = frozenset(f"{_PREFIX}{word}" for word in ("completed", "incomplete", "failed", "cancelled", "done"))
_LENGTH_WORDS = ("max_output_tokens", "max_tokens", "length")
_GOING_ON: Mapping[str, ItemKind] = {
    "response.output_text.delta": "message",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
Take = Callable[[dict[str, Any], list[StreamEvent]], None]


class ResponsesAnswer:
    """Reads the events of one response. Implements stream_decoder.Interpreter."""

    def __init__(self, *, provider: str, model: str, ids: CallIds) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._output = Output()
        self._usage: Usage | None = None
        self._stop_word = ""
        self._response_model = ""
        self._is_recognised = False
        self._takes: Mapping[str, Take] = {
            "response.created": self._take_start,
            "response.output_text.delta": self._take_text,
            "response.refusal.delta": self._take_text,
            "response.reasoning_summary_text.delta": self._take_reasoning,
            "response.reasoning_text.delta": self._take_reasoning,
            "response.function_call_arguments.delta": self._take_arguments,
            "response.function_call_arguments.done": self._take_whole_arguments,
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._complete_item,
        }

    @property
    def is_complete(self) -> bool:
        # Usage stands in the event that ends the response: there is nothing left to wait for.
        return False

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        if event.is_end_mark:
            return
        if not isinstance(event.value, dict):
            raise ResponseRefused(classify_error_body(event.value))
        try:
            self._take_event(text_of(event.value.get("type")) or event.name, event, into)
        except (CallRefused, OutputRefused) as refused:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, str(refused))) from None

    def finish(self, into: list[StreamEvent]) -> None:
        if self._is_recognised:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_STREAM_CUT))
        raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer holds no event of a response"))

    def partial(self) -> AssistantMessage:
        return self._message(StopReason.ERROR)

    def _take_event(self, kind: str, event: JsonEvent, into: list[StreamEvent]) -> None:
        value = event.value
        going_on = _GOING_ON.get(kind)
        if going_on is not None and self._output.go_on(going_on, value, into):
            return  # nearly all events are of these, behind the first of their item
        take = self._takes.get(kind)
        if take is not None:
            self._is_recognised = True
            take(value, into)
        elif kind in _ENDINGS:
            response = value.get("response")
            response = response if isinstance(response, dict) else {}
            self._end(response, text_of(response.get("status")) or kind.removeprefix(_PREFIX), into)
        elif kind == "error" or (value.get("error") and not kind.startswith(_PREFIX)):
            raise ResponseRefused(classify_error_body(value))
        elif event.is_body and text_of(value.get("status")):
            # The response itself, from a service that does not stream.
            self._end(value, text_of(value.get("status")), into)
        else:
            self._is_recognised = self._is_recognised or kind.startswith(_PREFIX)

    def _take_start(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        if isinstance(event.get("response"), dict):
            self._name_model(event["response"])

    def _name_model(self, response: dict[str, Any]) -> None:
        self._response_model = response_model(response.get("model"), self._response_model, asked=self._model)

    # Items

    def _take_text(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        index, item_id = _where(event)
        self._output.say(index, item_id, _raw(event.get("delta")), into)

    def _take_reasoning(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        index, item_id = _where(event)
        part = index_of(event.get("summary_index"))
        self._output.think(index, item_id, _raw(event.get("delta")), into, summary_index=part)

    def _take_arguments(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        index, item_id = _where(event)
        self._output.add_arguments(index, item_id, _raw(event.get("delta")), is_whole=False)

    def _take_whole_arguments(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        index, item_id = _where(event)
        self._output.add_arguments(index, item_id, _raw(event.get("arguments")), is_whole=True)

    def _begin_item(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        if isinstance(event.get("item"), dict):
            self._output.begin(_where(event)[0], event["item"], into)

    def _complete_item(self, event: dict[str, Any], into: list[StreamEvent]) -> None:
        if isinstance(event.get("item"), dict):
            self._output.complete(_where(event)[0], event["item"], into)

    # The end

    def _end(self, response: dict[str, Any], status: str, into: list[StreamEvent]) -> None:
        """The event that ends the response: its status decides, its output fills gaps."""
        self._name_model(response)
        self._usage = usage_of(response.get("usage"))
        self._stop_word = status
        is_cut_by_length = False
        if status == "incomplete":
            details = response.get("incomplete_details")
            self._stop_word = text_of(details.get("reason")) if isinstance(details, dict) else ""
            is_cut_by_length = self._stop_word in _LENGTH_WORDS
        if status != "completed" and not is_cut_by_length:
            raise ResponseRefused(_failure_of(response, status, self._stop_word))
        output = response.get("output")
        self._output.recover(output if isinstance(output, list) else (), into, takes_calls=not is_cut_by_length)
        # Before the calls are looked at: what was shown stands in the failed message too.
        self._output.close(into)
        calls = {} if is_cut_by_length else self._output.whole_calls(self._ids)
        stop_reason = StopReason.LENGTH if is_cut_by_length else StopReason.TOOL_USE if calls else StopReason.STOP
        into.append(Done(self._message(stop_reason, calls)))

    def _message(self, stop_reason: StopReason, calls: dict[int, ToolCall] | None = None) -> AssistantMessage:
        content = self._output.content(calls)
        usage = self._usage or Usage(unavailable=True)
        return AssistantMessage(
            content, self._provider, self._model, stop_reason, usage, self._stop_word, self._response_model
        )


def _where(event: dict[str, Any]) -> tuple[int | None, str]:
    """The output index and the id of the item that an event is about."""
    return index_of(event.get("output_index")), text_of(event.get("item_id"))


def _raw(value: Any) -> str:
    """A piece of a text; at its ends there may be halves of a surrogate pair."""
    return value if isinstance(value, str) else ""


def _failure_of(response: dict[str, Any], status: str, stop_word: str) -> Fault:
    """Why a response that was not completed failed."""
    if status == "incomplete":
        if stop_word == "content_filter":
            return fault(ErrorCode.PROVIDER_REFUSED, "the content filter ended the answer")
        what = f"the answer was left incomplete for the reason {excerpt(stop_word)[:60] or 'unknown'}"
        return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
    if response.get("error"):
        return classify_error_body(response)
    if status == "cancelled":
        return fault(ErrorCode.PROVIDER_STREAM_CUT, "the service cancelled the answer")
    if status == "failed":
        return fault(ErrorCode.PROVIDER_UNAVAILABLE, "the service ended the answer with an error")
    what = f"the answer ended with the unknown status {excerpt(status)[:60] or 'none'}"
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
