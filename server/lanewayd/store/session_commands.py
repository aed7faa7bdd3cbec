"""The commands on sessions, a part of store/interface.py, where the rest of the service finds them. Pure values."""

from dataclasses import dataclass
from datetime import datetime

from lanewayd.records import NewEntry, SessionPatch


@dataclass(frozen=True, slots=True)
class ResetSession:
    """Append a reset entry. Raises SESSION_NOT_FOUND, SESSION_ACTIVE (metadata `run_id`)."""

    tenant: str
    session_key: str
    entry: NewEntry


@dataclass(frozen=True, slots=True)
class UpdateSession:
    """Change what is set for a session. Raises SESSION_NOT_FOUND."""

    tenant: str
    session_key: str
    patch: SessionPatch


@dataclass(frozen=True, slots=True)
class DeleteSession:
    """Remove a session with entries, events, payloads; its runs keep their rows without text and their terminal event
    without text. Raises SESSION_NOT_FOUND, SESSION_ACTIVE."""

    tenant: str
    session_key: str


@dataclass(frozen=True, slots=True)
class ImportSession:
    """Create a session with a whole transcript. Raises FIELD_INVALID (`session_key`) when the key has a session."""

    tenant: str
    session_key: str
    session_id: str
    agent_id: str
    created_at: datetime
    now: datetime
    entries: tuple[NewEntry, ...]
