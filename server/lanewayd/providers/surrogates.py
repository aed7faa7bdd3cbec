"""Lone UTF-16 surrogates: JSON can carry them, UTF-8 cannot. Pure.

A provider that counts in UTF-16 may cut a pair between two deltas; the halves are joined again. What stays alone
becomes U+FFFD (spec 05, R-5.4).
"""

from lanewayd.messages import valid_text


class SurrogateJoiner:
    """Mends a text that comes in pieces: a high surrogate at the end of a piece waits for the next one."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        """The part of the text so far that is certain."""
        if not self._high and text.isascii():
            return text
        text, self._high = self._high + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return valid_text(text)

    def end(self) -> str:
        """What was held back."""
        high, self._high = self._high, ""
        return valid_text(high)
