"""Taking messages into runs (D-7): part of the store's interface."""

from dataclasses import dataclass
from datetime import datetime

from lanewayd.events import NewEvent, StoredEvent
from lanewayd.records import NewEntry, Run


@dataclass(frozen=True, slots=True)
class Injection:
    """A message that a run takes in, with the entry and the event that say it."""

    run_id: str
    entry: NewEntry
    said: NewEvent


@dataclass(frozen=True, slots=True)
class InjectMessages:
    """Make attached messages part of their host, in order; those that do not wait for it any more are left out.

    Raises ClaimLost unless the row is RUNNING with this claim. Repeated, it does nothing and gives the same answer.
    """

    run_id: str
    claim: int
    now: datetime
    injections: tuple[Injection, ...]


@dataclass(frozen=True, slots=True)
class Injected:
    """What this has made part of the host, and where its log ends."""

    merged: tuple[Run, ...]
    events: tuple[StoredEvent, ...]
    last_seq: int
    taken: tuple[str, ...] = ()
    """Of the messages asked for, those that are part of the host now, by this or by an earlier try; in order."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in a session to be collected, and what was dropped for it."""

    runs: tuple[Run, ...] = ()
    """Queued behind the run that was asked about, in order."""
    dropped: tuple[Run, ...] = ()
    """The last ones dropped, oldest first; at most as many as the cap was, and only those that are still stored."""
    dropped_count: int = 0
    """All that were dropped since the last turn that told of them."""
