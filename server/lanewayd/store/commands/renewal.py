"""What accepting a message does to a session that is there: refuse it, begin it anew under its key, or go on."""

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.store.interface import AcceptRun
from lanewayd.store.times import from_us, to_us
from lanewayd.store.transaction import Row, Transaction

ARCHIVED_BY_USER = 1
ARCHIVED_BY_RETENTION = 2
"""It comes back with the next message; see the migration."""


def session_to_write(transaction: Transaction, command: AcceptRun, session_key: str) -> str:
    """The id of the session that the message goes to: that of the key, or the command's new one, which the key then
    has. A session with a run that has not ended is not begun anew: its messages belong together.

    Raises SESSION_ARCHIVED.
    """
    session = (command.tenant, session_key)
    row = transaction.one("select_renewal", session)
    if row["archived"] == ARCHIVED_BY_USER:
        raise LanewayError(
            ErrorCode.SESSION_ARCHIVED,
            f"the session {session_key} is archived; take it out of the archive (UpdateSession), or use another key",
        )
    if not _is_stale(command, row) or transaction.all("select_unended_of_session", session):
        return str(row["session_id"])
    new = {
        "tenant": command.tenant,
        "session_key": session_key,
        "session_id": command.session.new_session_id,
        "now": to_us(command.now),
    }
    if row["leaf_entry_id"]:
        transaction.execute("keep_past_transcript", new)
    transaction.execute("renew_session", new)
    transaction.execute("delete_credential_pins", (row["session_id"],))
    return command.session.new_session_id


def _is_stale(command: AcceptRun, row: Row) -> bool:
    is_stale = command.is_stale
    return is_stale is not None and is_stale(from_us(row["started_at"]), from_us(row["last_interaction_at"]))
