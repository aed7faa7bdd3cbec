"""Appending to a run's event log, and cutting its beginning off. Every event row is written or removed here."""

from collections.abc import Iterable
from dataclasses import dataclass

from lanewayd.events import NewEvent, StoredEvent, is_terminal, kind_of
from lanewayd.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class RunHead:
    """What a write of a run's log is checked against and needs to know: the row of `select_run_head`."""

    accepted_no: int
    run_id: str
    tenant: str
    session_key: str
    session_id: str
    agent_id: str
    state: str
    claim: int
    attempt: int
    last_seq: int
    abort_requested_at: int | None


def run_head(transaction: Transaction, run_id: str) -> RunHead | None:
    """The head of a run's row as this transaction sees it."""
    row = transaction.one("select_run_head", (run_id,))
    return None if row is None else RunHead(*row)


@dataclass(frozen=True, slots=True)
class Growth:
    """Events that were stored after a run's last one; its row is still to be told, by `growth_parameters`."""

    events: tuple[StoredEvent, ...] = ()
    size_bytes: int = 0


def growth_parameters(growth: Growth) -> dict[str, object]:
    """The parameters by which an update of the run's row moves the end of its log."""
    events = growth.events
    return {
        "events": len(events),
        "size_bytes": growth.size_bytes,
        "first_position": events[0].position if events else 0,
        "last_position": events[-1].position if events else 0,
    }


def add_events(transaction: Transaction, head: RunHead, events: Iterable[NewEvent]) -> Growth:
    """Store `events` after the run's last one. They take the next positions. The caller updates the run's row."""
    codec, position, seq = transaction.codec, transaction.last_position, head.last_seq
    stored, rows, size_bytes = [], [], 0
    for event in events:
        position, seq = position + 1, seq + 1
        encoded = codec.with_cursor(
            codec.encode(
                event.payload,
                run_id=head.run_id,
                seq=seq,
                time=event.time,
                session_key=head.session_key,
                agent_id=head.agent_id,
            ),
            store_id=transaction.store_id,
            position=position,
        )
        kind, is_last = kind_of(event.payload), is_terminal(event.payload)
        stored.append(StoredEvent(position, head.run_id, head.session_key, head.tenant, seq, kind, is_last, encoded))
        rows.append(
            (position, head.tenant, head.session_key, head.run_id, head.accepted_no, seq, kind.value, is_last, encoded)
        )
        size_bytes += len(encoded)
    if rows:
        transaction.execute_many("insert_event", rows)
        transaction.last_position = position
        transaction.event_bytes += size_bytes
    return Growth(tuple(stored), size_bytes)


def cut_events(transaction: Transaction, run: Row, up_to_seq: int) -> int:
    """Remove the events of a run up to `up_to_seq`; how many those were. Readers can tell that they missed something.

    `run` has accepted_no, run_id, tenant and session_key.
    """
    removed = transaction.one("measure_events", (run["accepted_no"], up_to_seq))
    transaction.execute("delete_events", (run["accepted_no"], up_to_seq))
    position, size_bytes = removed["last_position"], removed["size_bytes"]
    transaction.execute("update_run_cut", (up_to_seq + 1, size_bytes, position, run["accepted_no"]))
    transaction.execute("update_session_cut", (position, run["tenant"], run["session_key"]))
    transaction.execute("put_tenant_cut", (run["tenant"], position))
    transaction.event_bytes -= size_bytes
    return int(removed["events"])
