"""Text that arrives in pieces, streamed into a column beside the name of its speaker and broken between words."""

import re
import textwrap

from rich.console import Console
from rich.text import Text

from laneway.cli.text import safe

MARGIN = "  "
_NAME_WIDTH = 5
_MOST_COLUMNS = 100
_LEAST_TEXT_COLUMNS = 20
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")


class Prose:
    """Owner of the line that is open on `console`. `say` is for whole texts, `stream` for pieces, `end` closes.

    A word is held back until it is whole, because only then it is known whether it fits.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        encodes_all = console.encoding.lower().startswith("utf")
        self._bar = "\N{BOX DRAWINGS LIGHT VERTICAL}" if encodes_all else "|"
        self._is_open = False
        self._speaker = ""
        self._column = 0
        self._space = ""
        self._word = ""
        self._style = ""

    @property
    def width(self) -> int:
        """Columns of a line."""
        return min(self._console.width, _MOST_COLUMNS)

    def say(self, speaker: str, text: str, *, name_style: str, style: str = "") -> None:
        """A whole text."""
        self.end()
        self.stream(speaker, text, name_style=name_style, style=style)
        self.end()

    def stream(self, speaker: str, text: str, *, name_style: str, style: str = "") -> None:
        """The next piece of what `speaker` says; another speaker begins a line."""
        if not self._is_open or speaker != self._speaker:
            self.end()
            self._is_open, self._speaker, self._style = True, speaker, style
            self._begin_line(speaker, name_style)
        for piece in _PIECES.findall(safe(text)):
            if piece == "\n":
                self._put_word(style)
                self._console.print()
                self._begin_line("", name_style)
            elif piece.isspace():
                self._put_word(style)
                self._space = " " if self._column else ""
            else:
                self._word += piece
        self._console.file.flush()

    def end(self) -> None:
        """Close the line, if one is open."""
        if self._is_open:
            self._put_word(self._style)
            self._console.print()
            self._is_open = False

    def _put_word(self, style: str) -> None:
        room = max(_LEAST_TEXT_COLUMNS, self.width - len(MARGIN) - _NAME_WIDTH - 3)
        if self._word and self._column and self._column + len(self._space) + len(self._word) > room:
            self._console.print()
            self._begin_line("", "")
            self._space = ""
        if self._word:
            self._print(self._space + self._word, style)
            self._column += len(self._space) + len(self._word)
        self._space = self._word = ""

    def _begin_line(self, name: str, name_style: str) -> None:
        self._column = 0
        self._print(f"{MARGIN}{name:<{_NAME_WIDTH}} ", name_style)
        self._print(f"{self._bar} ", "dim")

    def _print(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), end="", soft_wrap=True)


def hanging(text: str, *, width: int, indent: int) -> list[str]:
    """`text` in lines of at most `width`, all but the first one indented."""
    return textwrap.wrap(
        " ".join(safe(text).split()),
        max(width, indent + _LEAST_TEXT_COLUMNS),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
