"""Updating, resetting, deleting and importing sessions (D-21)."""

from dataclasses import replace

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.events import Lifecycle, LifecyclePhase
from lanewayd.records import Run, RunState, Session
from lanewayd.store.commands.attachments import drop_attachments, drop_transcript_blobs
from lanewayd.store.commands.event_log import cut_events
from lanewayd.store.commands.run_log import append_entries
from lanewayd.store.interface import DeleteSession, ImportSession, ResetSession, UpdateSession
from lanewayd.store.run_rows import error_json, run_from_row
from lanewayd.store.session_rows import session_from_row, settings_json
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Transaction


def update_session(transaction: Transaction, command: UpdateSession) -> Session:
    """The session as it then stands; what the patch does not name is left to what others have set."""
    row = transaction.one("select_session", (command.tenant, command.session_key))
    if row is None:
        raise _unknown(command.session_key)
    session = command.patch.applied_to(session_from_row(row))
    transaction.execute(
        "update_session",
        {
            "tenant": command.tenant,
            "session_key": command.session_key,
            "settings_json": settings_json(session.settings),
            "label": session.label,
            "pinned": session.pinned,
            "archived": session.archived if "archived" in command.patch.paths else None,
            "now": to_us(command.now),
        },
    )
    return session


def reset_session(transaction: Transaction, command: ResetSession) -> Session:
    """The session with the reset entry as its leaf and an empty context."""
    session_id = _idle_session_id(transaction, command.tenant, command.session_key)
    append_entries(transaction, (command.tenant, command.session_key, session_id), "", (command.entry,))
    transaction.execute("clear_context_tokens", (command.tenant, command.session_key))
    transaction.execute("delete_credential_pins", (session_id,))
    return session_from_row(transaction.one("select_session", (command.tenant, command.session_key)))


def delete_session(transaction: Transaction, command: DeleteSession) -> tuple[str, ...]:
    """Remove everything that was said in the session; the blobs that nobody names any more. Its keys keep answering."""
    blobs: list[str] = []
    session_id = _idle_session_id(transaction, command.tenant, command.session_key)
    names = (command.tenant, command.session_key)
    for row in transaction.all("select_ended_of_session", names):
        if row["first_seq"] < row["last_seq"]:
            cut_events(transaction, row, row["last_seq"] - 1)
        transaction.execute("delete_tool_calls", (row["run_id"],))
        blobs += drop_attachments(transaction, row["run_id"])
        if row["error_json"]:
            _silence_error(transaction, run_from_row(transaction.one("select_run_by_no", (row["accepted_no"],))))
        else:
            transaction.execute("blank_run_texts", {"error_json": "", "accepted_no": row["accepted_no"]})
    for past in transaction.all("select_past_of_session", names):
        blobs += drop_past_transcript(transaction, past["session_id"])
    blobs += drop_transcript_blobs(transaction, session_id)
    transaction.execute("delete_entries", (session_id,))
    transaction.execute("delete_credential_pins", (session_id,))
    transaction.execute("delete_session", names)
    return tuple(blobs)


def drop_past_transcript(transaction: Transaction, session_id: str) -> list[str]:
    """Remove a transcript whose key has gone on; the blobs that nobody names any more."""
    transaction.execute("delete_entries", (session_id,))
    transaction.execute("delete_past_transcript", (session_id,))
    return drop_transcript_blobs(transaction, session_id)


def import_session(transaction: Transaction, command: ImportSession) -> Session:
    """The new session; its last entry is its leaf, so that the next run goes on from it."""
    names = (command.tenant, command.session_key)
    if transaction.one("select_session_owner", names) is not None:
        raise FieldError(
            ErrorCode.FIELD_INVALID,
            "session_key",
            f"there is a session {command.session_key}; import under another key, or delete it first",
        )
    transaction.execute(
        "insert_session",
        {
            "tenant": command.tenant,
            "session_key": command.session_key,
            "session_id": command.session_id,
            "agent_id": command.agent_id,
            "label": "",
            "created_at": to_us(command.created_at),
            "now": to_us(command.now),
            "channel": "",
        },
    )
    append_entries(transaction, (*names, command.session_id), "", command.entries)
    return session_from_row(transaction.one("select_session", names))


def _idle_session_id(transaction: Transaction, tenant: str, session_key: str) -> str:
    owner = transaction.one("select_session_owner", (tenant, session_key))
    if owner is None:
        raise _unknown(session_key)
    unended = transaction.all("select_unended_of_session", (tenant, session_key))
    if unended:
        # The one that runs, else the one that waits longest.
        busy = next((row for row in unended if row["state"] == RunState.RUNNING), unended[0])
        raise LanewayError(
            ErrorCode.SESSION_ACTIVE,
            "the session has a run that has not ended; abort it first",
            metadata={"run_id": busy["run_id"]},
        )
    return str(owner["session_id"])


def _unknown(session_key: str) -> LanewayError:
    return LanewayError(ErrorCode.SESSION_NOT_FOUND, f"session {session_key} is unknown")


def _silence_error(transaction: Transaction, run: Run) -> None:
    """The reason stays, its text goes: from the row, and from the terminal event, the only one that is left."""
    if run.error is None or run.ended_at is None:
        raise ValueError(f"{run.run_id} has not failed")
    silent = replace(run.error, message="")
    transaction.execute("blank_run_texts", {"error_json": error_json(silent), "accepted_no": run.accepted_no})
    terminal = transaction.one("select_terminal_event", (run.accepted_no, run.last_seq))
    if terminal is None:
        return
    phase = LifecyclePhase.END if run.state in (RunState.SUCCEEDED, RunState.CANCELLED) else LifecyclePhase.ERROR
    payload = Lifecycle(
        phase,
        run.state.value,
        cancelled=run.state is RunState.CANCELLED,
        stop_reason=run.stop_reason,
        error=silent,
        started_at=run.started_at,
        ended_at=run.ended_at,
        usage=run.usage,
        attempt=run.attempt,
    )
    codec = transaction.codec
    encoded = codec.encode(
        payload,
        run_id=run.run_id,
        seq=run.last_seq,
        time=run.ended_at,
        session_key=run.session_key,
        agent_id=run.request.agent_id,
    )
    encoded = codec.with_cursor(encoded, store_id=transaction.store_id, position=terminal["position"])
    transaction.execute("replace_encoded", (encoded, terminal["position"]))
    change_bytes = len(encoded) - terminal["size_bytes"]
    transaction.execute("resize_run_events", (change_bytes, run.accepted_no))
    transaction.event_bytes += change_bytes
