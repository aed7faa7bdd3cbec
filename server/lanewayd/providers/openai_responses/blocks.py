"""The blocks of the message that a response becomes, and the events that show them growing. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewayd.messages import AssistantBlock, Reasoning, Text, ToolCall
from lanewayd.providers.interface import BlockEnded, ReasoningDelta, StreamEvent, TextDelta
from lanewayd.providers.openai_responses.item_fields import ItemKind


@dataclass(slots=True)
class Block:
    """A block. `index` is its place in the message; only Blocks changes anything but the signature."""

    index: int
    kind: ItemKind
    signature: str = ""
    parts: list[str] = field(default_factory=list)
    is_ended: bool = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.parts)


class Blocks:
    """Owns the blocks of one response, in the order in which they were begun.

    A text that is complete is not ended at once: the next message may repeat it and go on (R-5.68). It ends with the
    beginning of the next block.
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._last_text: Block | None = None

    @property
    def last_text(self) -> Block | None:
        """The text that is complete and has nothing behind it."""
        return self._last_text

    def add(self, kind: ItemKind, into: list[StreamEvent]) -> Block:
        """A new block behind the others."""
        self.end_last_text(into)
        block = Block(len(self._blocks), kind)
        self._blocks.append(block)
        return block

    def grow(self, block: Block, text: str, into: list[StreamEvent]) -> None:
        """More text, which is not empty."""
        block.parts.append(text)
        into.append((ReasoningDelta if block.kind == "reasoning" else TextDelta)(block.index, text))

    def complete(self, block: Block, into: list[StreamEvent]) -> None:
        """Its item is complete."""
        if block.kind == "message" and block is self._blocks[-1]:
            self._last_text = block
        else:
            _end(block, into)

    def go_on(self, block: Block) -> None:
        """The last text is continued."""
        if block is self._last_text:
            self._last_text = None

    def end_last_text(self, into: list[StreamEvent]) -> None:
        """Something else comes behind the last text."""
        if self._last_text is not None:
            _end(self._last_text, into)
            self._last_text = None

    def end_all(self, into: list[StreamEvent]) -> None:
        """No more comes."""
        for block in self._blocks:
            _end(block, into)

    def content(self, calls: Mapping[int, ToolCall]) -> tuple[AssistantBlock, ...]:
        """The message so far. Of the calls there are these, by the places of their blocks."""
        content: list[AssistantBlock] = []
        for block in self._blocks:
            if block.kind == "message":
                content.append(Text(block.text, block.signature))
            elif block.kind == "reasoning":
                content.append(Reasoning(block.text, signature=block.signature))
            elif block.index in calls:
                content.append(calls[block.index])
        return tuple(content)


class Repetition:
    """Compares a message, piece by piece, with the text before it. Owns how much of it came so far."""

    def __init__(self, before: Block) -> None:
        self.before = before
        self._text = before.text
        self._matched = 0

    @property
    def matched(self) -> str:
        """What was held back."""
        return self._text[: self._matched]

    @property
    def is_whole(self) -> bool:
        """The message has repeated the whole text."""
        return self._matched == len(self._text)

    def feed(self, text: str) -> str | None:
        """What `text` adds behind the repeated text, mostly nothing yet; None: the message is another one."""
        rest = self._text[self._matched : self._matched + len(text)]
        if not text.startswith(rest):
            return None
        self._matched += len(rest)
        return text[len(rest) :]


def _end(block: Block, into: list[StreamEvent]) -> None:
    if block.parts and not block.is_ended:
        block.is_ended = True
        into.append(BlockEnded(block.index))
