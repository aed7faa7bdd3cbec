"""Retention: what is old or too much goes, in bounded steps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from lanewayd.store.commands.attachments import drop_attachments
from lanewayd.store.commands.event_log import cut_events
from lanewayd.store.interface import Prune, Pruned
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Row, Transaction

_RUNS_MIN_AGE = timedelta(hours=24)
"""As long as an idempotency key may name a run, its row is there."""


@dataclass(slots=True)
class _Step:
    """What a step may still remove, and what it has removed."""

    transaction: Transaction
    left: int
    events: int = 0
    runs: int = 0
    keys: int = 0
    run_ids: dict[str, None] = field(default_factory=dict)
    blobs: list[str] = field(default_factory=list)

    def cut(self, run: Row, up_to_seq: int) -> bool:
        """Remove events up to `up_to_seq` as far as the step allows; whether all of them are gone."""
        allowed = min(up_to_seq, run["first_seq"] + self.left - 1)
        if allowed >= run["first_seq"]:
            removed = cut_events(self.transaction, run, allowed)
            self.events += removed
            self.left -= removed
            self.run_ids[run["run_id"]] = None
        return bool(allowed >= up_to_seq)


def prune(transaction: Transaction, command: Prune) -> Pruned:
    """One step. It is done when every rule has found all it looks for."""
    step = _Step(transaction, left=command.max_rows)
    rules: tuple[Callable[[_Step, Prune], None], ...] = (
        _drop_keys,
        _drop_runs,
        _cut_old_logs,
        _cut_long_logs,
        _cut_to_size,
    )
    for rule in rules:
        if step.left > 0:
            rule(step, command)
    return Pruned(step.events, step.runs, step.keys, step.left > 0, tuple(step.run_ids), tuple(step.blobs))


def _drop_keys(step: _Step, command: Prune) -> None:
    step.keys = step.transaction.execute("delete_expired_keys", (to_us(command.now), step.left))
    step.left -= step.keys


def _drop_runs(step: _Step, command: Prune) -> None:
    transaction = step.transaction
    before = to_us(command.now - max(command.runs_max_age, _RUNS_MIN_AGE))
    for run in transaction.all("select_expired_runs", (before, step.left)):
        if step.left <= 0 or not step.cut(run, run["last_seq"]) or step.left <= 0:
            return
        transaction.execute("delete_tool_calls", (run["run_id"],))
        step.blobs += drop_attachments(transaction, run["run_id"])
        transaction.execute("delete_run_texts", (run["accepted_no"],))
        transaction.execute("delete_run", (run["accepted_no"],))
        step.runs += 1
        step.left -= 1
        step.run_ids[run["run_id"]] = None


def _cut_old_logs(step: _Step, command: Prune) -> None:
    before = to_us(command.now - command.events_max_age)
    for run in step.transaction.all("select_runs_with_old_events", (before, step.left)):
        if step.left <= 0 or not step.cut(run, run["last_seq"]):
            return


def _cut_long_logs(step: _Step, command: Prune) -> None:
    """Of each run the newest events stay: at least one, so never without the terminal event."""
    kept = max(1, command.max_events_per_run)
    for query in ("select_ended_with_many_events", "select_unended_with_many_events"):
        for run in step.transaction.all(query, (kept, max(1, step.left))):
            if step.left <= 0 or not step.cut(run, run["last_seq"] - kept):
                return


def _cut_to_size(step: _Step, command: Prune) -> None:
    while step.transaction.event_bytes > command.events_max_bytes and step.left > 0:
        run, removed_before = step.transaction.one("select_oldest_with_events"), step.events
        if run is None or not step.cut(run, run["last_seq"]) or step.events == removed_before:
            return
