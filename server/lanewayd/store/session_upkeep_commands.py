"""The commands that put unused sessions away and remove them; a part of store/interface.py. Pure values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lanewayd.records import Session


class UnusedKind(StrEnum):
    """What sessions are looked for among the unused ones."""

    ANY = "any"
    ONE_OFF = "one_off"
    """Of messages that named no session."""
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Unused:
    """Sessions in which nothing has happened since. Pinned ones and those with unended runs are none of them."""

    since: datetime
    spares_external: bool
    """Neither are those that a channel has spoken in (R-3.69)."""
    kind: UnusedKind = UnusedKind.ANY
    tenant: str = ""
    """Empty = all."""


@dataclass(frozen=True, slots=True)
class DropSession:
    """Remove a session as DeleteSession does if it is still one of `unused`, and still has this session id. The answer
    is None when it is not, else the blobs that nobody names any more."""

    session: Session
    unused: Unused


@dataclass(frozen=True, slots=True)
class DropPastTranscript:
    """Remove the entries of an earlier session id of a key; the answer as for DropSession."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ArchiveSurplus:
    """Archive the sessions of a tenant that were unused longest, above `max_sessions` that are not archived; one-off
    ones do not count and are left. At most `limit`; the answer is how many were."""

    tenant: str
    max_sessions: int
    quiet_since: datetime
    """No user has spoken in them since."""
    spares_external: bool
    limit: int = 500


@dataclass(frozen=True, slots=True)
class CrowdedTenant:
    """A tenant with more sessions that are not archived than allowed."""

    tenant: str
    sessions: int
