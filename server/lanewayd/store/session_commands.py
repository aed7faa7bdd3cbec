"""The commands on sessions, a part of store/interface.py, where the rest of the service finds them. Pure values."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from lanewayd.records import EntryKind, NewEntry, Session, SessionPatch


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
    now: datetime


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


@dataclass(frozen=True, slots=True)
class ForkSession:
    """Create a session with copies of the entries from the root to `entry_id`, and with the settings of the other one.

    Where `new_session_key` has a session already: the answer is that session if it was forked from `session_key` (at
    `entry_id`, if that is given), else FIELD_INVALID (`new_session_key`). Raises SESSION_NOT_FOUND, ENTRY_NOT_FOUND,
    FIELD_INVALID (`entry_id`: too much would be copied).
    """

    tenant: str
    session_key: str
    entry_id: str
    """Empty = the leaf."""
    new_session_key: str
    new_session_id: str
    label: str
    now: datetime
    max_entries: int
    max_bytes: int
    """Of all bodies, as UTF-8."""
    new_entry_id: Callable[[], str]
    """Called by the writer, once for each copy."""
    blobs_named_by: Callable[[EntryKind, str], Collection[str]]
    """The files that an entry of this kind and body names. Pure."""


@dataclass(frozen=True, slots=True)
class Forked:
    """The new session, or the one that an earlier command has made."""

    session: Session
    entries: int
    """Copied by this command."""
    is_duplicate: bool
