"""What a run does: it starts, appends to its log, and ends. A state change and its event are one savepoint."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lanewayd.errors import ClaimLost, IntakeNotEmpty, RunNotStartable
from lanewayd.events import Lifecycle, NewEvent, QueueChange, QueuePhase, is_terminal
from lanewayd.records import EntryKind, NewEntry, RunState, ToolCallRow, ToolCallState
from lanewayd.store.commands.event_log import RunHead, add_events, growth_parameters, run_head
from lanewayd.store.commands.merging import detach, merge, tell_of_dropped
from lanewayd.store.commands.run_end import settle_merged, write_end
from lanewayd.store.interface import (
    Appended,
    AppendToRun,
    Injected,
    InjectMessages,
    RunChange,
    RunEnd,
    SettleRun,
    Started,
    StartRun,
)
from lanewayd.store.run_rows import run_from_row, usage_json
from lanewayd.store.session_rows import session_usage_of, tool_call_parameters
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Row, Transaction


def start(transaction: Transaction, command: StartRun) -> Started:
    """Give the run a new claim and attempt; see the command."""
    head = run_head(transaction, command.run_id)
    wanted = RunState.RUNNING if command.recovered else RunState.QUEUED
    if head is None or head.state != wanted:
        raise RunNotStartable(f"{command.run_id} is not {wanted.value}")
    if head.abort_requested_at is not None:
        raise RunNotStartable(f"{command.run_id} is to be aborted")
    at_start = _session_at_start(transaction, head)
    leaf_entry_id = at_start["leaf_entry_id"]
    if command.entries:
        _chain(transaction, _session_of(head), head.run_id, command.entries, leaf_entry_id)
    if any(entry.kind is EntryKind.RESET for entry in command.entries):
        transaction.execute("clear_context_tokens", (head.tenant, head.session_key))
        transaction.execute("delete_credential_pins", (head.session_id,))
        leaf_entry_id = ""
    merged, merged_events = merge(transaction, head, command.collected, QueuePhase.COLLECTED, command.now)
    if command.dropped_count is not None:
        tell_of_dropped(transaction, head, command.dropped_count)
    growth = add_events(transaction, head, (_with_attempt(event, head.attempt + 1) for event in command.events))
    transaction.execute(
        "update_run_started",
        {
            "now": to_us(command.now),
            "recovered": command.recovered,
            "accepted_no": head.accepted_no,
            **growth_parameters(growth),
        },
    )
    run = run_from_row(transaction.one("select_run_by_no", (head.accepted_no,)))
    return Started(
        run,
        merged_events + growth.events,
        leaf_entry_id if command.entries else None,
        session_usage_of(at_start),
        merged,
        at_start["fallback_model"],
    )


def append(transaction: Transaction, command: AppendToRun) -> Appended:
    """Append in order, for the holder of the claim only."""
    head = run_head(transaction, command.run_id)
    if head is None:
        raise ClaimLost(f"{command.run_id} does not exist")
    if head.state != RunState.RUNNING or head.claim != command.claim:
        raise ClaimLost(f"{command.run_id} is {head.state} with claim {head.claim}, not running with {command.claim}")
    if head.last_seq + 1 != command.first_seq:
        raise ClaimLost(f"{command.run_id} has {head.last_seq} events, so {command.first_seq} cannot be the next")
    end = command.changes[-1].end if command.changes else None
    if end is not None and end.state is RunState.SUCCEEDED and transaction.one("select_attached", (head.run_id,)):
        raise IntakeNotEmpty(f"messages wait to be taken in by {head.run_id}")
    return write_changes(transaction, head, command.changes)


def inject(transaction: Transaction, command: InjectMessages) -> Injected:
    """Take in what still waits for this run; see the command."""
    head = run_head(transaction, command.run_id)
    if head is None or head.state != RunState.RUNNING or head.claim != command.claim:
        raise ClaimLost(f"{command.run_id} is not running with claim {command.claim}")
    waiting = {row["run_id"] for row in transaction.all("select_attached", (head.run_id,))}
    taken = [injection for injection in command.injections if injection.run_id in waiting]
    merged, events = merge(transaction, head, [each.run_id for each in taken], QueuePhase.INJECTED, command.now)
    append_entries(transaction, _session_of(head), head.run_id, [each.entry for each in taken])
    injected = NewEvent(command.now, QueueChange(QueuePhase.INJECTED, host_run_id=head.run_id))
    growth = add_events(transaction, head, [event for each in taken for event in (injected, each.said)])
    row = {**_progress_parameters(()), **growth_parameters(growth), "accepted_no": head.accepted_no}
    transaction.execute("update_run_grown", row)
    earlier = {row["run_id"] for row in transaction.all("select_merged", (head.run_id,))}
    known = [each.run_id for each in command.injections if each.run_id in earlier]
    runs = [run for run in merged if run.run_id in known]
    return Injected(tuple(runs), events + growth.events, head.last_seq + len(growth.events), tuple(known))


def settle(transaction: Transaction, command: SettleRun) -> Appended:
    """End a run that nobody executes, and shut out who might still believe to."""
    if command.change.end is None:
        raise ValueError("settling a run ends it")
    head = run_head(transaction, command.run_id)
    if head is None or RunState(head.state).is_ended:
        raise RunNotStartable(f"{command.run_id} has ended or does not exist")
    transaction.execute("raise_claim", (head.accepted_no,))
    return write_changes(transaction, head, (command.change,))


def write_changes(transaction: Transaction, head: RunHead, changes: Sequence[RunChange]) -> Appended:
    """Store `changes`, whose rights have been checked. Raises ValueError unless a run ends with its terminal event."""
    end = changes[-1].end if changes else None
    events = [event for change in changes for event in change.events]
    _check_end(events, changes, end)
    for change in changes:
        if change.entries:
            append_entries(transaction, _session_of(head), head.run_id, change.entries)
        if change.tool_calls:
            _put_tool_calls(transaction, change.tool_calls)
        if change.corrections is not None:
            transaction.execute("update_run_corrections", (change.corrections, head.accepted_no))
        if change.void_usage is not None:
            transaction.execute("update_run_void_usage", (usage_json(change.void_usage), head.accepted_no))
        if change.fallback_model is not None:
            transaction.execute("update_fallback_model", (change.fallback_model, *_session_of(head)))
        if change.answered_by is not None:
            transaction.execute("update_run_answered_by", (change.answered_by, head.accepted_no))
    growth = add_events(transaction, head, events)
    row = {**_progress_parameters(changes), **growth_parameters(growth), "accepted_no": head.accepted_no}
    if end is None:
        transaction.execute("update_run_grown", row)
        return Appended(growth.events, None)
    write_end(transaction, head, end, row)
    settled, settled_events = settle_merged(transaction, head, end, events[-1])
    detached, detached_events = detach(transaction, head, end.ended_at)
    run = run_from_row(transaction.one("select_run_by_no", (head.accepted_no,)))
    return Appended(growth.events + settled_events + detached_events, run, settled, detached)


def append_entries(
    transaction: Transaction, session: tuple[str, str, str], run_id: str, entries: Iterable[NewEntry]
) -> None:
    """Chain `entries` to the leaf of the session (tenant, key, id) and make the last of them the leaf.

    Raises ValueError when the key does not have this session any more.
    """
    entries = list(entries)
    if entries:
        leaf = _existing(transaction.one("select_leaf", session), session)
        _chain(transaction, session, run_id, entries, leaf["leaf_entry_id"])


def _session_at_start(transaction: Transaction, head: RunHead) -> Row:
    """Of the run's session: where its transcript ends, what its ended runs have used. Raises as append_entries."""
    session = _session_of(head)
    return _existing(transaction.one("select_session_at_start", session), session)


