"""Merging deltas before they get a number (D-4). Pure: time comes in as a number.

A streamed message costs far more than the text in it, so text is held back for a moment: the first delta of a message
goes at once, further ones at most every `interval_s`, later while the store is behind with the last one, and all at the
end of a block.
"""

from dataclasses import dataclass

MAX_DELTA_CHARACTERS = 64 * 1024
"""A longer piece is split, so that no event comes near the message limit (4 bytes a character at most)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is due. `offset` counts UTF-8 bytes of its block before it."""

    is_reasoning: bool
    content_index: int
    offset: int
    text: str


class DeltaMerger:
    """Holds one message's text back. Owner of the offsets of its blocks."""

    def __init__(self, interval_s: float) -> None:
        """`interval_s` 0 = nothing is held back."""
        self._interval_s = interval_s
        self._held: list[str] = []
        self._block: tuple[bool, int] | None = None
        self._offsets: dict[tuple[bool, int], int] = {}
        self._due_at: float | None = None
        self._is_first = True

    @property
    def due_at(self) -> float | None:
        """When held text must be shown; None = nothing is held."""
        return self._due_at if self._held else None

    @property
    def has_shown(self) -> bool:
        """Some text of this message was given out."""
        return not self._is_first

    def add(
        self, is_reasoning: bool, content_index: int, text: str, now_s: float, *, holds_on: bool = False
    ) -> list[Piece]:
        """Take text in; return what is due now, in order.

        `holds_on`: nobody could see it sooner, so what is due may gather a little more. The first delta and the end of
        a block come all the same.
        """
        pieces: list[Piece] = []
        block = (is_reasoning, content_index)
        if block != self._block:
            pieces += self.flush(now_s)
            self._block = block
        if text:
            self._held.append(text)
        is_due = self._due_at is None or now_s >= self._due_at
        if self._held and (self._is_first or (is_due and not holds_on)):
            pieces += self.flush(now_s)
        return pieces

    def flush(self, now_s: float) -> list[Piece]:
        """Everything held, in order; nothing stays back."""
        if not self._held or self._block is None:
            return []
        text = "".join(self._held)
        self._held.clear()
        self._is_first = False
        self._due_at = now_s + self._interval_s
        pieces = []
        for start in range(0, len(text), MAX_DELTA_CHARACTERS):
            part = text[start : start + MAX_DELTA_CHARACTERS]
            offset = self._offsets.get(self._block, 0)
            self._offsets[self._block] = offset + len(part.encode("utf-8"))
            pieces.append(Piece(self._block[0], self._block[1], offset, part))
        return pieces
