"""Doing what a message of nothing but directives says."""

from typing import NamedTuple

from lanewayd.records import SessionPatch, SessionSettings
from lanewayd.store.commands.abort import request_abort
from lanewayd.store.commands.sessions import reset_session, update_session
from lanewayd.store.interface import (
    AbortRequested,
    AcceptRun,
    RequestAbort,
    ResetSession,
    TextCommand,
    UpdateSession,
)
from lanewayd.store.transaction import Transaction

_QUEUE_PATHS = {"mode": "queue_mode", "debounce_ms": "queue_debounce_ms", "cap": "queue_cap", "drop": "queue_drop"}


class Obeyed(NamedTuple):
    """What was done, and the answer that tells it."""

    reply: str
    stopped: AbortRequested


def obey(
    transaction: Transaction, accepting: AcceptRun, command: TextCommand, session_key: str, settings: SessionSettings
) -> Obeyed:
    """Do it to the session, which is there and has these settings; see the command."""
    tenant, now = accepting.tenant, accepting.now
    stopped = AbortRequested((), (), ())
    if command.stops:
        abort = RequestAbort(tenant, now, stop_reason="stop_word", session_key=session_key, clear_queued=True)
        stopped = request_abort(transaction, abort)
    if command.reset_entry is not None:
        reset_session(transaction, ResetSession(tenant, session_key, command.reset_entry))
    patch = _queue_patch(command)
    if patch.paths:
        settings = update_session(transaction, UpdateSession(tenant, session_key, patch, now)).settings
    rules = accepting.queue.chosen(settings.queue)
    return Obeyed(command.reply(rules, len(stopped.running), len(stopped.cancelled)), stopped)


def _queue_patch(command: TextCommand) -> SessionPatch:
    if command.clears_queue:
        return SessionPatch(frozenset(_QUEUE_PATHS.values()))
    said = {
        path: getattr(command.queue, name)
        for name, path in _QUEUE_PATHS.items()
        if getattr(command.queue, name, None) not in ("", None)
    }
    return SessionPatch(frozenset(said), SessionSettings(**said))