def _session_of(head: RunHead) -> tuple[str, str, str]:
    return head.tenant, head.session_key, head.session_id


def _existing(row: Row | None, session: tuple[str, str, str]) -> Row:
    if row is None:
        raise ValueError(f"session {session[-1]} does not exist")
    return row


def _chain(
    transaction: Transaction,
    session: tuple[str, str, str],
    run_id: str,
    entries: Iterable[NewEntry],
    leaf_entry_id: str,
) -> None:
    """Store `entries`, the first behind `leaf_entry_id`, the last as the new leaf."""
    tenant, session_key, session_id = session
    parent_entry_id, rows = leaf_entry_id, []
    for entry in entries:
        rows.append(
            (
                entry.entry_id,
                parent_entry_id,
                session_id,
                run_id,
                to_us(entry.time),
                entry.kind.value,
                entry.body_json,
            )
        )
        parent_entry_id = entry.entry_id
    transaction.execute_many("insert_entry", rows)
    transaction.execute("update_leaf", (parent_entry_id, tenant, session_key))


def _with_attempt(event: NewEvent, attempt: int) -> NewEvent:
    """A starter does not know the number of the attempt: it is given here."""
    payload = event.payload
    if isinstance(payload, Lifecycle) and payload.attempt == 0:
        return replace(event, payload=replace(payload, attempt=attempt))
    return event


def _check_end(events: Sequence[NewEvent], changes: Sequence[RunChange], end: RunEnd | None) -> None:
    terminals = [is_terminal(event.payload) for event in events]
    if any(change.end for change in changes[:-1]) or any(terminals[:-1]):
        raise ValueError("nothing follows the end of a run")
    if (end is not None) != bool(terminals and terminals[-1]):
        raise ValueError("a run ends together with its terminal event")
    if end is not None and not end.state.is_ended:
        raise ValueError(f"{end.state.value} is no end")


def _progress_parameters(changes: Sequence[RunChange]) -> dict[str, object]:
    """What `changes` together say about the run's row: of a value the last word counts."""
    used_s = [change.used_s for change in changes if change.used_s is not None]
    open_message_ids = [change.open_message_id for change in changes if change.open_message_id is not None]
    return {
        "used_s": used_s[-1] if used_s else None,
        "open_message_id": open_message_ids[-1] if open_message_ids else None,
        "got_on": any(change.got_on for change in changes),
        "handed_over": any(change.handed_over for change in changes),
    }


def _put_tool_calls(transaction: Transaction, calls: Sequence[ToolCallRow]) -> None:
    for call in calls:
        query = "insert_tool_call" if call.state is ToolCallState.REQUESTED else "update_tool_call"
        if transaction.execute(query, tool_call_parameters(call)) != 1:
            raise ValueError(f"{call.run_id} has no call {call.call_id} in {call.entry_id}")
