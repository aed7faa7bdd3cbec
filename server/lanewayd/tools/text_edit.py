"""Replacing one place of a text (R-6.11 to R-6.13). Pure.

Exact matches come first; line ends count as equal. Without one, texts that differ only in compatibility forms,
spaces at line ends, quotes, dashes and kinds of spaces match too. Everything outside the place keeps every character.
"""

import re
import unicodedata
from dataclasses import dataclass

_MOST_TOLERANT_CHARS = 2_000_000
_LOOKALIKES = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u1680\u202f\u205f\u3000"), " "),
    **dict.fromkeys(range(0x2000, 0x200B), " "),
}
_CLUSTER = re.compile(r"\r?\n|[\x00-\x7f]?[^\x00-\x7f]+|[\x00-\x7f]", re.DOTALL)


class EditRefused(Exception):
    """The edit cannot be made; the text tells the model why. Caught by the tool."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text and the line (from 1) where the replaced place begins."""

    text: str
    line: int


def replace_once(text: str, old_text: str, new_text: str) -> Edited:
    """`text` with the only occurrence of `old_text` replaced. Raises EditRefused for none, several, or no change.

    `new_text` takes the line ends of the place it comes to, or those of the text.
    """
    old_text = old_text.replace("\r\n", "\n")
    if not old_text:
        raise EditRefused("oldText is empty; to fill a file use write.")
    places = _exact_places(text, old_text)
    if not places:
        places = _tolerant_places(text, old_text)
    if not places:
        raise EditRefused("oldText does not occur. It must match the file, including spaces and line breaks.")
    if len(places) > 1:
        lines = ", ".join(str(_line_of(text, start)) for start, _ in places[:10])
        more = " ..." if len(places) > 10 else ""
        raise EditRefused(
            f"oldText occurs {len(places)} times, at lines {lines}{more}. Give more of the lines around it."
        )
    start, end = places[0]
    replacement = _with_line_ends_of(text[start:end] if "\n" in text[start:end] else text, new_text)
    if text[start:end] == replacement:
        raise EditRefused("The edit would change nothing.")
    return Edited(text[:start] + replacement + text[end:], _line_of(text, start))


def _line_of(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1


def _with_line_ends_of(sample: str, text: str) -> str:
    text = text.replace("\r\n", "\n")
    # Most of them decide, so that one stray line end does not turn the style.
    return text.replace("\n", "\r\n") if sample.count("\r\n") * 2 > sample.count("\n") else text


def _exact_places(text: str, old_text: str) -> list[tuple[int, int]]:
    """All occurrences as [start, end), also overlapping ones."""
    # Never the second half of a \r\n: that would be a second place.
    pattern = re.compile(re.escape(old_text).replace("\\\n", "(?:\r\n|(?<!\r)\n)"))
    places = []
    match = pattern.search(text)
    while match is not None:
        places.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return places


def _tolerant_places(text: str, old_text: str) -> list[tuple[int, int]]:
    if len(text) > _MOST_TOLERANT_CHARS:
        return []
    plain, starts = _plain(text)
    wanted, _ = _plain(old_text)
    # A last line break of oldText may be all that is left of it.
    if not wanted.strip():
        return []
    places = []
    at = plain.find(wanted)
    while at >= 0:
        start, end = starts[at], starts[at + len(wanted)]
        # A character that compares as several cannot be replaced in part.
        if end > starts[at + len(wanted) - 1] and (at == 0 or start > starts[at - 1]):
            places.append((start, end))
        at = plain.find(wanted, at + 1)
    return places


def _plain(text: str) -> tuple[str, list[int]]:
    """The text as it is compared tolerantly, and for each of its characters (and its end) where that stands."""
    characters: list[str] = []
    starts: list[int] = []
    for cluster in _CLUSTER.finditer(text):
        found = cluster.group()
        if found.endswith("\n"):
            while characters and characters[-1] in " \t":
                characters.pop()
                starts.pop()
            characters.append("\n")
            starts.append(cluster.start())
        elif found.isascii():
            characters.append(found)
            starts.append(cluster.start())
        else:
            for index, character in _composed(found):
                for form in unicodedata.normalize("NFKC", character).translate(_LOOKALIKES):
                    characters.append(form)
                    starts.append(cluster.start() + index)
    while characters and characters[-1] in " \t":
        characters.pop()
        starts.pop()
    starts.append(len(text) if not characters else _end_of_last(text, starts[-1]))
    return "".join(characters), starts


def _composed(text: str) -> list[tuple[int, str]]:
    """Characters together with the marks that follow them, and where they begin."""
    parts: list[tuple[int, str]] = []
    for index, character in enumerate(text):
        if parts and unicodedata.combining(character):
            parts[-1] = (parts[-1][0], parts[-1][1] + character)
        else:
            parts.append((index, character))
    return parts


def _end_of_last(text: str, start: int) -> int:
    """Where the last compared character of `text`, which begins at `start`, ends."""
    kept = text.rstrip(" \t")
    return max(len(kept), start + 1)
