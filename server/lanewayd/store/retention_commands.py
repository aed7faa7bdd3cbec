"""The commands that find and remove what is too old, or named by nobody; a part of store/interface.py. Pure values."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Prune:
    """Apply retention; one bounded step. Of unended runs only events beyond `max_events_per_run` go, the oldest."""

    now: datetime
    events_max_age: timedelta
    max_events_per_run: int
    events_max_bytes: int
    runs_max_age: timedelta
    max_rows: int = 5000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a step removed. `is_done` = another step would find nothing now."""

    events: int
    runs: int
    keys: int
    is_done: bool
    run_ids: tuple[str, ...] = ()
    """Runs that lost events or their row."""
    blobs: tuple[str, ...] = ()
    """Files that nobody names any more."""


@dataclass(frozen=True, slots=True)
class FindUnnamedBlobs:
    """Asks which of `hashes` no row names; a command, so that it comes behind those given before."""

    hashes: tuple[str, ...]
