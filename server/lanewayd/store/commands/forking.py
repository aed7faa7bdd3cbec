"""Forking a session: a new one with copies of the entries up to one of them.

The new session is made in the transaction that fills it, so nobody writes to it meanwhile; entries of the other one
never change, so its runs need not be looked at.
"""

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.records import EntryKind
from lanewayd.store.interface import Forked, ForkSession
from lanewayd.store.run_rows import to_json
from lanewayd.store.session_rows import session_from_row
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Row, Transaction


def fork_session(transaction: Transaction, command: ForkSession) -> Forked:
    """See the command."""
    new_names = (command.tenant, command.new_session_key)
    existing = transaction.one("select_session", new_names)
    if existing is not None:
        _check_same_fork(existing, command)
        return Forked(session_from_row(existing), entries=0, is_duplicate=True)
    source = transaction.one("select_session", (command.tenant, command.session_key))
    if source is None:
        raise LanewayError(ErrorCode.SESSION_NOT_FOUND, f"there is no session {command.session_key}")
    entry_id = command.entry_id or source["leaf_entry_id"]
    _check_entry(transaction, command, entry_id)
    transaction.execute(
        "insert_session",
        {
            "tenant": command.tenant,
            "session_key": command.new_session_key,
            "session_id": command.new_session_id,
            "agent_id": source["agent_id"],
            "label": command.label,
            "created_at": to_us(command.now),
            "now": to_us(command.now),
            "channel": "",
        },
    )
    leaf_entry_id, copied = _copy(transaction, command, entry_id)
    fork = {
        "parent": command.session_key,
        "entry": entry_id,
        "leaf": leaf_entry_id,
        "settings": source["settings_json"],
    }
    transaction.execute("mark_fork", {**fork, "tenant": command.tenant, "session_key": command.new_session_key})
    return Forked(session_from_row(transaction.one("select_session", new_names)), copied, is_duplicate=False)


def _check_same_fork(existing: Row, command: ForkSession) -> None:
    is_same = existing["parent_session_key"] == command.session_key and (
        not command.entry_id or existing["forked_at_entry_id"] == command.entry_id
    )
    if not is_same:
        raise FieldError(
            ErrorCode.FIELD_INVALID,
            "new_session_key",
            f"there is a session {command.new_session_key}, which is not this fork; use another key",
        )


def _check_entry(transaction: Transaction, command: ForkSession, entry_id: str) -> None:
    """It is one of the session's, and what leads to it is not too much."""
    if not entry_id:
        return
    if transaction.one("select_entry", (command.tenant, command.session_key, entry_id)) is None:
        raise LanewayError(ErrorCode.ENTRY_NOT_FOUND, "the session has no such entry", metadata={"field": "entry_id"})
    names = {"entry_id": entry_id, "max_entries": command.max_entries}
    path = transaction.one("measure_path", names)
    if path["entries"] > command.max_entries or path["size_bytes"] > command.max_bytes:
        raise FieldError(
            ErrorCode.FIELD_INVALID,
            "entry_id",
            f"more than {command.max_entries:,} entries or {command.max_bytes:,} bytes lead to this entry; fork at an"
            " earlier one",
        )


def _copy(transaction: Transaction, command: ForkSession, entry_id: str) -> tuple[str, int]:
    """Copy the way to `entry_id`, and name the files that it names; the last copy and how many there are."""
    rows, parent_entry_id = [], ""
    blobs: dict[str, None] = {}
    for entry in transaction.all("select_path", (entry_id,)):
        copy_id = command.new_entry_id()
        times_and_body = (entry["written_at"], entry["kind"], entry["body_json"])
        rows.append((copy_id, parent_entry_id, command.new_session_id, entry["run_id"], *times_and_body))
        blobs.update(dict.fromkeys(command.blobs_named_by(EntryKind(entry["kind"]), entry["body_json"])))
        parent_entry_id = copy_id
    transaction.execute_many("insert_entry", rows)
    # An imported transcript may name any file: only those that the tenant has sent are its own.
    names = {"tenant": command.tenant, "hashes": to_json(list(blobs))}
    owned = [row["value"] for row in transaction.all("select_hashes_of_tenant", names)]
    transaction.execute_many("insert_session_blob", [(command.new_session_id, blob_hash) for blob_hash in owned])
    return parent_entry_id, len(rows)
