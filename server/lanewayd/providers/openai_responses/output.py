"""The output items of one response, and the message they become. Pure. Source: spec 05, R-5.62 to R-5.71.

An item is found by its output index, else by its id: there are servers that give an item another id in every event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import AssistantBlock, ToolCall
from lanewayd.providers.arguments import MAX_CALLS, CallRefused
from lanewayd.providers.call_ids import CallIds
from lanewayd.providers.interface import ReasoningDelta, StreamEvent, TextDelta
from lanewayd.providers.openai_responses.blocks import Block, Blocks, Repetition
from lanewayd.providers.openai_responses.calls import StreamedCall
from lanewayd.providers.openai_responses.item_fields import (
    ItemKind,
    kind_of,
    message_signature,
    message_text,
    reasoning_signature,
    reasoning_text,
    text_of,
    with_encrypted_content,
)
from lanewayd.providers.surrogates import SurrogateJoiner

MAX_ITEMS = 1024


class OutputRefused(ValueError):
    """The output contradicts itself or has no end; the text says how."""


@dataclass(slots=True, eq=False)
class _Item:
    """An output item. `block` is None until there is something to show or to keep."""

    kind: ItemKind
    item_id: str = ""
    block: Block | None = None
    call: StreamedCall | None = None
    is_complete: bool = False
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    repetition: Repetition | None = None
    """Set while the message has only repeated the one before it."""
    summary_index: int | None = None

    @property
    def text(self) -> str:
        """Its text so far, held back or not."""
        if self.repetition is not None:
            return self.repetition.matched
        return self.block.text if self.block is not None else ""


class Output:
    """Owns the items of one response. Its methods append the events of what they show."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._blocks = Blocks()
        self._repeating: _Item | None = None

    def begin(self, index: int | None, described: dict[str, Any], into: list[StreamEvent]) -> None:
        """An item was added. One that is known already is not added again."""
        kind = kind_of(described)
        if kind is not None and self._known(index, kind, described) is None:
            self._open(index, kind, described, into)

    def say(self, index: int | None, item_id: str, text: str, into: list[StreamEvent]) -> None:
        """More visible text."""
        item = self._growing(index, item_id, "message", into)
        self._grow(item, item.joiner.feed(text), into)

    def go_on(self, kind: ItemKind, event: Mapping[str, Any], into: list[StreamEvent]) -> bool:
        """As `say` or `think`, for an item that is being shown; else False, and nothing is done."""
        index, text = event.get("output_index"), event.get("delta")
        item = self._by_index.get(index) if type(index) is int else None
        if item is None or item.kind != kind or item.block is None or item.is_complete or item.repetition is not None:
            return False
        if not isinstance(text, str) or (kind == "reasoning" and event.get("summary_index") != item.summary_index):
            return False
        text = item.joiner.feed(text)
        if text:
            item.block.parts.append(text)
            into.append((TextDelta if kind == "message" else ReasoningDelta)(item.block.index, text))
        return True

    def think(
        self, index: int | None, item_id: str, text: str, into: list[StreamEvent], *, summary_index: int | None = None
    ) -> None:
        """More reasoning; a part of its summary begins a paragraph."""
        item = self._growing(index, item_id, "reasoning", into)
        if summary_index != item.summary_index and item.block is not None:
            self._grow(item, "\n\n", into)
        item.summary_index = summary_index
        self._grow(item, item.joiner.feed(text), into)

    def add_arguments(self, index: int | None, item_id: str, text: str, *, is_whole: bool) -> None:
        """More arguments, or all of them; those that belong to no call make the open ones unreliable (R-5.65)."""
        item = self._find(index, item_id)
        if item is None or item.call is None:
            for each in self._items:
                if each.call is not None and not each.is_complete:
                    each.call.is_unreliable = True
        elif not item.is_complete:
            (item.call.replace if is_whole else item.call.add)(text)

    def complete(self, index: int | None, described: dict[str, Any], into: list[StreamEvent]) -> None:
        """An item is complete."""
        kind = kind_of(described)
        if kind is not None:
            item = self._known(index, kind, described) or self._open(index, kind, described, into)
            self._complete(item, described, into)

    def recover(self, output: Sequence[Any], into: list[StreamEvent], *, takes_calls: bool) -> None:
        """Add what the stream left out of the items that the end of the response lists (R-5.69).

        Raises OutputRefused for an item that belongs before one that was streamed.
        """
        _check_count(len(output))
        listed = [(kind, item) for item in output if isinstance(item, dict) and (kind := kind_of(item)) is not None]
        listed = [(kind, item) for kind, item in listed if takes_calls or kind != "function_call"]
        matches = _matches(self._items, listed)
        for position, ((kind, described), match) in enumerate(zip(listed, matches, strict=True)):
            if match is None and any(matches[position:]):
                raise OutputRefused("an item of the answer was not streamed, although later ones were")
            item = match or self._open(None, kind, described, into)
            if not item.is_complete:
                self._complete(item, described, into)
            elif kind == "reasoning" and item.block is not None:
                item.block.signature = with_encrypted_content(item.block.signature, described)

    def close(self, into: list[StreamEvent]) -> None:
        """No more comes: show what was held back, end all blocks."""
        for item in self._items:
            self._grow(item, item.joiner.end(), into)
        self._let_go(into)
        self._blocks.end_all(into)

    def whole_calls(self, ids: CallIds) -> dict[int, ToolCall]:
        """The calls to run, by the places of their blocks. Raises CallRefused when one of them cannot be run."""
        return {item.block.index: item.call.whole(ids) for item in self._items if item.call and item.block}

    def content(self, calls: dict[int, ToolCall] | None = None) -> tuple[AssistantBlock, ...]:
        """The message so far; of the calls only the given ones."""
        return self._blocks.content(calls or {})

    # Items

    def _find(self, index: int | None, item_id: str) -> _Item | None:
        if index is not None and index in self._by_index:
            return self._by_index[index]
        return next((item for item in reversed(self._items) if item_id and item.item_id == item_id), None)

    def _growing(self, index: int | None, item_id: str, kind: ItemKind, into: list[StreamEvent]) -> _Item:
        """The item of this kind that a delta belongs to; one that nobody has announced is opened."""
        item = self._find(index, item_id)
        if item is None or item.kind != kind or item.is_complete:
            return self._open(index, kind, {"id": item_id}, into)
        return item

    def _known(self, index: int | None, kind: ItemKind, described: dict[str, Any]) -> _Item | None:
        """The item that is described: the incomplete one of its index, else the one with its ids."""
        at_index = self._by_index.get(index) if index is not None else None
        if at_index is not None and not at_index.is_complete and _may_be(at_index, kind, described):
            return at_index
        by_ids = next((item for item in reversed(self._items) if _is(item, kind, described)), None)
        if by_ids is not None or index is not None:
            return by_ids
        unfinished = (item for item in reversed(self._items) if not item.is_complete)
        return next((item for item in unfinished if _may_be(item, kind, described)), None)

    def _open(self, index: int | None, kind: ItemKind, described: dict[str, Any], into: list[StreamEvent]) -> _Item:
        _check_count(len(self._items) + 1)
        item = _Item(kind, text_of(described.get("id")))
        last_text = self._blocks.last_text
        if kind != "message":
            self._let_go(into)
            self._blocks.end_last_text(into)
        elif last_text is not None and self._repeating is None:
            item.repetition, self._repeating = Repetition(last_text), item
        if kind == "function_call":
            if sum(each.call is not None for each in self._items) == MAX_CALLS:
                raise CallRefused(f"an answer with more than {MAX_CALLS} tool calls")
            item.block, item.call = self._blocks.add(kind, into), StreamedCall()
            item.call.begin(described)
        self._items.append(item)
        if index is not None:
            self._by_index[index] = item
        return item

    def _complete(self, item: _Item, described: dict[str, Any], into: list[StreamEvent]) -> None:
        if item.is_complete:
            return
        item.item_id = item.item_id or text_of(described.get("id"))
        if item.call is not None:
            item.call.resolve(described)
        elif item.kind == "message":
            self._complete_text(item, message_text(described), into)
            if item.block is not None:
                item.block.signature = message_signature(described)
        else:
            self._complete_text(item, reasoning_text(described), into)
            signature = reasoning_signature(described)
            if signature:
                item.block = item.block or self._blocks.add("reasoning", into)
                item.block.signature = signature
        item.is_complete = True
        if item.block is not None:
            self._blocks.complete(item.block, into)

    # Text

    def _complete_text(self, item: _Item, whole: str, into: list[StreamEvent]) -> None:
        """Show what the deltas left out of the text, when they are its begin; what was shown stays in any case."""
        self._grow(item, item.joiner.end(), into)
        so_far = item.text
        if len(whole) > len(so_far) and whole.startswith(so_far):
            self._grow(item, whole[len(so_far) :], into)
        if item is self._repeating:
            self._let_go(into)

    def _grow(self, item: _Item, text: str, into: list[StreamEvent]) -> None:
        if not text:
            return
        if item.repetition is not None:
            added = item.repetition.feed(text)
            if added is None:
                self._let_go(into)
            elif item.repetition.is_whole:
                # The same text again: it goes on where it was.
                item.block, item.repetition, self._repeating = item.repetition.before, None, None
                self._blocks.go_on(item.block)
                text = added
            else:
                return
        if text:
            item.block = item.block or self._blocks.add(item.kind, into)
            self._blocks.grow(item.block, text, into)

    def _let_go(self, into: list[StreamEvent]) -> None:
        """The message that repeats the one before it is another one after all: show what was held back of it."""
        item, self._repeating = self._repeating, None
        if item is not None and item.repetition is not None:
            held, item.repetition = item.repetition.matched, None
            self._grow(item, held, into)


