"""Events from their rows. Pure."""

from lanewayd.events import EventKind, StoredEvent
from lanewayd.store.transaction import Row

_KINDS = {kind.value: kind for kind in EventKind}


def event_from_row(row: Row) -> StoredEvent:
    """A row of the table `events`, with the columns in the order of the event queries."""
    position, run_id, session_key, tenant, seq, kind, is_last, encoded = row
    return StoredEvent(position, run_id, session_key, tenant, seq, _KINDS[kind], bool(is_last), encoded)
