"""One page of a text file, in bounded memory however large the file is (R-6.5 to R-6.8). Pure.

A page holds whole lines. Lines are counted by line feeds; a carriage return before one belongs to it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What a page may hold; the first limit that is met ends it."""

    lines: int
    size_bytes: int
    chars: int


@dataclass(frozen=True, slots=True)
class Page:
    """Lines `first_line` (from 1) and following. `line_count` is 0 if the page begins beyond the end of the file."""

    text: str
    first_line: int
    line_count: int
    total_lines: int
    is_valid_utf8: bool
    too_long_line_bytes: int
    """The size of the line that the page begins with, if it alone is over the limits; then the page is empty."""

    @property
    def next_line(self) -> int:
        return self.first_line + self.line_count

    @property
    def is_last(self) -> bool:
        return self.next_line > self.total_lines


class PageReader:
    """Takes the file piece by piece from its beginning; then `page` says what was asked for."""

    def __init__(self, first_line: int, limits: PageLimits) -> None:
        self._first_line = first_line
        self._limits = limits
        self._lines: list[str] = []
        self._taken_bytes = 0
        self._taken_chars = 0
        self._is_full = False
        self._is_valid_utf8 = True
        self._too_long_line_bytes = 0
        self._line = bytearray()
        self._line_bytes = 0
        self._ended_lines = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(chunk):
            if self._is_only_counting:
                breaks = chunk.count(b"\n", at)
                if self._is_full or self._ended_lines + breaks < self._first_line - 1:
                    self._count(chunk, at, breaks)
                    return
            end = chunk.find(b"\n", at)
            self._extend(chunk[at:] if end < 0 else chunk[at:end])
            if end < 0:
                return
            self._end_line()
            at = end + 1

    def page(self) -> Page:
        """The page; call it once, when the file has ended."""
        if self._line_bytes:
            self._end_line()
        return Page(
            text="\n".join(self._lines),
            first_line=self._first_line,
            line_count=len(self._lines),
            total_lines=self._ended_lines,
            is_valid_utf8=self._is_valid_utf8,
            too_long_line_bytes=self._too_long_line_bytes,
        )

    @property
    def _is_only_counting(self) -> bool:
        return self._is_full or self._ended_lines < self._first_line - 1

    def _count(self, chunk: bytes, at: int, breaks: int) -> None:
        """Pass over the rest of a chunk in which no line of the page begins."""
        self._ended_lines += breaks
        if breaks:
            self._line_bytes = len(chunk) - chunk.rindex(b"\n") - 1
        else:
            self._line_bytes += len(chunk) - at

    def _extend(self, part: bytes) -> None:
        self._line_bytes += len(part)
        if not self._is_only_counting and len(self._line) <= self._limits.size_bytes:
            self._line += part

    def _end_line(self) -> None:
        if not self._is_only_counting:
            self._take_line()
        self._ended_lines += 1
        self._line.clear()
        self._line_bytes = 0

    def _take_line(self) -> None:
        raw = bytes(self._line).removesuffix(b"\r")
        text = raw.decode("utf-8-sig" if self._ended_lines == 0 else "utf-8", "replace")
        fits = (
            len(self._lines) < self._limits.lines
            and self._taken_bytes + self._line_bytes + 1 <= self._limits.size_bytes
            and self._taken_chars + len(text) + 1 <= self._limits.chars
        )
        if not fits:
            self._is_full = True
            if not self._lines:
                self._too_long_line_bytes = self._line_bytes
            return
        self._is_valid_utf8 = self._is_valid_utf8 and ("\ufffd" not in text or text.encode() == raw)
        self._lines.append(text)
        self._taken_bytes += self._line_bytes + 1
        self._taken_chars += len(text) + 1
