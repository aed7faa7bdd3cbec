"""Asking for runs to end (D-20)."""

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.events import Lifecycle, LifecyclePhase, NewEvent, QueueChange, QueuePhase, StoredEvent
from lanewayd.records import Run, RunState
from lanewayd.store.commands.event_log import RunHead, run_head
from lanewayd.store.commands.run_log import write_changes
from lanewayd.store.interface import AbortRequested, RequestAbort, RunChange, RunEnd
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Transaction


def request_abort(transaction: Transaction, command: RequestAbort) -> AbortRequested:
    """End the queued runs, mark the running ones; queued first."""
    heads = _heads(transaction, command)
    cancelled: list[Run] = []
    events: list[StoredEvent] = []
    for head in heads:
        if head.state == RunState.QUEUED and (command.run_id or command.clear_queued):
            _mark(transaction, head, command)
            appended = write_changes(transaction, head, (_cancellation(command),))
            events.extend(appended.events)
            if appended.run:
                cancelled.append(appended.run)
    running = [head for head in heads if head.state == RunState.RUNNING]
    for head in running:
        _mark(transaction, head, command)
    return AbortRequested(tuple(cancelled), tuple(head.run_id for head in running), tuple(events))


def _heads(transaction: Transaction, command: RequestAbort) -> list[RunHead]:
    if bool(command.run_id) == bool(command.session_key):
        raise ValueError("an abort names a run or a session")
    if command.run_id:
        head = run_head(transaction, command.run_id)
        if head is None or head.tenant != command.tenant:
            raise LanewayError(
                ErrorCode.RUN_NOT_FOUND, f"run {command.run_id} is unknown", metadata={"run_id": command.run_id}
            )
        return [head]
    rows = transaction.all("select_unended_of_session", (command.tenant, command.session_key))
    heads = (run_head(transaction, row["run_id"]) for row in rows)
    return [head for head in heads if head is not None]


def _mark(transaction: Transaction, head: RunHead, command: RequestAbort) -> None:
    transaction.execute(
        "mark_abort",
        {
            "now": to_us(command.now),
            "stop_reason": command.stop_reason,
            "reason": command.reason,
            "accepted_no": head.accepted_no,
        },
    )


def _cancellation(command: RequestAbort) -> RunChange:
    ended = Lifecycle(
        LifecyclePhase.END,
        RunState.CANCELLED.value,
        cancelled=True,
        stop_reason=command.stop_reason,
        ended_at=command.now,
    )
    return RunChange(
        events=(NewEvent(command.now, QueueChange(QueuePhase.CANCELLED)), NewEvent(command.now, ended)),
        end=RunEnd(RunState.CANCELLED, command.now, command.stop_reason),
    )
