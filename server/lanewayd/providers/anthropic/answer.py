"""The blocks of one Messages answer while they grow. Pure. Source: spec 05, R-5.74 to R-5.78."""

import json
from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import AssistantBlock, Reasoning, Text, ToolCall, valid_text
from lanewayd.providers.arguments import CallRefused, argument_object, check_size, with_repaired_strings
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.interface import BlockEnded, ReasoningDelta, StreamEvent, TextDelta
from lanewayd.providers.surrogates import SurrogateJoiner

THINKING = "thinking"
REDACTED = "redacted_thinking"
"""`Reasoning.field` of thoughts of this family: readable, and encrypted with the data as signature."""
REDACTED_TEXT = "(reasoning that the provider has encrypted)"


@dataclass(slots=True)
class Prose:
    """A block of text or thinking. `place` is its place in the message, -1 while it is not in it."""

    is_thinking: bool
    place: int = -1
    parts: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    signature: str = ""
    streamed_signature: list[str] = field(default_factory=list)
    is_open: bool = True
    kind: str = THINKING

    def whole(self) -> Text | Reasoning:
        text = "".join(self.parts)
        return Reasoning(text, self.kind, self.signature) if self.is_thinking else Text(text)


@dataclass(slots=True)
class Call:
    """A tool call. Its arguments are the streamed text, or `initial` when none came."""

    call_id: str
    name: str
    initial: Any
    parts: list[str] = field(default_factory=list)
    size_bytes: int = 0
    is_open: bool = True

    def add(self, text: str) -> None:
        """More of the arguments. Raises CallRefused beyond the limit."""
        self.size_bytes += len(text.encode("utf-8", "surrogatepass"))
        check_size(self.size_bytes)
        self.parts.append(text)

    def whole(self, ids: CallIds) -> ToolCall:
        """The call to run. Raises CallRefused for one that is not complete."""
        if not self.name:
            raise CallRefused("incomplete or malformed tool call: it has no name")
        if self.is_open:
            raise CallRefused(f"incomplete or malformed tool call: the call of {self.name} was not ended")
        return ToolCall(ids.claim(self.call_id), self.name, self._arguments())

    def _arguments(self) -> str:
        text = "".join(self.parts).strip()
        if not text:
            initial = {} if self.initial is None else self.initial
            text = json.dumps(initial, ensure_ascii=False)
            check_size(len(text.encode("utf-8", "surrogatepass")))
        try:
            return argument_object(self.name, text)
        except CallRefused:
            return argument_object(self.name, with_repaired_strings(text))


class Answer:
    """Owns the blocks of one answer, in the order in which each had first something to keep."""

    def __init__(self) -> None:
        self._blocks: list[Prose | Call] = []
        self._calls: dict[int, ToolCall] | None = None

    @property
    def has_calls(self) -> bool:
        """A call was begun."""
        return any(isinstance(block, Call) for block in self._blocks)

    def add_call(self, call: Call) -> None:
        """A call begins."""
        self._blocks.append(call)

    def grow(self, prose: Prose, text: str, into: list[StreamEvent]) -> None:
        """More text for a block. An empty text is nothing."""
        self._show(prose, prose.joiner.feed(text), into)

    def go_on(self, prose: Prose, text: str, into: list[StreamEvent]) -> bool:
        """As `grow`, for a block that is being shown; else False, and nothing is done."""
        if prose.place < 0 or not prose.is_open or prose.kind == REDACTED:
            return False
        text = prose.joiner.feed(text)
        if text:
            prose.parts.append(text)
            into.append((ReasoningDelta if prose.is_thinking else TextDelta)(prose.place, text))
        return True

    def end(self, prose: Prose, into: list[StreamEvent]) -> None:
        """The block gets no more; only now its signature counts (R-5.75)."""
        if not prose.is_open:
            return
        self._show(prose, prose.joiner.end(), into)
        prose.is_open = False
        prose.signature = valid_text("".join(prose.streamed_signature) or prose.signature)
        if prose.place < 0 and prose.is_thinking and prose.signature:
            self._place(prose)  # a thought that is not shown is wanted back all the same
        if prose.place >= 0:
            into.append(BlockEnded(prose.place))

    def end_all(self, into: list[StreamEvent]) -> None:
        """The message ends, and with it what is still open."""
        for block in self._blocks:
            if isinstance(block, Prose):
                self.end(block, into)

    def finish_calls(self, ids: CallIds) -> None:
        """Check the calls; from now on they are in the content. Raises CallRefused for one that cannot be run."""
        self._calls = {place: block.whole(ids) for place, block in enumerate(self._blocks) if isinstance(block, Call)}

    def content(self) -> tuple[AssistantBlock, ...]:
        """The blocks so far; calls only after `finish_calls`. A signature of a block that is open is no part of it."""
        content: list[AssistantBlock] = []
        for place, block in enumerate(self._blocks):
            if isinstance(block, Call):
                if self._calls is not None:
                    content.append(self._calls[place])
            elif block.is_open and block.signature:
                content.append(Reasoning("".join(block.parts), block.kind))
            else:
                content.append(block.whole())
        return tuple(content)

    def _show(self, prose: Prose, text: str, into: list[StreamEvent]) -> None:
        if not text:
            return
        if prose.place < 0:
            self._place(prose)
        prose.parts.append(text)
        delta = ReasoningDelta if prose.is_thinking else TextDelta
        into.append(delta(prose.place, text))

    def _place(self, prose: Prose) -> None:
        prose.place = len(self._blocks)
        self._blocks.append(prose)


def text_of(value: Any) -> str:
    """`value` if it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def name_of(value: Any) -> str:
    """A name or id, without what cannot be sent back."""
    return valid_text(text_of(value)).strip()
