"""streamGenerateContent chunks -> stream events. Pure. Source: spec 05, 4.1 and 4.5, and cases a (they win).

There is no end mark: an answer is over when its finish reason has come and the body ends; usage may follow the reason.
"""

from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import AssistantBlock, AssistantMessage, StopReason, Usage
from lanewayd.providers.arguments import CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.failures import classify_error_body, fault
from lanewayd.providers.gemini.answer import Answer
from lanewayd.providers.gemini.chunk_fields import (
    STOP_REASONS,
    USAGE_FIELDS,
    block_word_of,
    blocked_prompt,
    failed_stop,
    finish_word_of,
    first_candidate,
    parts_of,
    plain_text_of,
    usage_of,
)
from lanewayd.providers.interface import Done, StreamEvent
from lanewayd.providers.json_events import JsonEvent, ResponseRefused
from lanewayd.providers.response_model import response_model


class GeminiInterpreter:
    """Implements stream_decoder.Interpreter. Owner of one answer and its usage."""

    def __init__(self, *, provider: str, model: str, ids: CallIds) -> None:
        self._provider = provider
        self._model = model
        self._ids = ids
        self._answer = Answer()
        self._usage_fields: dict[str, Any] = {}
        self._stop_word = ""
        self._response_model = ""

    @property
    def is_complete(self) -> bool:
        return self._stop_word in STOP_REASONS

    def take(self, event: JsonEvent, into: list[StreamEvent]) -> None:
        if event.is_end_mark:  # some proxies add one
            if self.is_complete:
                self.finish(into)
            return
        chunk = event.value
        text, is_thought = ("", False) if event.name or event.is_body else plain_text_of(chunk)
        if text:
            self._count_usage(chunk)
            self._answer.grow(text, into, is_thought=is_thought)
        elif event.is_body and isinstance(chunk, list) and chunk:
            # What the service sends, in one array, when nobody asked it for an event stream.
            for each in chunk:
                self._take_chunk(each, into)
        else:
            is_foreign = event.name == "error" or (event.is_body and not _is_chunk(chunk))
            self._take_chunk(chunk, into, is_error=is_foreign)

    def finish(self, into: list[StreamEvent]) -> None:
        if not self.is_complete:
            raise ResponseRefused(fault(ErrorCode.PROVIDER_STREAM_CUT))
        self._answer.end_block(into)
        stop_reason = STOP_REASONS[self._stop_word]
        runs_calls = stop_reason is StopReason.STOP
        if runs_calls and self._answer.has_calls:
            stop_reason = StopReason.TOOL_USE
        content = self._answer.content(self._ids, with_calls=runs_calls)
        into.append(Done(self._message(content, stop_reason)))

    def partial(self) -> AssistantMessage:
        return self._message(self._answer.shown(), StopReason.ERROR)

    def _message(self, content: tuple[AssistantBlock, ...], stop_reason: StopReason) -> AssistantMessage:
        usage = self._usage()
        return AssistantMessage(
            content, self._provider, self._model, stop_reason, usage, self._stop_word, self._response_model
        )

    def _take_chunk(self, chunk: Any, into: list[StreamEvent], *, is_error: bool = False) -> None:
        if not isinstance(chunk, dict) or is_error or chunk.get("error"):
            raise ResponseRefused(classify_error_body(chunk))
        self._response_model = response_model(chunk.get("modelVersion"), self._response_model, asked=self._model)
        self._count_usage(chunk)
        candidate = first_candidate(chunk)
        if candidate is None:
            word = block_word_of(chunk)
            if word:
                self._stop_word = word
                raise ResponseRefused(blocked_prompt(word, chunk))
            return
        word = finish_word_of(candidate)
        failure = failed_stop(word, candidate)
        for part in parts_of(candidate):
            # A call beside a failure is not to be looked at: it may be what failed (B-022).
            if failure is None or "functionCall" not in part:
                self._take_part(part, into)
        self._stop_word = word or self._stop_word
        if failure is not None:
            raise ResponseRefused(failure)

    def _take_part(self, part: dict[str, Any], into: list[StreamEvent]) -> None:
        """Parts of other kinds (images, code that was run there) are passed over, but not their signatures."""
        signature = part.get("thoughtSignature")
        signature = signature if isinstance(signature, str) else ""
        if "functionCall" in part:
            try:
                self._answer.add_call(part["functionCall"], signature, into)
            except CallRefused as refused:
                raise ResponseRefused(fault(ErrorCode.PROVIDER_BAD_RESPONSE, str(refused))) from None
            return
        is_thought = part.get("thought") is True
        text = part.get("text")
        if isinstance(text, str):
            self._answer.grow(text, into, is_thought=is_thought)
        if signature:
            self._answer.sign(signature, into, is_thought=is_thought)

    def _count_usage(self, chunk: dict[str, Any]) -> None:
        fields = chunk.get("usageMetadata")
        if not isinstance(fields, dict):
            return
        if self._usage_fields.keys() <= fields.keys():
            self._usage_fields = fields  # each event counts anew from the beginning, as a rule in all fields
        else:
            self._usage_fields = self._usage_fields | {name: fields[name] for name in USAGE_FIELDS if name in fields}

    def _usage(self) -> Usage:
        return usage_of(self._usage_fields) or Usage(unavailable=True)


def _is_chunk(value: Any) -> bool:
    return isinstance(value, dict) and ("candidates" in value or "promptFeedback" in value)
