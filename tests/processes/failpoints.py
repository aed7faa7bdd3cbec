"""Failpoints of a server process: what happens at a chosen COMMIT of its store, and how the test hears of it."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from lanewayd.records import EntryKind, ToolCallState
from lanewayd.store.interface import (
    AcceptRun,
    AppendToRun,
    InjectMessages,
    Prune,
    RequestAbort,
    RunChange,
    SettleRun,
    StartRun,
)

_KINDS = {
    AcceptRun: "accept",
    InjectMessages: "inject",
    RequestAbort: "abort",
    SettleRun: "settle",
    Prune: "prune",
}


def kinds_of(command: object) -> set[str]:
    """What a command does, in the words that failpoints use."""
    if isinstance(command, StartRun):
        return {"recover" if command.recovered else "start"}
    if isinstance(command, AppendToRun):
        return set().union(*(_kinds_of_change(change) for change in command.changes))
    return {_KINDS.get(type(command), type(command).__name__)}


def _kinds_of_change(change: RunChange) -> set[str]:
    kinds = {f"call {call.state.value}" for call in change.tool_calls}
    if change.end is not None:
        kinds.add("end")
    elif any(entry.kind is EntryKind.ASSISTANT for entry in change.entries) and not change.tool_calls:
        kinds.add("answer")
    if any(entry.kind is EntryKind.TOOL_RESULT for entry in change.entries):
        kinds.add("results")
    if change.handed_over:
        kinds.add("handed over")
    return kinds or {"events"}


KILL_KINDS = (
    "accept",
    "start",
    "recover",
    "events",
    f"call {ToolCallState.REQUESTED.value}",
    f"call {ToolCallState.LAUNCHED.value}",
    f"call {ToolCallState.FINISHED.value}",
    "results",
    "answer",
    "end",
)
"""Where a run can be interrupted."""


@dataclass(frozen=True, slots=True)
class Failpoint:
    """At the `nth` group that does `kind`: `before` or `after` its COMMIT, `kill` the process, `hold` the writer until
    a line comes on stdin, or `fail` (before) as a full disk does, once."""

    side: str
    kind: str
    nth: int = 1
    action: str = "kill"


class FailpointGate:
    """Implements CommitGate for one failpoint. A held writer is told on stdout: {"held": kind}."""

    def __init__(self, failpoint: Failpoint) -> None:
        self._failpoint = failpoint
        self._seen = 0

    def before_commit(self, commands: Sequence[object]) -> None:
        if any(self._failpoint.kind in kinds_of(command) for command in commands):
            self._seen += 1
            if self._failpoint.side == "before":
                self._act()

    def after_commit(self, commands: Sequence[object]) -> None:
        is_one = any(self._failpoint.kind in kinds_of(command) for command in commands)
        if is_one and self._failpoint.side == "after":
            self._act()

    def _act(self) -> None:
        if self._seen != self._failpoint.nth:
            return
        if self._failpoint.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        notice(held=self._failpoint.kind)
        if self._failpoint.action == "fail":
            self._seen += 1
            raise OSError(28, "No space left on device")
        sys.stdin.readline()


def notice(**fields: object) -> None:
    """Tell the test something: one JSON line on stdout, in one write."""
    os.write(1, json.dumps(fields).encode() + b"\n")
