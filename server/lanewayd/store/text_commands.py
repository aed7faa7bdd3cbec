"""Messages that are answered without a run: part of the store's interface."""

from collections.abc import Callable
from dataclasses import dataclass

from lanewayd.records import NewEntry, QueueChoice, QueueRules


@dataclass(frozen=True, slots=True)
class TextCommand:
    """What a message of nothing but directives does to its session, in the transaction that accepts it."""

    reply: Callable[[QueueRules, int, int], str]
    """The answer, from the rules that hold then, and how many runs are being stopped and were cancelled. Pure."""
    stops: bool = False
    """Queued runs of the session end, then the one at work is marked to be aborted: stop reason `stop_word`."""
    reset_entry: NewEntry | None = None
    """Begins the session anew. Raises SESSION_ACTIVE while it has a run that has not ended."""
    queue: QueueChoice | None = None
    """Is added to what the session has chosen."""
    clears_queue: bool = False
    """The session has chosen nothing any more."""
