"""Chat completion chunks -> stream events. Pure. Source: spec 05, 4.1 and 4.2, and cases a (they win)."""

from collections import deque
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, StopReason, ToolCall, Usage
from lanewayd.providers.answer import Answer, Part
from lanewayd.providers.arguments import CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import Fault, classify_error_body, fault
from lanewayd.providers.interface import Done, StreamEvent
from lanewayd.providers.json_events import JsonEvent, ResponseRefused
from lanewayd.providers.openai_chat.chunk_fields import (
    STOP_REASONS,
    content_of,
    delta_of,
    encrypted_reasoning_of,
    first_choice,
    plain_part_of,
    reasoning_of,
)
from lanewayd.providers.openai_chat.resend import ResendFilter
from lanewayd.providers.openai_chat.tool_call_assembly import ToolCallAssembly
from lanewayd.providers.reasoning_tags import ReasoningTags
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.response_model import response_model
from lanewayd.providers.surrogates import SurrogateJoiner
from lanewayd.providers.usage_fields import usage_of

MAX_QUEUED_BYTES = 256_000
MAX_QUEUED_BEHIND_LEGACY_CALL = 1_024
_ONLY_CALLS = {"tool_calls"}
_CALL_FIELDS = frozenset(("tool_calls", "function_call", "reasoning_details"))
# What the model's service says of its own failure in place of a finish reason.
_FAILED_STOPS: dict[str, Fault] = {
    "content_filter": fault(ErrorCode.PROVIDER_REFUSED),
    "error": fault(ErrorCode.PROVIDER_UNAVAILABLE, "the service ended the answer with an error"),
    "abort": fault(ErrorCode.PROVIDER_STREAM_CUT, "the service aborted the answer"),
    "network_error": fault(ErrorCode.PROVIDER_STREAM_CUT, "the service lost the connection to the model"),
    "malformed_response": fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the service got a malformed answer of the model"),
}


