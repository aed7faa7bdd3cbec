"""The cap of the messages that wait to be collected (spec 02, R-2.46 to R-2.50)."""

from collections.abc import Sequence

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import Lifecycle, LifecyclePhase, NewEvent, QueueChange, QueuePhase, StoredEvent
from lanewayd.records import DropPolicy, Run, RunState
from lanewayd.store.commands.event_log import run_head
from lanewayd.store.commands.run_log import write_changes
from lanewayd.store.interface import AcceptRun, RunChange, RunEnd
from lanewayd.store.session_rows import Dropped, dropped_from_json, dropped_json
from lanewayd.store.transaction import Transaction


def make_room(
    transaction: Transaction, command: AcceptRun, session_key: str, waiting: Sequence[str]
) -> tuple[tuple[Run, ...], tuple[StoredEvent, ...]]:
    """End the oldest of `waiting`, run ids, so that one more may wait. Raises QUEUE_FULL when the newest has to go."""
    rules = command.queue
    surplus = len(waiting) + 1 - rules.cap
    if surplus <= 0:
        return (), ()
    if rules.drop is DropPolicy.NEW:
        raise LanewayError(
            ErrorCode.QUEUE_FULL,
            f"{rules.cap} messages of this session wait to be collected, as many as `queue.cap` allows; repeat the call"
            " when they have been answered",
            retry_after_s=1.0,
        )
    runs: list[Run] = []
    events: list[StoredEvent] = []
    for run_id in waiting[:surplus]:
        head = run_head(transaction, run_id)
        if head is None:
            continue
        appended = write_changes(transaction, head, (_drop(command),))
        events.extend(appended.events)
        if appended.run is not None:
            runs.append(appended.run)
    if rules.drop is DropPolicy.SUMMARIZE:
        _note(transaction, command.tenant, session_key, [run.run_id for run in runs], rules.cap)
    return tuple(runs), tuple(events)


def _note(transaction: Transaction, tenant: str, session_key: str, run_ids: list[str], cap: int) -> None:
    before = dropped_from_json(transaction.one("select_dropped", (tenant, session_key))["dropped_json"])
    kept = [*before.run_ids, *run_ids][-cap:]
    note = dropped_json(Dropped(before.count + len(run_ids), tuple(kept)))
    transaction.execute("update_dropped", (note, tenant, session_key))


def _drop(command: AcceptRun) -> RunChange:
    ended = Lifecycle(
        LifecyclePhase.END, RunState.CANCELLED.value, cancelled=True, stop_reason="dropped", ended_at=command.now
    )
    return RunChange(
        events=(NewEvent(command.now, QueueChange(QueuePhase.DROPPED)), NewEvent(command.now, ended)),
        end=RunEnd(RunState.CANCELLED, command.now, "dropped"),
    )
