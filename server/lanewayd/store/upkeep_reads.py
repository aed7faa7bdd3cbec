"""What retention of sessions asks the store; see the store's contract. In the reader's thread."""

from lanewayd.records import Entry, Session
from lanewayd.store.commands.session_upkeep import unused_parameters
from lanewayd.store.interface import CrowdedTenant, Unused
from lanewayd.store.reader import Snapshot
from lanewayd.store.session_rows import entry_from_row, session_from_row
from lanewayd.store.times import from_us


def transcript(snapshot: Snapshot, session_id: str, after_no: int, limit: int) -> list[tuple[int, Entry]]:
    """Oldest first, with their numbers."""
    rows = snapshot.all("select_transcript", (session_id, after_no, limit))
    return [(row["entry_no"], entry_from_row(row)) for row in rows]


def unused_sessions(snapshot: Snapshot, unused: Unused, limit: int) -> list[Session]:
    """The longest unused first."""
    return [session_from_row(row) for row in snapshot.all("select_unused", unused_parameters(unused, limit=limit))]


def past_transcripts(snapshot: Snapshot, limit: int) -> list[Session]:
    """The first to end first."""
    return [
        Session(
            tenant=row["tenant"],
            session_key=row["session_key"],
            session_id=row["session_id"],
            agent_id=row["agent_id"],
            created_at=from_us(row["started_at"]),
            last_interaction_at=from_us(row["started_at"]),
        )
        for row in snapshot.all("select_past_transcripts", (limit,))
    ]


def crowded_tenants(snapshot: Snapshot, max_sessions: int) -> list[CrowdedTenant]:
    """Who has more sessions that are not archived."""
    rows = snapshot.all("select_crowded_tenants", (max_sessions,))
    return [CrowdedTenant(row["tenant"], row["sessions"]) for row in rows]


def used_bytes(snapshot: Snapshot) -> int:
    """Of the database and the files of attachments."""
    return int(snapshot.one("measure_store")[0])
