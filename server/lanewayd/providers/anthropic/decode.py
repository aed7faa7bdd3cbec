"""The events of a Messages response -> stream events. Pure. Source: spec 05, 4.1 and 4.4, and cases a (they win)."""

from collections.abc import Callable
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantMessage, StopReason
from lanewayd.providers.anthropic.answer import (
    REDACTED,
    REDACTED_TEXT,
    Answer,
    Call,
    Prose,
    name_of,
    text_of,
)
from lanewayd.providers.anthropic.usage import UsageCounts
from lanewayd.providers.arguments import MAX_CALLS, CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import Fault, classify_error_body, fault
from lanewayd.providers.interface import Done, StreamEvent
from lanewayd.providers.json_events import JsonEvent, ResponseRefused
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.response_model import response_model

MAX_BLOCKS = 4_096
MAX_ANSWER_CHARS = 10_000_000
"""Of all texts, thoughts, signatures and arguments together."""

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "compaction": StopReason.STOP,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    # The answer is valid and was cut where the window ended (Anthropic's documentation, "Handling stop reasons").
    "model_context_window_exceeded": StopReason.LENGTH,
}
_PAUSED = "the model paused for a tool of the service's own, and none of those are used here"
_FAILED_STOPS: dict[str, Fault] = {
    "refusal": fault(ErrorCode.PROVIDER_REFUSED),
    "sensitive": fault(ErrorCode.PROVIDER_REFUSED),
    # As a normal end the answer would be cut; going on would need the service's own block in the history (B-020).
    "pause_turn": fault(ErrorCode.PROVIDER_BAD_RESPONSE, _PAUSED),
}

_GROWING = {"text_delta": "text", "thinking_delta": "thinking"}
_Take = Callable[[dict[str, Any], list[StreamEvent]], None]


