"""How much of a result the model gets (spec 06, section 5). Pure.

A result over its limit keeps its head and, where the end matters, its tail; a mark between or after them says how much
is left out. The outcome is within the limit, so that limiting it again changes nothing (R-6.58).
"""

import re
from dataclasses import dataclass

NO_OUTPUT = "(no output)"
MIN_KEPT_CHARS = 2_000
CHARS_PER_TOKEN = 4
"""A rough average, for limits that are given as a share of a context window."""
_WINDOW_SHARE = 0.3
_TAIL_SHARE = 0.3
_MAX_TAIL_CHARS = 4_000
_LOOKED_AT_CHARS = 2_000
_LINE_BREAK_SHARE = 0.2
_MARK_ROOM_CHARS = 200
_IMPORTANT = re.compile(
    r"error|exception|traceback|\b(?:failed|failures?|fatal|panic|abort(?:ed)?|killed|denied|warnings?"
    r"|exit (?:code|status)|exited|totals?|summary|passed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Ends:
    """A text of `total_chars` known by its first and last part, which do not overlap."""

    head: str
    tail: str
    total_chars: int

    @property
    def is_whole(self) -> bool:
        return self.total_chars == len(self.head) + len(self.tail)


def result_limit_chars(context_window_tokens: int) -> int:
    """Characters one result may have for a model with this window; 0 = unknown, the smallest cap."""
    if context_window_tokens >= 200_000:
        cap = 64_000
    elif context_window_tokens >= 100_000:
        cap = 32_000
    else:
        cap = 16_000
    if context_window_tokens <= 0:
        return cap
    share = int(context_window_tokens * _WINDOW_SHARE * CHARS_PER_TOKEN)
    return max(MIN_KEPT_CHARS + _MARK_ROOM_CHARS, min(share, cap))


def limit_result(text: str, limit_chars: int) -> str:
    """`text` within the limit; an empty one becomes "(no output)"."""
    if not text.strip():
        return NO_OUTPUT
    return shorten(Ends(text, "", len(text)), limit_chars)


def shorten(text: Ends, limit_chars: int, *, always_keep_tail: bool = False) -> str:
    """The text itself if it is whole and within the limit, else its ends with a mark of what is left out.

    At least 2,000 characters are kept, whatever the limit says.
    """
    limit_chars = max(limit_chars, MIN_KEPT_CHARS + _MARK_ROOM_CHARS)
    whole = text.head + text.tail if text.is_whole else None
    if whole is not None and len(whole) <= limit_chars:
        return whole
    budget = limit_chars - _MARK_ROOM_CHARS
    head, tail = (text.head, text.tail) if whole is None else (whole, whole)
    tail_budget = 0
    if always_keep_tail or _looks_important(tail):
        tail_budget = min(int(budget * _TAIL_SHARE), _MAX_TAIL_CHARS)
    slack = min(int(budget * _LINE_BREAK_SHARE), budget - MIN_KEPT_CHARS)
    head = _cut_end(head[: budget - tail_budget], slack)
    # Together the two cuts give up no more than `slack`, else less than 2,000 could be left.
    tail = _cut_start(tail[-tail_budget:], slack - (budget - tail_budget - len(head))) if tail_budget else ""
    missing = text.total_chars - len(head) - len(tail)
    if tail:
        return f"{head}\n[... {missing} of {text.total_chars} characters left out ...]\n{tail}"
    return (
        f"{head}\n[{missing} of {text.total_chars} characters left out. Ask for less at a time: "
        "a narrower range, a filter, or fewer items.]"
    )


def _looks_important(tail: str) -> bool:
    end = tail[-_LOOKED_AT_CHARS:]
    return end.rstrip().endswith(("}", "]")) or _IMPORTANT.search(end) is not None


def _cut_end(head: str, slack: int) -> str:
    """`head` up to its last line break, if that costs no more than `slack` characters."""
    at = head.rfind("\n", max(0, len(head) - slack))
    return head if at <= 0 else head[:at]


def _cut_start(tail: str, slack: int) -> str:
    """`tail` from its first line break on, if that costs no more than `slack` characters."""
    at = tail.find("\n", 0, max(0, slack))
    return tail if at < 0 else tail[at + 1 :]
