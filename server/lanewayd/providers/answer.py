"""The message an answer becomes, block by block, and the events that show it growing. Pure.

For languages whose answers come as pieces of text and thought, without marks where a block ends.
"""

import dataclasses
from typing import NamedTuple

from lanewayd.messages import AssistantBlock, Reasoning, Text, ToolCall
from lanewayd.providers.interface import BlockEnded, ReasoningDelta, StreamEvent, TextDelta


class Part(NamedTuple):
    """A piece of an answer. `field` is set for reasoning that is to be replayed under it."""

    text: str
    is_reasoning: bool = False
    field: str = ""


@dataclasses.dataclass(slots=True)
class _Growing:
    """A block of text or reasoning that may get more."""

    is_reasoning: bool
    field: str
    parts: list[str] = dataclasses.field(default_factory=list)

    def whole(self) -> Text | Reasoning:
        text = "".join(self.parts)
        return Reasoning(text, self.field) if self.is_reasoning else Text(text)


class Answer:
    """Owns the blocks of one answer. `content_index` of each event is the block's place in the final message."""

    def __init__(self) -> None:
        self._blocks: list[_Growing | ToolCall] = []
        self._is_open = False

    def grow(self, text: str, *, is_reasoning: bool = False) -> TextDelta | ReasoningDelta | None:
        """More text, which is not empty, for an open block of that kind; None when there is none, and nothing was
        done."""
        last = self._blocks[-1] if self._is_open else None
        if not isinstance(last, _Growing) or last.is_reasoning is not is_reasoning:
            return None
        last.parts.append(text)
        return (ReasoningDelta if is_reasoning else TextDelta)(len(self._blocks) - 1, text)

    def add(self, part: Part) -> list[StreamEvent]:
        """Grow the open block, or end it and open one of the other kind. An empty part is nothing."""
        if not part.text:
            return []
        events: list[StreamEvent] = []
        last = self._blocks[-1] if self._blocks and self._is_open else None
        if not isinstance(last, _Growing) or last.is_reasoning != part.is_reasoning:
            events += self.end_block()
            last = _Growing(part.is_reasoning, part.field)
            self._blocks.append(last)
            self._is_open = True
        last.parts.append(part.text)
        delta = ReasoningDelta if part.is_reasoning else TextDelta
        events.append(delta(len(self._blocks) - 1, part.text))
        return events

    def end_block(self) -> list[StreamEvent]:
        """The open block gets no more."""
        if not self._is_open:
            return []
        self._is_open = False
        return [BlockEnded(len(self._blocks) - 1)]

    def add_calls(self, calls: tuple[ToolCall, ...]) -> None:
        """Append the calls. The block before them has ended."""
        self._blocks.extend(calls)

    def content(self) -> tuple[AssistantBlock, ...]:
        """The blocks so far."""
        return tuple(block.whole() if isinstance(block, _Growing) else block for block in self._blocks)
