"""Which function carries out which command."""

from collections.abc import Callable, Mapping
from typing import Any

from lanewayd.store.audit_commands import AppendAudit, ProvideAuditKey, PruneAudit
from lanewayd.store.commands.abort import request_abort
from lanewayd.store.commands.accept import accept
from lanewayd.store.commands.attachments import find_unnamed_blobs
from lanewayd.store.commands.audit import append_audit, provide_audit_key, prune_audit
from lanewayd.store.commands.credentials import pin_credential, save_credential_health
from lanewayd.store.commands.forking import fork_session
from lanewayd.store.commands.retention import prune
from lanewayd.store.commands.run_log import append, inject, settle, start
from lanewayd.store.commands.session_upkeep import archive_surplus, drop_past, drop_session
from lanewayd.store.commands.sessions import delete_session, import_session, reset_session, update_session
from lanewayd.store.credential_commands import PinCredential, SaveCredentialHealth
from lanewayd.store.interface import (
    AcceptRun,
    AppendToRun,
    ArchiveSurplus,
    DeleteSession,
    DropPastTranscript,
    DropSession,
    FindUnnamedBlobs,
    ForkSession,
    ImportSession,
    InjectMessages,
    Prune,
    RequestAbort,
    ResetSession,
    SettleRun,
    StartRun,
    UpdateSession,
)
from lanewayd.store.transaction import Transaction

_COMMANDS: Mapping[type, Callable[[Transaction, Any], object]] = {
    AcceptRun: accept,
    StartRun: start,
    AppendToRun: append,
    InjectMessages: inject,
    SettleRun: settle,
    RequestAbort: request_abort,
    UpdateSession: update_session,
    ResetSession: reset_session,
    DeleteSession: delete_session,
    ImportSession: import_session,
    ForkSession: fork_session,
    DropSession: drop_session,
    DropPastTranscript: drop_past,
    ArchiveSurplus: archive_surplus,
    Prune: prune,
    FindUnnamedBlobs: find_unnamed_blobs,
    SaveCredentialHealth: save_credential_health,
    PinCredential: pin_credential,
    AppendAudit: append_audit,
    PruneAudit: prune_audit,
    ProvideAuditKey: provide_audit_key,
}


def apply(transaction: Transaction, command: object) -> object:
    """Carry out `command` in the open savepoint; its result. What it raises undoes it."""
    return _COMMANDS[type(command)](transaction, command)
