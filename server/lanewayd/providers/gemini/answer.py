"""The message an answer becomes, part by part, and the events that show it growing. Pure. Source: spec 05, R-5.83 ff.

A signature stays with the part it came with: it is how the model goes on thinking where it stopped.
"""

from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import AssistantBlock, Reasoning, Text, ToolCall
from lanewayd.providers.arguments import MAX_CALLS, CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.gemini.calls import OpenCall
from lanewayd.providers.interface import BlockEnded, ReasoningDelta, StreamEvent, TextDelta
from lanewayd.providers.surrogates import SurrogateJoiner

THOUGHT_FIELD = "thought"


@dataclass(slots=True)
class _Growing:
    """A block of text or thought that may get more."""

    is_thought: bool
    parts: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    signature: str = ""

    def shown(self) -> Text | Reasoning:
        text = "".join(self.parts)
        return Reasoning(text, THOUGHT_FIELD) if self.is_thought else Text(text)

    def whole(self) -> Text | Reasoning:
        text = "".join(self.parts)
        return Reasoning(text, THOUGHT_FIELD, self.signature) if self.is_thought else Text(text, self.signature)


class Answer:
    """Owns the blocks of one answer. `content_index` of each event is the block's place in the final message."""

    def __init__(self) -> None:
        self._blocks: list[_Growing | OpenCall] = []
        self._open: _Growing | None = None
        self._calls = 0

    @property
    def has_calls(self) -> bool:
        """A call came."""
        return bool(self._calls)

    def grow(self, text: str, events: list[StreamEvent], *, is_thought: bool = False) -> None:
        """More text for the open block, if it is of that kind, else for a new one. An empty text is nothing."""
        if not text:
            return
        block = self._open
        if block is None or block.is_thought != is_thought:
            block = self._begin(is_thought, events)
        text = block.joiner.feed(text)
        if text:
            self._show(block, text, events)

    def sign(self, signature: str, events: list[StreamEvent], *, is_thought: bool) -> None:
        """Keep `signature` with the open block; behind a call that has none yet, with that call (R-5.84)."""
        block = self._open
        if block is not None and block.is_thought == is_thought:
            block.signature = signature
            return
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, OpenCall) and not last.signature and not is_thought:
            last.signature = signature
            return
        self._begin(is_thought, events).signature = signature

    def add_call(self, part: Any, signature: str, events: list[StreamEvent]) -> None:
        """Take the `functionCall` of a part. Raises CallRefused for one that cannot be run."""
        call = OpenCall.of(part, signature)
        if not call.name:
            self._complete_last(call)
            return
        if self._calls == MAX_CALLS:
            raise CallRefused(f"an answer with more than {MAX_CALLS} tool calls")
        self.end_block(events)
        self._calls += 1
        self._blocks.append(call)

    def end_block(self, events: list[StreamEvent]) -> None:
        """The open block gets no more."""
        block, self._open = self._open, None
        if block is None:
            return
        tail = block.joiner.end()
        if tail:
            self._show(block, tail, events)
        if block.parts:
            events.append(BlockEnded(len(self._blocks) - 1))

    def content(self, ids: CallIds, *, with_calls: bool) -> tuple[AssistantBlock, ...]:
        """The final blocks; calls get their ids here."""
        content: list[AssistantBlock] = []
        for block in self._blocks:
            if isinstance(block, _Growing):
                content.append(block.whole())
            elif with_calls:
                call_id = ids.claim(block.provider_id)
                content.append(ToolCall(call_id, block.name, block.arguments_json, block.signature))
        return tuple(content)

    def shown(self) -> tuple[AssistantBlock, ...]:
        """What could be seen so far: no calls, and no signatures, which are of no use without the end."""
        return tuple(block.shown() for block in self._blocks if isinstance(block, _Growing) and block.parts)

    def _begin(self, is_thought: bool, events: list[StreamEvent]) -> _Growing:
        self.end_block(events)
        block = self._open = _Growing(is_thought)
        self._blocks.append(block)
        return block

    def _show(self, block: _Growing, text: str, events: list[StreamEvent]) -> None:
        block.parts.append(text)
        delta = ReasoningDelta if block.is_thought else TextDelta
        events.append(delta(len(self._blocks) - 1, text))

    def _complete_last(self, nameless: OpenCall) -> None:
        """Arguments that come behind their call, in a part without a name, belong to it (B-024)."""
        if nameless.is_empty:
            return
        last = self._blocks[-1] if self._blocks else None
        if not isinstance(last, OpenCall) or not last.is_empty:
            raise CallRefused("incomplete or malformed tool call: it has no name")
        last.arguments_json = nameless.arguments_json
        last.signature = last.signature or nameless.signature