def _check_count(count: int) -> None:
    if count > MAX_ITEMS:
        raise OutputRefused(f"the answer has more than {MAX_ITEMS} items")


def _is(item: _Item, kind: ItemKind, described: dict[str, Any]) -> bool:
    """The ids say that it is the described one."""
    if item.kind != kind:
        return False
    if item.call is not None and item.call.call_id and (call_id := text_of(described.get("call_id")).strip()):
        return item.call.call_id == call_id
    return bool(item.item_id) and item.item_id == text_of(described.get("id"))


def _may_be(item: _Item, kind: ItemKind, described: dict[str, Any]) -> bool:
    """Nothing speaks against it: ids of items are no proof, ids of calls are."""
    if item.kind != kind:
        return False
    call_id = text_of(described.get("call_id")).strip()
    return item.call is None or not item.call.call_id or not call_id or item.call.call_id == call_id


def _matches(items: Sequence[_Item], listed: Sequence[tuple[ItemKind, dict[str, Any]]]) -> list[_Item | None]:
    """For each listed item the streamed one: by the ids, and where these do not tell, in order."""
    rest = list(items)
    matches: list[_Item | None] = [None] * len(listed)
    for is_same in (_is, _may_be):
        for position, (kind, described) in enumerate(listed):
            if matches[position] is None:
                match = next((item for item in rest if is_same(item, kind, described)), None)
                if match is not None:
                    matches[position] = match
                    rest.remove(match)
    return matches
