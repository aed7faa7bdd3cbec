"""What becomes of the runs an earlier process left behind (D-2). The decision is pure; the shell applies it.

Runs before the service takes calls, after left-over processes have ended: nobody else writes.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from lanewayd.errors import RunNotStartable
from lanewayd.events import NewEvent
from lanewayd.messages import ToolOutcome
from lanewayd.records import EntryKind, NewEntry, Run, RunState, ToolCallRow, ToolCallState
from lanewayd.runs.call_rows import UNKNOWN_TEXT, finished_row, known_result, result_event, stopped_result
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.outcome import Outcome, aborted, end_of, finished, recovery_exhausted, terminal_of
from lanewayd.runs.scheduler import Scheduler
from lanewayd.store.interface import RunChange, SettleRun
from lanewayd.transcript.context import Standing, standing_of
from lanewayd.transcript.entries import tool_result_body

logger = logging.getLogger(__name__)


class RecoveryStep(StrEnum):
    """What to do with one unended run."""

    WAIT = "wait"
    """It was queued: it waits again."""
    CANCEL = "cancel"
    """Its abort was asked for."""
    SETTLE = "settle"
    """Its final answer is stored: only the end is missing."""
    GIVE_UP = "give up"
    """It was charged too often."""
    RESUME = "resume"
    """It goes on, first in its session."""


def recovery_step(run: Run, standing: Standing | None, max_attempts: int) -> RecoveryStep:
    """The step for `run`; `standing` is None for a queued one."""
    if run.state is RunState.QUEUED or standing is None:
        return RecoveryStep.WAIT
    if run.abort_requested_at is not None:
        return RecoveryStep.CANCEL
    if standing.final is not None:
        return RecoveryStep.SETTLE
    if run.charges >= max_attempts and not run.handed_over:
        return RecoveryStep.GIVE_UP
    return RecoveryStep.RESUME


class Recovery:
    """Puts every unended run in its place."""

    def __init__(self, collaborators: Collaborators, *, scheduler: Scheduler, max_attempts: int) -> None:
        """`max_attempts`: charges after which a run is given up."""
        self._store = collaborators.store
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._locks = collaborators.locks
        self._watches = collaborators.watches
        self._scheduler = scheduler
        self._max_attempts = max_attempts

    async def recover(self) -> int:
        """Classify all unended runs; return how many were interrupted. Raises StoreUnavailable."""
        interrupted = 0
        for run in await self._store.unended_runs():
            self._watches.open(run.run_id)
            if run.state is RunState.QUEUED:
                self._scheduler.enqueue(run)
                continue
            interrupted += 1
            standing = standing_of(await self._store.context(run.session_id), run.run_id)
            step = recovery_step(run, standing, self._max_attempts)
            logger.info("run recovered", extra={"run_id": run.run_id, "step": step.value, "charges": run.charges})
            if step is RecoveryStep.RESUME:
                self._scheduler.enqueue_recovered(run)
            else:
                await self._settle(run, self._outcome(run, standing, step), standing)
        return interrupted

    def _outcome(self, run: Run, standing: Standing, step: RecoveryStep) -> Outcome:
        if step is RecoveryStep.SETTLE and standing.final is not None:
            return finished(standing.final, standing.usage)
        if step is RecoveryStep.CANCEL:
            outcome = aborted(run.abort_stop_reason)
        else:
            outcome = recovery_exhausted(self._max_attempts)
        text = standing.last_message.text if standing.last_message is not None else ""
        return replace(outcome, text=text, usage=standing.usage)

    async def _settle(self, run: Run, outcome: Outcome, standing: Standing) -> None:
        """Write the end that nobody was left to write, with a result for each call that has none."""
        ended_at = self._clock.now()
        held = await self._locks.acquire(run.tenant, run.session_key, run_id=run.run_id)
        try:
            rows = await self._store.tool_calls(run.run_id) if standing.unsettled else []
            change = self._closing(run, [row for row in rows if row.entry_id == standing.unsettled_entry_id])
            events = (*change.events, NewEvent(ended_at, terminal_of(outcome, run, ended_at)))
            await self._store.settle(
                SettleRun(
                    run.run_id,
                    RunChange(
                        events=events,
                        entries=change.entries,
                        tool_calls=change.tool_calls,
                        open_message_id="",
                        end=end_of(outcome, ended_at),
                    ),
                )
            )
        except RunNotStartable:
            logger.info("run had ended", extra={"run_id": run.run_id})
        finally:
            await self._locks.release(held)

    def _closing(self, run: Run, rows: Sequence[ToolCallRow]) -> RunChange:
        now = self._clock.now()
        events, entries, changed = [], [], []
        for row in rows:
            if row.state is ToolCallState.FINISHED:
                result = known_result(row)
            else:
                result = stopped_result(row)
                if row.state is ToolCallState.LAUNCHED:
                    result = replace(result, text=UNKNOWN_TEXT, outcome=ToolOutcome.UNKNOWN)
                changed.append(finished_row(row, result))
                events.append(NewEvent(now, result_event(result, result.text, None)))
            entries.append(NewEntry(self._ids.entry(), now, EntryKind.TOOL_RESULT, tool_result_body(result)))
        return RunChange(events=tuple(events), entries=tuple(entries), tool_calls=tuple(changed))
