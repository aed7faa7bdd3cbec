"""Accepting a message (D-1): look up its key, find its session, store its run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.events import NewEvent, QueueChange, QueuePhase, StoredEvent
from lanewayd.records import (
    MAIN_LANE,
    Disposition,
    QueueChoice,
    QueueMode,
    QueueRules,
    Run,
    RunRequest,
    RunState,
    SessionSettings,
)
from lanewayd.store.commands.attachments import put_attachments
from lanewayd.store.commands.dropping import make_room
from lanewayd.store.commands.event_log import Growth, RunHead, add_events, growth_parameters
from lanewayd.store.commands.obeying import obey
from lanewayd.store.commands.renewal import session_to_write
from lanewayd.store.interface import Accepted, AcceptRun, IdempotencyKey, SessionSelector
from lanewayd.store.run_rows import run_from_row, run_parameters, to_json
from lanewayd.store.session_rows import settings_from_json
from lanewayd.store.times import from_us, to_us
from lanewayd.store.transaction import Row, Transaction


class _Owner(NamedTuple):
    """A session as far as accepting needs it: the row of `select_session_owner`."""

    session_key: str
    session_id: str
    agent_id: str
    settings_json: str = ""
    """See store.session_rows.settings_from_json; read it only where it is not empty."""


def accept(transaction: Transaction, command: AcceptRun) -> Accepted:
    """The stored answer of a known key, or a new run; see the command."""
    if command.key:
        duplicate = stored_answer(transaction, command.tenant, command.key, command.now)
        if duplicate:
            return duplicate
    answer = _completed(transaction, command) if command.text_command else _new_run(transaction, command)
    if command.key:
        _keep_answer(transaction, command, command.key, answer)
    return answer


def _completed(transaction: Transaction, command: AcceptRun) -> Accepted:
    """A message that is answered without a run. A stop is no interaction: the session stays as it is."""
    said = command.text_command
    if said is None:
        raise ValueError("the message says nothing that can be done")
    owner = _find_session(transaction, command.tenant, command.session)
    target = owner or _Owner(command.session.session_key, command.session.new_session_id, command.session.agent_id)
    if owner is None or not said.stops:
        if owner is not None:
            target = target._replace(session_id=session_to_write(transaction, command, target.session_key))
        _put_session(transaction, command, target, is_new=owner is None)
    settings = settings_from_json(target.settings_json)
    obeyed = obey(transaction, command, said, target.session_key, settings)
    return Accepted(
        run_id="",
        accepted_at=command.now,
        session_key=target.session_key,
        session_id=target.session_id,
        agent_id=target.agent_id,
        disposition=Disposition.COMPLETED.value,
        queue_position=0,
        duplicate=False,
        run=None,
        events=obeyed.stopped.events,
        reply=obeyed.reply,
        stopped=obeyed.stopped,
    )


def _new_run(transaction: Transaction, command: AcceptRun) -> Accepted:
    if command.refusal is not None:
        raise command.refusal
    depth = _depth(transaction, command)
    owner = _find_session(transaction, command.tenant, command.session)
    target = owner or _Owner(command.session.session_key, command.session.new_session_id, command.session.agent_id)
    settings = settings_from_json(target.settings_json)
    command = replace(command, queue=_queue_rules(command, settings))
    if command.adapt is not None:
        command = replace(command, request=command.adapt(command.request, settings))
    if settings.reasoning or settings.trace:
        shown = replace(
            command.request, reasoning=settings.reasoning or command.request.reasoning, trace=bool(settings.trace)
        )
        command = replace(command, request=shown)
    _check_ancestors(transaction, command, target.session_key)
    if owner is not None:
        target = target._replace(session_id=session_to_write(transaction, command, target.session_key))
    _put_session(transaction, command, target, is_new=owner is None)
    return _insert_run(transaction, command, target, depth)


def _queue_rules(command: AcceptRun, settings: SessionSettings) -> QueueRules:
    """What the text says wins over what the request says, that over the session, that over channel and service."""
    of_session = QueueChoice() if command.forgets_queue else settings.queue
    of_request = QueueChoice(command.request.queue_mode)
    return command.queue.chosen(of_session).chosen(of_request).chosen(command.said_queue)


class Rows(Protocol):
    """What can be asked for a row: a transaction, or a snapshot."""

    def one(self, query: str, parameters: Any = ()) -> Any: ...


def stored_answer(rows: Rows, tenant: str, key: IdempotencyKey, now: datetime) -> Accepted | None:
    """The answer the key stands for; None when it is new or has expired.

    A hash of another version cannot be compared. It counts as the same request: a caller that repeats itself across an
    upgrade must not start a second run.
    """
    row = rows.one("select_key", (tenant, key.key))
    if row is None or row["expires_at"] <= to_us(now):
        return None
    if row["hash_version"] == key.hash_version and row["request_hash"] != key.request_hash:
        raise LanewayError(
            ErrorCode.IDEMPOTENCY_KEY_REUSED, "this idempotency key was used for another request; use a new key"
        )
    answer: dict[str, Any] = json.loads(row["answer_json"])
    answer["accepted_at"] = from_us(answer["accepted_at"])
    return Accepted(**answer, duplicate=True, run=None)


def _keep_answer(transaction: Transaction, command: AcceptRun, key: IdempotencyKey, answer: Accepted) -> None:
    answer_json = to_json(
        {
            "run_id": answer.run_id,
            "accepted_at": to_us(answer.accepted_at),
            "session_key": answer.session_key,
            "session_id": answer.session_id,
            "agent_id": answer.agent_id,
            "disposition": answer.disposition,
            "queue_position": answer.queue_position,
            "reply": answer.reply,
        }
    )
    expires_at = to_us(command.now + key.kept_for)
    transaction.execute(
        "put_key", (command.tenant, key.key, key.request_hash, key.hash_version, answer_json, expires_at)
    )


def _depth(transaction: Transaction, command: AcceptRun) -> int:
    parent_run_id = command.request.parent_run_id
    if not parent_run_id:
        return 0
    parent = transaction.one("select_parent", (parent_run_id, command.tenant))
    if parent is None or parent["ended_at"] is not None:
        raise LanewayError(
            ErrorCode.RUN_NOT_FOUND,
            f"the parent run {parent_run_id} is unknown or has ended",
            metadata={"field": "parent_run_id", "run_id": parent_run_id},
        )
    depth = int(parent["depth"]) + 1
    if depth > command.max_depth:
        raise FieldError(
            ErrorCode.FIELD_INVALID, "parent_run_id", f"runs may be nested {command.max_depth} deep at most"
        )
    return depth


def _find_session(transaction: Transaction, tenant: str, selector: SessionSelector) -> _Owner | None:
    """The session there is; None when the key has none yet and may have a new one."""
    if selector.session_key:
        row = transaction.one("select_session_owner", (tenant, selector.session_key))
    else:
        row = transaction.one("select_session_by_id", (selector.session_id, tenant))
    owner = _Owner(*row) if row else None
    if selector.session_id and (owner is None or owner.session_id != selector.session_id):
        raise LanewayError(
            ErrorCode.SESSION_NOT_FOUND,
            f"session {selector.session_id} is unknown, or belongs to another session key",
            metadata={"field": "session_id"},
        )
    if owner and selector.agent_id and owner.agent_id != selector.agent_id:
        raise FieldError(ErrorCode.FIELD_INVALID, "agent_id", f"the session belongs to the agent {owner.agent_id}")
    return owner


def _check_ancestors(transaction: Transaction, command: AcceptRun, session_key: str) -> None:
    """A child that waits for the session of an ancestor, which waits for the child, would never start."""
    if not command.request.parent_run_id:
        return
    names = {"run_id": command.request.parent_run_id, "tenant": command.tenant}
    for ancestor in transaction.all("select_ancestors", names):
        if ancestor["session_key"] == session_key:
            raise LanewayError(
                ErrorCode.NESTED_IN_SESSION,
                "a child run cannot use the session of a run it descends from; use another session",
                metadata={"run_id": ancestor["run_id"]},
            )


def _put_session(transaction: Transaction, command: AcceptRun, target: _Owner, *, is_new: bool) -> None:
    transaction.execute(
        "insert_session" if is_new else "touch_session",
        {
            "tenant": command.tenant,
            "session_key": target.session_key,
            "session_id": target.session_id,
            "agent_id": target.agent_id,
            "label": command.session.label,
            "created_at": to_us(command.now),
            "now": to_us(command.now),
            "channel": command.request.channel,
            "is_interaction": command.is_interaction,
        },
    )


def _insert_run(transaction: Transaction, command: AcceptRun, target: _Owner, depth: int) -> Accepted:
    unended = transaction.all("select_unended_of_session", (command.tenant, target.session_key))
    states = [row["state"] for row in unended]
    mode = command.queue.mode
    interrupted_run_id = _interrupt(transaction, command, unended) if mode is QueueMode.INTERRUPT else ""
    room = _room_to_be_collected(transaction, command, target, is_busy=bool(states) and mode is QueueMode.COLLECT)
    request = replace(
        command.request,
        agent_id=target.agent_id,
        lane=_lane(command.request.lane, depth),
        queue_mode=mode.value,
        quiet_s=command.queue.quiet_s if mode is QueueMode.COLLECT else 0.0,
    )
    host_run_id = _host(transaction, command, target, request) if mode is QueueMode.STEER and states else ""
    run = Run(
        run_id=command.run_id,
        accepted_no=transaction.take_accepted_no(),
        tenant=command.tenant,
        session_key=target.session_key,
        session_id=target.session_id,
        request=request,
        state=RunState.QUEUED,
        disposition=_disposition(
            room, is_busy=bool(states), interrupts=bool(interrupted_run_id), steers=bool(host_run_id)
        ),
        queue_position=0 if host_run_id else _queued(unended) - len(room.dropped),
        host_run_id=host_run_id,
        accepted_at=command.now,
        depth=depth,
    )
    run, events = _log_beginning(transaction, run)
    return Accepted(
        run_id=run.run_id,
        accepted_at=run.accepted_at,
        session_key=run.session_key,
        session_id=run.session_id,
        agent_id=run.request.agent_id,
        disposition=run.disposition.value,
        queue_position=run.queue_position,
        duplicate=False,
        run=run,
        events=room.events + events,
        interrupted_run_id=interrupted_run_id,
        dropped=room.dropped,
    )


def _interrupt(transaction: Transaction, command: AcceptRun, unended: Sequence[Row]) -> str:
    """Mark the run that is at work in the session to be aborted; its id, "" when there is none to mark."""
    running = next((row for row in unended if row["state"] == RunState.RUNNING), None)
    if running is None:
        return ""
    mark = {"now": to_us(command.now), "stop_reason": "interrupt", "reason": "", "accepted_no": running["accepted_no"]}
    return str(running["run_id"]) if transaction.execute("mark_abort", mark) else ""


class _Room(NamedTuple):
    """What was done so that a message may wait to be collected."""

    has_host: bool = False
    """An older message waits that it can be collected with."""
    dropped: tuple[Run, ...] = ()
    events: tuple[StoredEvent, ...] = ()


def _room_to_be_collected(transaction: Transaction, command: AcceptRun, target: _Owner, *, is_busy: bool) -> _Room:
    """Room for one more message that waits to be collected; nothing to do in a free session. Raises QUEUE_FULL."""
    if not is_busy:
        return _Room()
    waiting = [row["run_id"] for row in transaction.all("select_collectable", (command.tenant, target.session_key))]
    dropped, events = make_room(transaction, command, target.session_key, waiting)
    return _Room(len(waiting) > len(dropped), dropped, events)


def _host(transaction: Transaction, command: AcceptRun, target: _Owner, request: RunRequest) -> str:
    """The run at work that will take the message in; "" when it has to wait for a turn of its own.

    Messages that steer are decided on in order: behind one that waits for its turn all others do (R-2.69).
    """
    session = (command.tenant, target.session_key)
    running = transaction.one("select_steerable", session)
    if running is None or transaction.one("select_waiting_steers", session) is not None:
        return ""
    host = run_from_row(running)
    return host.run_id if command.queue.can_join(host.request, request) else ""


def _queued(unended: Sequence[Row]) -> int:
    """Runs that wait for a turn of their own."""
    return sum(row["state"] == RunState.QUEUED and not row["host_run_id"] for row in unended)


def _disposition(room: _Room, *, is_busy: bool, interrupts: bool, steers: bool) -> Disposition:
    if steers:
        return Disposition.STEERED
    if interrupts:
        return Disposition.INTERRUPTED_PREVIOUS
    if room.has_host:
        return Disposition.COLLECTED
    return Disposition.QUEUED if is_busy else Disposition.STARTED


def _log_beginning(transaction: Transaction, run: Run) -> tuple[Run, tuple[StoredEvent, ...]]:
    """Insert the run's row as its first event leaves it: one that waits behind others of its session says so."""
    growth = Growth()
    if run.disposition is not Disposition.STARTED:
        growth = add_events(transaction, _head_of(run), (NewEvent(run.accepted_at, _place_of(run)),))
    run = replace(run, last_seq=len(growth.events), event_bytes=growth.size_bytes)
    parameters = {**run_parameters(run), **growth_parameters(growth)}
    transaction.execute("insert_run", parameters)
    transaction.execute("insert_run_texts", parameters)
    put_attachments(transaction, run)
    return run, growth.events


def _place_of(run: Run) -> QueueChange:
    if run.host_run_id:
        return QueueChange(QueuePhase.STEERED, host_run_id=run.host_run_id)
    return QueueChange(QueuePhase.QUEUED, position=run.queue_position)


def _head_of(run: Run) -> RunHead:
    """The head of a run that is not stored yet."""
    return RunHead(
        accepted_no=run.accepted_no,
        run_id=run.run_id,
        tenant=run.tenant,
        session_key=run.session_key,
        session_id=run.session_id,
        agent_id=run.request.agent_id,
        state=run.state,
        claim=run.claim,
        attempt=run.attempt,
        last_seq=run.last_seq,
        abort_requested_at=None,
    )


def _lane(asked_for: str, depth: int) -> str:
    """D-8: children have lanes of their own, so that parents cannot take the room their children need."""
    return asked_for or (f"nested.{depth}" if depth else MAIN_LANE)
