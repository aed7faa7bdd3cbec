"""Text that came from a terminal or a stranger, made fit to store, send and read. Pure.

Two promises. `without_nul`: the result encodes as UTF-8; halves of a pair that belong together are joined, lone ones
become U+FFFD, and so does NUL, because PostgreSQL cannot keep it. `TerminalCleaner`: what a reader of the terminal
would have seen of each line; escape sequences and control characters are gone (NUL too), a line that was written over
after a carriage return counts as its last version.
"""

import re

from lanewayd.messages import valid_text

# CSI; OSC, DCS and their kin with their text; C1 forms; two-character sequences. Source: ECMA-48, 5.4 and 5.6.
# An unterminated string ends at the line's end, so that one stray introducer cannot swallow the rest of the output.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNFINISHED_ESCAPE = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}|\x1b[ -/]*)\Z"
)
_ESCAPE_START = re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")
_CONTROL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SPECIAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RUBBED_OUT = re.compile("[^\n\r\x08]\x08")
_LONGEST_ESCAPE_CHARS = 4200
_LONGEST_LINE_CHARS = 32_768
# Bold and underlined manual pages need one; the limit keeps noise from costing a pass per backspace.
_MOST_RUBBED_OUT = 3


def without_nul(text: str) -> str:
    """`text` as valid UTF-8 and without NUL; see the module."""
    return valid_text(text).replace("\x00", "\ufffd")


def last_version(line: str) -> str:
    """What stands on a line at its end: the text after its last carriage return that something follows."""
    written = line.rstrip("\r")
    return written[written.rfind("\r") + 1 :]


class TerminalCleaner:
    """Cleans a stream piece by piece, however it was cut. Memory is bounded by a line of 32,768 characters.

    A longer line is passed on in parts, which a later carriage return cannot take back.
    """

    def __init__(self) -> None:
        self._escape = ""
        self._line = ""

    @property
    def unfinished_line(self) -> str:
        """The line that has not ended yet, as it stands now."""
        return last_version(self._line)

    def feed(self, text: str) -> str:
        """The lines that ended with this piece, with their line ends."""
        text = self._escape + text
        self._escape = ""
        if _SPECIAL.search(text):
            text = self._without_controls(text)
        return self._ended_lines(text)

    def finish(self) -> str:
        """The last line if it has no line end. An unfinished escape sequence is dropped."""
        line, self._line, self._escape = self.unfinished_line, "", ""
        return line

    def _without_controls(self, text: str) -> str:
        starts = list(_ESCAPE_START.finditer(text, max(0, len(text) - _LONGEST_ESCAPE_CHARS)))
        if starts:
            start = starts[-1].start()
            if _UNFINISHED_ESCAPE.match(text, start):
                self._escape, text = text[start:], text[:start]
        text = _CONTROL.sub("", _ESCAPE.sub("", text))
        for _ in range(_MOST_RUBBED_OUT):
            if "\x08" not in text:
                return text
            text = _RUBBED_OUT.sub("", text)
        return text.replace("\x08", "")

    def _ended_lines(self, text: str) -> str:
        end = text.rfind("\n") + 1
        ended = self._line + text[:end] if end else ""
        self._line = text[end:] if end else self._line + text
        if "\r" in ended:
            ended = "\n".join(last_version(line) for line in ended.split("\n"))
        if "\r" in self._line:
            written = self._line.rstrip("\r")
            self._line = last_version(written) + ("\r" if len(written) < len(self._line) else "")
        if len(self._line) > _LONGEST_LINE_CHARS:
            ended += self._line.rstrip("\r")
            self._line = "\r" if self._line.endswith("\r") else ""
        return ended
