"""What a command printed, kept within bounds while it prints. Pure.

`OutputCollector` takes bytes as they come and keeps the first and the last 100,000 characters of the cleaned text:
cleaning comes before capping, so that progress bars do not push real text out. Memory does not grow with the output.
"""

import codecs

from lanewayd.tools.result_limits import Ends, shorten
from lanewayd.tools.terminal_text import TerminalCleaner

_END_CHARS = 100_000
_BINARY_SHARE = 0.1
_BINARY_SHOWN_CHARS = 2_200


class OutputCollector:
    """One command's output; only its reader feeds it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = TerminalCleaner()
        self._head = ""
        self._tail = ""
        self._kept_total_chars = 0
        self._decoded_chars = 0
        self._unreadable_chars = 0
        self._total_bytes = 0

    @property
    def total_bytes(self) -> int:
        return self._total_bytes

    @property
    def is_binary(self) -> bool:
        """More than a tenth of it is NUL or no UTF-8."""
        return self._unreadable_chars > self._decoded_chars * _BINARY_SHARE

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        self._total_bytes += len(chunk)
        self._take(self._decoder.decode(chunk))

    def finish(self) -> None:
        """The output has ended; its last line and bytes are kept too."""
        self._take(self._decoder.decode(b"", final=True))
        self._keep(self._cleaner.finish())

    def text(self, limit_chars: int) -> str:
        """The output so far within the limit; head and tail around a mark if it is longer. Empty if there is none."""
        line = self._cleaner.unfinished_line
        ends = Ends(self._head, self._tail + line, self._kept_total_chars + len(line))
        if not self.is_binary:
            return shorten(ends, limit_chars, always_keep_tail=True)
        shown = shorten(ends, min(limit_chars, _BINARY_SHOWN_CHARS), always_keep_tail=True)
        return f"[binary output, {self._total_bytes} bytes; send it to a file to use it]\n{shown}"

    def _take(self, text: str) -> None:
        self._decoded_chars += len(text)
        self._unreadable_chars += text.count("\ufffd") + text.count("\x00")
        self._keep(self._cleaner.feed(text))

    def _keep(self, text: str) -> None:
        self._kept_total_chars += len(text)
        room = _END_CHARS - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text)[-_END_CHARS:]