class MessageInterpreter:
    """Implements providers.stream_decoder.Interpreter. With `needs_end_mark` only `message_stop` ends an answer."""

    def __init__(self, *, provider: str, model: str, ids: CallIds, needs_end_mark: bool) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._needs_end_mark = needs_end_mark
        self._answer = Answer()
        self._blocks: dict[int, Prose | Call | None] = {}
        """By the index that the events name; None for a kind that is not kept."""
        self._block_count = 0
        self._call_count = 0
        self._chars = 0
        self._usage = UsageCounts()
        self._stop_word = ""
        self._response_model = ""
        self._takes: dict[str, _Take] = {
            "message_start": self._start,
            "content_block_start": self._start_block,
            "content_block_delta": self._grow_block,
            "content_block_stop": self._end_block,
            "message_delta": self._take_stop,
            "message_stop": self._stop,
            "message": self._take_whole,
        }

    @property
    def is_complete(self) -> bool:
        return bool(self._stop_word) and not self._needs_end_mark

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        if event.is_end_mark:
            self.finish(into)
            return
        value = event.value
        if not isinstance(value, dict):
            raise ResponseRefused(classify_error_body(value))
        if self._goes_on(value, into):
            return
        kind = value.get("type") or event.name
        take = self._takes.get(kind) if isinstance(kind, str) else None
        try:
            if take is not None:
                take(value, into)
            elif kind == "error" or value.get("error") or event.is_body:
                raise ResponseRefused(classify_error_body(value))
        except CallRefused as refused:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, str(refused))) from None

    def _goes_on(self, value: dict[str, Any], into: list[StreamEvent]) -> bool:
        """Whether the event was more text or thought for a block that is being shown: then it is taken, as nearly all
        are. Else nothing is done."""
        try:
            delta, block = value["delta"], self._blocks[value["index"]]
            field = _GROWING[delta["type"]]
            text = delta[field]
            if value["type"] != "content_block_delta":
                return False
        except (KeyError, TypeError):
            return False
        if not isinstance(text, str) or not isinstance(block, Prose) or block.is_thinking != (field == "thinking"):
            return False
        if self._chars + len(text) > MAX_ANSWER_CHARS or not self._answer.go_on(block, text, into):
            return False
        self._chars += len(text)
        return True

    def finish(self, into: list[StreamEvent]) -> None:
        if not self.is_complete:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_STREAM_CUT))
        try:
            self._stop({}, into)
        except CallRefused as refused:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, str(refused))) from None

    def partial(self) -> AssistantMessage:
        return self._message(StopReason.ERROR)

    def _message(self, stop_reason: StopReason) -> AssistantMessage:
        content = self._answer.content()
        usage = self._usage.total()
        return AssistantMessage(
            content, self._provider, self._model, stop_reason, usage, self._stop_word, self._response_model
        )

    # Events

    def _start(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        message = value.get("message")
        if isinstance(message, dict):
            self._name_model(message)
            self._usage.take(message.get("usage"))

    def _name_model(self, message: dict[str, Any]) -> None:
        self._response_model = response_model(message.get("model"), self._response_model, asked=self._model)

    def _start_block(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        given = value.get("content_block")
        given = given if isinstance(given, dict) else {}
        self._block_count += 1
        if self._block_count > MAX_BLOCKS:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer has too many blocks"))
        index = _index(value)
        former = self._blocks.get(index)
        if isinstance(former, Prose):
            self._answer.end(former, into)  # its end was lost; a call whose end is lost is refused later
        self._blocks[index] = self._begun(given, into)

    def _begun(self, given: dict[str, Any], into: list[StreamEvent]) -> Prose | Call | None:
        """The block that a start begins, with what the start brings."""
        kind = given.get("type")
        if kind == "text":
            return self._grown(Prose(is_thinking=False), text_of(given.get("text")), into)
        if kind == "thinking":
            prose = Prose(is_thinking=True, signature=self._counted(given.get("signature")))
            return self._grown(prose, text_of(given.get("thinking")), into)
        if kind == REDACTED:
            prose = Prose(is_thinking=True, kind=REDACTED, signature=self._counted(given.get("data")))
            return self._grown(prose, REDACTED_TEXT, into) if prose.signature else None
        if kind != "tool_use":
            return None
        self._call_count += 1
        if self._call_count > MAX_CALLS:
            raise CallRefused(f"an answer with more than {MAX_CALLS} tool calls")
        call = Call(name_of(given.get("id")), name_of(given.get("name")), given.get("input"))
        self._answer.add_call(call)
        return call

    def _grow_block(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        delta = value.get("delta")
        if not isinstance(delta, dict):
            return
        index, kind = _index(value), delta.get("type")
        if kind == "text_delta" and index not in self._blocks:
            self._start_block({"index": index, "content_block": {"type": "text"}}, into)
        block = self._blocks.get(index)
        if block is None or not block.is_open:
            return
        if isinstance(block, Call):
            if kind == "input_json_delta":
                block.add(self._counted(delta.get("partial_json")))
        elif block.is_thinking:
            if kind == "thinking_delta" and block.kind != REDACTED:
                self._grown(block, text_of(delta.get("thinking")), into)
            elif kind == "signature_delta":
                block.streamed_signature.append(self._counted(delta.get("signature")))
        elif kind == "text_delta":
            self._grown(block, text_of(delta.get("text")), into)

    def _end_block(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        block = self._blocks.get(_index(value))
        if isinstance(block, Prose):
            self._answer.end(block, into)
        elif block is not None:
            block.is_open = False

    def _take_stop(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        self._usage.take(value.get("usage"))
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._stop_word = name_of(delta.get("stop_reason")) or self._stop_word

    def _take_whole(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        """A message in one piece, from a service that does not stream."""
        self._name_model(value)
        self._usage.take(value.get("usage"))
        blocks = value.get("content")
        for index, block in enumerate(blocks if isinstance(blocks, list) else []):
            self._start_block({"index": index, "content_block": block}, into)
            self._end_block({"index": index}, into)
        self._stop_word = name_of(value.get("stop_reason"))
        self._stop({}, into)

    def _stop(self, value: dict[str, Any], into: list[StreamEvent]) -> None:
        """The Done, or the failure that the stop reason is."""
        word = self._stop_word
        stop_reason = _STOP_REASONS.get(word or "end_turn")
        if stop_reason is None:
            raise ResponseRefused(_failed_stop(word))
        # An answer cut by its length runs no call; a label that forgets a whole call does not hide it.
        if stop_reason is not StopReason.LENGTH:
            self._answer.finish_calls(self._ids)
            stop_reason = StopReason.TOOL_USE if self._answer.has_calls else StopReason.STOP
        self._answer.end_all(into)
        into.append(Done(self._message(stop_reason)))

    # Limits

    def _grown(self, block: Prose, text: str, into: list[StreamEvent]) -> Prose:
        self._answer.grow(block, self._counted(text), into)
        return block

    def _counted(self, value: Any) -> str:
        """A text that is kept. Raises ResponseRefused when all of them are too much."""
        text = text_of(value)
        self._chars += len(text)
        if self._chars > MAX_ANSWER_CHARS:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, "the answer is too large"))
        return text


def _index(value: dict[str, Any]) -> int:
    """The block an event is about; without a number the first one."""
    index = value.get("index")
    return index if isinstance(index, int) else 0


def _failed_stop(word: str) -> Fault:
    known = _FAILED_STOPS.get(word)
    if known is not None:
        return Fault(known.reason, f"{known.what}, stop reason {word}", known.is_transient)
    what = f"the answer ended with the unknown stop reason {excerpt(word)[:60]}"
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what)
