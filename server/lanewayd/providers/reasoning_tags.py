"""Text with `<think>` tags -> visible text and reasoning, across chunk boundaries. Pure.

Tags are `think`, `thinking`, `thought`, `antthinking`, in any case, with spaces and attributes. Stray closing tags and
self-closing tags are removed; inside code spans and fences nothing is a tag; after an opening tag that is never closed
all is reasoning. Source: spec 05, R-5.46; spec 08, R-8.12, R-8.13, R-8.16.
"""

import re
from typing import NamedTuple

# No tag is longer, so no more than this is ever held back.
_MAX_TAG_CHARS = 200
_NAMES = ("think", "thinking", "thought", "antthinking")
_NAME = r"(?:think(?:ing)?|thought|antthinking)\b"
_MARK = re.compile(rf"`+|\n|<\s{{0,8}}(/?)\s{{0,8}}{_NAME}([^<>]{{0,150}})>", re.IGNORECASE)
_SPECIAL = re.compile(r"[<`\n]")
_TAG_BEGUN = re.compile(rf"<\s{{0,8}}/?\s{{0,8}}(?:([a-z]*)|{_NAME}[^<>]{{0,150}})", re.IGNORECASE)


class Piece(NamedTuple):
    """A part of the text, as the reader should take it."""

    text: str
    is_reasoning: bool


class ReasoningTags:
    """Splits one text. Owns what it holds back: the beginning of a tag, a run of backticks, leading blanks."""

    def __init__(self) -> None:
        self._held = ""
        self._in_reasoning = False
        self._code_run = 0
        self._is_blank_line = True
        self._has_shown_text = False
        self._has_reasoned = False
        self._blanks = ""

    def lets_through(self, text: str) -> bool:
        """Whether `text`, which is not empty, is visible as it is, with nothing before or behind it: then it is taken,
        as most deltas are. Else `feed` must be asked."""
        if not self._has_shown_text or self._held or self._in_reasoning or _SPECIAL.search(text):
            return False
        if self._is_blank_line and text.strip():
            self._is_blank_line = False
        return True

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text` makes certain, in order."""
        if self._has_shown_text and not self._held and not _SPECIAL.search(text):
            # A plain word: nothing to look for, nothing to keep.
            self._is_blank_line &= not text.strip()
            return [Piece(text, self._in_reasoning)] if text else []
        text = self._held + text
        cut = _held_back_from(text)
        self._held = text[cut:]
        return self._split(text[:cut])

    def end(self) -> list[Piece]:
        """What was held back, as it is."""
        text, self._held = self._held, ""
        pieces = self._split(text)
        if self._blanks:
            pieces.append(Piece(self._blanks, is_reasoning=False))
            self._blanks = ""
        return pieces

    def _split(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        position = after_mark = 0
        for mark in _MARK.finditer(text):
            self._is_blank_line &= not text[after_mark : mark.start()].strip()
            after_mark = mark.end()
            if mark.group() == "\n":
                self._pass_line_end()
                continue
            self._is_blank_line = False
            if mark.group().startswith("`"):
                self._pass_code_mark(len(mark.group()))
            elif self._in_reasoning or not self._code_run:
                self._add(pieces, text[position : mark.start()])
                position = mark.end()
                self._pass_tag(is_closing=bool(mark.group(1)), is_empty=mark.group(2).rstrip().endswith("/"))
        self._is_blank_line &= not text[after_mark:].strip()
        self._add(pieces, text[position:])
        return pieces

    def _pass_tag(self, *, is_closing: bool, is_empty: bool) -> None:
        if is_closing:
            self._in_reasoning = False
        elif not is_empty and not self._in_reasoning:
            self._in_reasoning = True
            self._has_reasoned = True
            # Blanks around thoughts that come first are no reply.
            self._blanks = ""

    def _pass_line_end(self) -> None:
        # A code span ends with its paragraph; a fence goes on.
        if self._is_blank_line and self._code_run < 3:
            self._code_run = 0
        self._is_blank_line = True

    def _pass_code_mark(self, size: int) -> None:
        if self._in_reasoning:
            return
        if not self._code_run:
            self._code_run = size
        elif size == self._code_run or (self._code_run >= 3 and size > self._code_run):
            self._code_run = 0

    def _add(self, pieces: list[Piece], text: str) -> None:
        if not text:
            return
        if self._in_reasoning:
            pieces.append(Piece(text, is_reasoning=True))
            return
        if not self._has_shown_text:
            text, self._blanks = self._blanks + text, ""
            if self._has_reasoned:
                text = text.lstrip()
            if not text or text.isspace():
                self._blanks = text
                return
            self._has_shown_text = True
        pieces.append(Piece(text, is_reasoning=False))


def _held_back_from(text: str) -> int:
    """Where the part begins that the next chunk may turn into a tag or a longer code mark."""
    cut = len(text.rstrip("`"))
    start = text.rfind("<", max(0, cut - _MAX_TAG_CHARS), cut)
    return start if start >= 0 and _may_begin_tag(text[start:cut]) else cut


def _may_begin_tag(text: str) -> bool:
    begun = _TAG_BEGUN.fullmatch(text)
    if not begun:
        return False
    word = begun.group(1)
    return word is None or any(name.startswith(word.lower()) for name in _NAMES)
