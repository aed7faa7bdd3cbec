"""Putting unused sessions away and removing them: each command looks again whether it still may."""

from lanewayd.store.commands.sessions import delete_session, drop_past_transcript
from lanewayd.store.interface import ArchiveSurplus, DeleteSession, DropPastTranscript, DropSession, Unused
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Transaction


def drop_session(transaction: Transaction, command: DropSession) -> tuple[str, ...] | None:
    """See the command."""
    session = command.session
    found = transaction.one("select_unused", unused_parameters(command.unused, session_key=session.session_key))
    if found is None or found["session_id"] != session.session_id:
        return None
    return delete_session(transaction, DeleteSession(session.tenant, session.session_key))


def drop_past(transaction: Transaction, command: DropPastTranscript) -> tuple[str, ...] | None:
    """See the command."""
    if transaction.one("select_past_transcript", (command.session_id,)) is None:
        return None
    return tuple(drop_past_transcript(transaction, command.session_id))


def archive_surplus(transaction: Transaction, command: ArchiveSurplus) -> int:
    """See the command."""
    surplus = transaction.one("count_ordinary", (command.tenant,))[0] - command.max_sessions
    if surplus <= 0:
        return 0
    return transaction.execute(
        "archive_unused",
        {
            "tenant": command.tenant,
            "quiet_since": to_us(command.quiet_since),
            "spares_external": command.spares_external,
            "limit": min(surplus, command.limit),
        },
    )


def unused_parameters(unused: Unused, *, session_key: str = "", limit: int = 1) -> dict[str, object]:
    """For `select_unused`; empty `session_key` = all."""
    return {
        "since": to_us(unused.since),
        "spares_external": unused.spares_external,
        "kind": unused.kind.value,
        "tenant": unused.tenant,
        "session_key": session_key,
        "limit": limit,
    }
