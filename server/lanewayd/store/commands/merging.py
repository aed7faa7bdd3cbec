"""Taking messages into another run (D-7)."""

from collections.abc import Sequence
from datetime import datetime

from lanewayd.errors import CollectionChanged
from lanewayd.events import NewEvent, QueueChange, QueuePhase, StoredEvent
from lanewayd.records import Run, RunState, check_transition
from lanewayd.store.commands.event_log import RunHead, add_events, growth_parameters, run_head
from lanewayd.store.run_rows import run_from_row
from lanewayd.store.session_rows import dropped_from_json
from lanewayd.store.transaction import Transaction


def merge(
    transaction: Transaction, host: RunHead, run_ids: Sequence[str], phase: QueuePhase, now: datetime
) -> tuple[tuple[Run, ...], tuple[StoredEvent, ...]]:
    """Make queued runs part of `host`, an event in the log of each. Raises CollectionChanged if one waits no more."""
    runs: list[Run] = []
    events: list[StoredEvent] = []
    for run_id in run_ids:
        head = run_head(transaction, run_id)
        if head is None or head.state != RunState.QUEUED or head.session_id != host.session_id:
            raise CollectionChanged(f"{run_id} does not wait any more")
        check_transition(RunState.QUEUED, RunState.MERGED)
        growth = add_events(transaction, head, (NewEvent(now, QueueChange(phase, host_run_id=host.run_id)),))
        names = {"host_run_id": host.run_id, "accepted_no": head.accepted_no}
        transaction.execute("update_run_merged", {**names, **growth_parameters(growth)})
        runs.append(run_from_row(transaction.one("select_run_by_no", (head.accepted_no,))))
        events.extend(growth.events)
    return tuple(runs), tuple(events)


def detach(transaction: Transaction, host: RunHead, now: datetime) -> tuple[tuple[Run, ...], tuple[StoredEvent, ...]]:
    """`host` has ended: what waited to be taken in by it waits for turns of its own, in the order of arrival."""
    runs: list[Run] = []
    events: list[StoredEvent] = []
    waiting = [
        row["accepted_no"] for row in transaction.all("select_queued_of_session", (host.tenant, host.session_key))
    ]
    for row in transaction.all("select_attached", (host.run_id,)):
        head = run_head(transaction, row["run_id"])
        if head is None:
            continue
        ahead = len(runs) + sum(accepted_no < head.accepted_no for accepted_no in waiting)
        change = QueueChange(QueuePhase.DETACHED, host_run_id=host.run_id, position=ahead)
        growth = add_events(transaction, head, (NewEvent(now, change),))
        transaction.execute("update_run_detached", {"accepted_no": head.accepted_no, **growth_parameters(growth)})
        runs.append(run_from_row(transaction.one("select_run_by_no", (head.accepted_no,))))
        events.extend(growth.events)
    return tuple(runs), tuple(events)


def tell_of_dropped(transaction: Transaction, host: RunHead, count: int) -> None:
    """A turn tells of `count` dropped messages: none is left to tell of. Raises CollectionChanged for another count."""
    session = (host.tenant, host.session_key)
    row = transaction.one("select_dropped", session)
    if row is None or dropped_from_json(row["dropped_json"]).count != count:
        raise CollectionChanged("another message was dropped")
    if count:
        transaction.execute("update_dropped", ("", *session))
