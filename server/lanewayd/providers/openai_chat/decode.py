"""Chat completion bytes -> stream events. Pure. Source: spec 05, 4.1 and 4.2, and cases a (they win)."""

import json
from collections import deque
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, RunError, StopReason, ToolCall, Usage
from lanewayd.providers.arguments import CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import Fault, classify_error_body, failed_by, fault, run_error
from lanewayd.providers.interface import Done, Failed, StreamEvent
from lanewayd.providers.openai_chat.answer import Answer
from lanewayd.providers.openai_chat.chunk_fields import (
    STOP_REASONS,
    Part,
    content_of,
    delta_of,
    encrypted_reasoning_of,
    first_choice,
    plain_part_of,
    reasoning_of,
)
from lanewayd.providers.openai_chat.reasoning_tags import ReasoningTags
from lanewayd.providers.openai_chat.resend import ResendFilter
from lanewayd.providers.openai_chat.tool_call_assembly import ToolCallAssembly
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.response_model import response_model
from lanewayd.providers.sse import SseEvent, SseParser
from lanewayd.providers.surrogates import SurrogateJoiner
from lanewayd.providers.usage_fields import usage_of

MAX_QUEUED_BYTES = 256_000
MAX_QUEUED_BEHIND_LEGACY_CALL = 1_024
MAX_BODY_BYTES = 10_000_000
_HTTP_OK = 200
# So much of a body that is no event stream is kept for the error.
_HEAD_BYTES = 512
_JSON = json.JSONDecoder()
_ONLY_CALLS = {"tool_calls"}
_CALL_FIELDS = frozenset(("tool_calls", "function_call", "reasoning_details"))
_BOM = b"\xef\xbb\xbf"
# What the model's service says of its own failure in place of a finish reason.
_FAILED_STOPS: dict[str, Fault] = {
    "content_filter": fault(ErrorCode.PROVIDER_REFUSED),
    "error": fault(ErrorCode.PROVIDER_UNAVAILABLE, "the service ended the answer with an error"),
    "abort": fault(ErrorCode.PROVIDER_STREAM_CUT, "the service aborted the answer"),
    "network_error": fault(ErrorCode.PROVIDER_STREAM_CUT, "the service lost the connection to the model"),
    "malformed_response": fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the service got a malformed answer of the model"),
}


class _Refused(Exception):
    """The response cannot be decoded any further."""

    def __init__(self, cause: Fault) -> None:
        super().__init__(cause.what)
        self.cause = cause