class ChatAnswer:
    """Reads the chunks of one response, or the whole completion of a service that does not stream.

    Implements stream_decoder.Interpreter.
    """

    def __init__(self, *, provider: str, model: str, ids: CallIds) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._answer = Answer()
        self._tags = ReasoningTags()
        self._resends = {False: ResendFilter(), True: ResendFilter()}
        self._joiners = {False: SurrogateJoiner(), True: SurrogateJoiner()}
        self._calls = ToolCallAssembly()
        self._legacy_call = ToolCallAssembly()
        self._signatures: dict[str, str] = {}
        self._queue: deque[Part] = deque()
        self._queued_bytes = 0
        self._usage: Usage | None = None
        self._finish_word = ""
        self._response_model = ""
        self._saw_end_mark = False

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_word)

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        chunk, name, is_body, is_end_mark = event
        text, field = ("", "") if name or is_body else plain_part_of(chunk)
        if field:
            self._take_thought(text, field, into)
        elif text:
            self._take_text(text, into)
        elif is_end_mark:
            self._saw_end_mark = True
            self.finish(into)
        elif is_body:
            self._take_whole(chunk, into)
        else:
            self._take_chunk(chunk, into, is_error=name == "error")

    def partial(self) -> AssistantMessage:
        return self._message(StopReason.ERROR)

    # Chunks

    def _take_whole(self, completion: Any, events: list[StreamEvent]) -> None:
        if not isinstance(completion, dict) or not first_choice(completion):
            raise ResponseRefused(classify_error_body(completion))
        self._saw_end_mark = True
        self._take_chunk(completion, events)

    def _take_chunk(self, chunk: Any, events: list[StreamEvent], *, is_error: bool = False) -> None:
        if not isinstance(chunk, dict) or is_error or chunk.get("error"):
            raise ResponseRefused(classify_error_body(chunk))
        self._response_model = response_model(chunk.get("model"), self._response_model, asked=self._model)
        choice = first_choice(chunk)
        for holder in (choice, chunk):  # what the chunk says counts more
            if holder.get("usage"):
                self._usage = usage_of(holder["usage"]) or self._usage
        finish_word = choice.get("finish_reason")
        finish_word = finish_word if isinstance(finish_word, str) else ""
        delta = delta_of(choice)
        is_whole = delta is choice.get("message") and bool(finish_word)
        if delta.keys() != _ONLY_CALLS:
            reasoning = reasoning_of(delta)
            for part in ([reasoning] if reasoning else []) + content_of(delta):
                self._take_part(part, events, is_whole=is_whole)
        if not delta.keys().isdisjoint(_CALL_FIELDS):
            self._take_calls(delta, events, is_whole=is_whole)
        self._finish_word = finish_word or self._finish_word

    def _take_text(self, text: str, events: list[StreamEvent]) -> None:
        """As `_take_chunk`, for a chunk that has text only."""
        text = self._joiners[False].feed(self._resends[False].new_part(text, is_whole=False))
        if not text:
            return
        has_open_calls = self._calls.has_calls or self._legacy_call.has_calls
        delta = self._answer.grow(text) if not has_open_calls and self._tags.lets_through(text) else None
        if delta is not None:
            events.append(delta)
        else:
            self._show_tagged(text, events)

    def _take_thought(self, text: str, field: str, events: list[StreamEvent]) -> None:
        """As `_take_chunk`, for a chunk that has a thought only."""
        text = self._joiners[True].feed(self._resends[True].new_part(text, is_whole=False))
        has_open_calls = self._calls.has_calls or self._legacy_call.has_calls
        delta = self._answer.grow(text, is_reasoning=True) if text and not has_open_calls else None
        if delta is not None:
            events.append(delta)
        else:
            self._show(Part(text, is_reasoning=True, field=field), events)

    def _take_part(self, part: Part, events: list[StreamEvent], *, is_whole: bool) -> None:
        text = self._resends[part.is_reasoning].new_part(part.text, is_whole=is_whole)
        text = self._joiners[part.is_reasoning].feed(text)
        if part.is_reasoning:
            self._show(part._replace(text=text), events)
        else:
            self._show_tagged(text, events)

    def _show_tagged(self, text: str, events: list[StreamEvent]) -> None:
        for piece in self._tags.feed(text):
            self._show(Part(piece.text, piece.is_reasoning), events)

    def _show(self, part: Part, events: list[StreamEvent]) -> None:
        """Emit `part`, or keep it until the open calls have ended (R-5.47, R-5.54)."""
        if not part.text:
            return
        if not self._calls.has_calls and not self._legacy_call.has_calls:
            events += self._answer.add(part)
            return
        self._queued_bytes += len(part.text.encode())
        self._queue.append(part)
        is_behind_legacy = not self._calls.has_calls and len(self._queue) > MAX_QUEUED_BEHIND_LEGACY_CALL
        if self._queued_bytes > MAX_QUEUED_BYTES or is_behind_legacy:
            what = "too much text behind an unfinished tool call"
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, what))

    def _take_calls(self, delta: dict[str, Any], events: list[StreamEvent], *, is_whole: bool) -> None:
        if "reasoning_details" in delta:
            self._signatures.update(encrypted_reasoning_of(delta))
        fragments = delta.get("tool_calls")
        fragments = fragments if isinstance(fragments, list) else []
        if is_whole and self._calls.has_calls:
            fragments = []
        try:
            for fragment in fragments:
                self._calls.add(fragment)
            if isinstance(delta.get("function_call"), dict):
                self._legacy_call.add({"index": 0, "function": delta["function_call"]})
        except CallRefused as refused:
            raise ResponseRefused(_bad_call(refused)) from None
        if self._calls.has_calls or self._legacy_call.has_calls:
            events += self._answer.end_block()

    # The end

    def finish(self, into: list[StreamEvent]) -> None:
        if not self._finish_word and not self._saw_end_mark:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_STREAM_CUT))
        stop_reason = STOP_REASONS.get(self._finish_word or "stop")
        if stop_reason is None:
            raise ResponseRefused(_failed_stop(self._finish_word))
        calls = self._whole_calls(stop_reason)
        if stop_reason is not StopReason.LENGTH:
            stop_reason = StopReason.TOOL_USE if calls else StopReason.STOP
        self._release(calls, into)
        into.append(Done(self._message(stop_reason)))

    def _message(self, stop_reason: StopReason) -> AssistantMessage:
        return AssistantMessage(
            self._answer.content(),
            self._provider,
            self._model,
            stop_reason,
            self._usage or Usage(unavailable=True),
            self._finish_word,
            self._response_model,
        )

    def _whole_calls(self, stop_reason: StopReason) -> tuple[ToolCall, ...]:
        """The calls to run: none of an answer cut by its length (R-5.35); a label `stop` does not hide them (B-008)."""
        calls = self._calls
        if not calls.has_calls and self._finish_word == "function_call":
            calls = self._legacy_call
        if stop_reason is StopReason.LENGTH:
            return ()
        try:
            drops_phantoms = stop_reason is not StopReason.TOOL_USE
            return calls.finish(self._ids, self._signatures, drops_phantoms=drops_phantoms)
        except CallRefused as refused:
            raise ResponseRefused(_bad_call(refused)) from None

    def _release(self, calls: tuple[ToolCall, ...], events: list[StreamEvent]) -> None:
        """Show what was held back: in front of the calls what came before them, the rest behind."""
        has_open_calls = self._calls.has_calls or self._legacy_call.has_calls
        rest: list[Part] = list(self._queue)
        self._queue.clear()
        late = Part(self._joiners[True].end(), is_reasoning=True)
        pieces = [*self._tags.feed(self._joiners[False].end()), *self._tags.end()]
        rest += [late, *(Part(piece.text, piece.is_reasoning) for piece in pieces)]
        if has_open_calls:
            self._answer.add_calls(calls)
        for part in rest:
            events += self._answer.add(part)
        events += self._answer.end_block()


def _bad_call(refused: CallRefused) -> Fault:
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, str(refused))


def _failed_stop(word: str) -> Fault:
    known = _FAILED_STOPS.get(word)
    if known is not None:
        return Fault(known.reason, f"{known.what}, finish reason {word}", known.is_transient)
    what = f"the answer ended with the unknown finish reason {excerpt(word)[:60]}"
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