class ChatDecoder:
    """One response: an event stream, or the JSON of a whole completion or an error."""

    def __init__(self, *, provider: str, model: str, ids: CallIds) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._head = b""
        self._sse: SseParser | None = None
        self._json_parts: list[bytes] | None = None
        self._json_bytes = 0
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
        self._progress = 0
        self._is_finished = False

    @property
    def is_finished(self) -> bool:
        return self._is_finished

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_word)

    @property
    def progress(self) -> int:
        return self._progress

    def feed(self, data: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._is_finished:
            return events
        try:
            self._take_bytes(data, events)
        except _Refused as refused:
            events.append(self._fail(refused.cause))
        return events

    def end(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._is_finished:
            return events
        try:
            if self._json_parts is not None:
                self._take_json_body(events)
            else:
                self._take_unfinished_event(events)
            if not self._is_finished:
                self._finish(events)
        except _Refused as refused:
            events.append(self._fail(refused.cause))
        return events

    def fail(self, error: RunError, *, is_transient: bool) -> Failed:
        self._is_finished = True
        partial = AssistantMessage(
            self._answer.content(),
            self._provider,
            self._model,
            StopReason.ERROR,
            self._usage or Usage(unavailable=True),
            self._finish_word,
            self._response_model,
        )
        return Failed(error, partial, is_transient=is_transient)

    def _fail(self, cause: Fault) -> Failed:
        error = run_error(cause, provider=self._provider, model=self._model, http_status=_HTTP_OK)
        return failed_by(cause, self.fail(error, is_transient=cause.is_transient))

    # Bytes

    def _take_bytes(self, data: bytes, events: list[StreamEvent]) -> None:
        if self._sse is None and self._json_parts is None:
            data = self._head = self._head + data
            self._recognise(data)
        elif not self._progress and len(self._head) < _HEAD_BYTES:
            self._head += data
        if self._json_parts is not None:
            self._json_bytes += len(data)
            if self._json_bytes > MAX_BODY_BYTES:
                raise _Refused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer is too large"))
            self._json_parts.append(data)
        elif self._sse is not None:
            for event in self._sse.feed(data):
                self._take_event(event, events)
                if self._is_finished:
                    return
            if self._sse.is_overflowed:
                what = "an event of the stream is too large"
                raise _Refused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, what))

    def _recognise(self, head: bytes) -> None:
        """A body that begins like JSON is one; everything else is read as an event stream, whatever the headers say."""
        begin = head.removeprefix(_BOM).lstrip(b" \t\r\n")
        if (not begin and len(head) < MAX_QUEUED_BYTES) or _BOM.startswith(head):
            return
        if begin.startswith((b"{", b"[")):
            self._json_parts = []
        else:
            self._sse = SseParser()

    def _take_event(self, event: SseEvent, events: list[StreamEvent]) -> None:
        name, data = event
        data = data.strip()
        if not data:
            return
        self._progress += 1
        if data == "[DONE]":
            self._saw_end_mark = True
            self._finish(events)
            return
        chunk = self._parsed(data)
        text, field = ("", "") if name else plain_part_of(chunk)
        if field:
            self._take_thought(text, field, events)
        elif text:
            self._take_text(text, events)
        else:
            self._take_chunk(chunk, events, is_error=name == "error")

    def _take_unfinished_event(self, events: list[StreamEvent]) -> None:
        """An event that the end of the body completes counts; one that it cuts does not."""
        for event in self._sse.end() if self._sse else ():
            data = event[1].strip()
            try:
                is_whole = data == "[DONE]" or isinstance(json.loads(data), dict)
            except (ValueError, RecursionError):
                continue
            if is_whole:
                self._take_event(event, events)
        if not self._progress and self._head.strip() and not (self._sse and self._sse.is_recognised):
            what = "the answer is no event stream"
            said = excerpt(self._head[:_HEAD_BYTES].decode("utf-8", "replace"))
            raise _Refused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, what, said=said))

    def _take_json_body(self, events: list[StreamEvent]) -> None:
        body = b"".join(self._json_parts or ()).removeprefix(_BOM).decode("utf-8", "replace")
        chunk = self._parsed(body.strip(" \t\r\n"))
        self._progress += 1
        if not isinstance(chunk, dict) or not first_choice(chunk):
            raise _Refused(classify_error_body(chunk))
        self._saw_end_mark = True
        self._take_chunk(chunk, events)

    def _parsed(self, text: str) -> Any:
        try:
            chunk, end = _JSON.raw_decode(text)
            if end < len(text):
                raise ValueError("more than one value")
            return chunk
        except (ValueError, RecursionError):
            what = "the answer holds data that is no JSON"
            cause = fault(ErrorCode.PROVIDER_BAD_RESPONSE, what, said=excerpt(text[:4096]))
            raise _Refused(cause) from None

    # Chunks

    def _take_chunk(self, chunk: Any, events: list[StreamEvent], *, is_error: bool = False) -> None:
        if not isinstance(chunk, dict) or is_error or chunk.get("error"):
            raise _Refused(classify_error_body(chunk))
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
            raise _Refused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, what))

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
            raise _Refused(_bad_call(refused)) from None
        if self._calls.has_calls or self._legacy_call.has_calls:
            events += self._answer.end_block()

    # The end

    def _finish(self, events: list[StreamEvent]) -> None:
        """The terminal event, after all that was held back."""
        if not self._finish_word and not self._saw_end_mark:
            raise _Refused(fault(ErrorCode.PROVIDER_STREAM_CUT))
        stop_reason = STOP_REASONS.get(self._finish_word or "stop")
        if stop_reason is None:
            raise _Refused(_failed_stop(self._finish_word))
        calls = self._whole_calls(stop_reason)
        if stop_reason is not StopReason.LENGTH:
            stop_reason = StopReason.TOOL_USE if calls else StopReason.STOP
        self._release(calls, events)
        self._is_finished = True
        message = AssistantMessage(
            self._answer.content(),
            self._provider,
            self._model,
            stop_reason,
            self._usage or Usage(unavailable=True),
            self._finish_word,
            self._response_model,
        )
        events.append(Done(message))

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
            raise _Refused(_bad_call(refused)) from None

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
