"""Writes the end of a run that nobody executes: in recovery, and where a dispatch could not be made (D-2).

The claim is raised, so who still believes to execute the run can write nothing more.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lanewayd.errors import RunNotStartable
from lanewayd.events import Lifecycle, LifecyclePhase, NewEvent
from lanewayd.records import EntryKind, NewEntry, Run, RunState, ToolCallRow
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.open_calls import OpenCalls
from lanewayd.runs.outcome import Outcome, aborted, end_of, terminal_of
from lanewayd.runs.spending import usage_before
from lanewayd.store.interface import RunChange, SettleRun
from lanewayd.transcript.context import Standing, standing_of
from lanewayd.transcript.entries import tool_result_body

logger = logging.getLogger(__name__)


class Settling:
    """Ends runs from what the store knows of them."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._store = collaborators.store
        self._clock = collaborators.clock
        self._ids = collaborators.ids
        self._locks = collaborators.locks
        self._sanitiser = collaborators.sanitiser

    async def settle_aborted(self, run: Run) -> None:
        """End a RUNNING run whose abort was asked for; leave any other as it is. Raises StoreUnavailable."""
        row = await self._store.run(run.tenant, run.run_id)
        if row is not None and not row.state.is_ended and row.abort_requested_at is not None:
            await self.settle(row, aborted(row.abort_stop_reason))

    async def settle(self, run: Run, outcome: Outcome, standing: Standing | None = None) -> None:
        """End `run`: what it said last and used, a result for each call that has none, the terminal event.

        Raises StoreUnavailable, SESSION_BUSY.
        """
        held = await self._locks.acquire(run.tenant, run.session_key, run_id=run.run_id)
        try:
            if standing is None:
                standing = standing_of(await self._store.context(run.session_id), run.run_id)
            rows = await self._store.tool_calls(run.run_id) if standing.unsettled else []
            open_rows = [row for row in rows if row.entry_id == standing.unsettled_entry_id]
            await self._store.settle(SettleRun(run.run_id, self._closing(run, outcome, standing, open_rows)))
        except RunNotStartable:
            logger.info("run had ended", extra={"run_id": run.run_id})
        finally:
            await self._locks.release(held)

    def _closing(self, run: Run, outcome: Outcome, standing: Standing, rows: Sequence[ToolCallRow]) -> RunChange:
        now = self._clock.now()
        last_text = standing.last_message.text if standing.last_message is not None else ""
        usage = usage_before(standing.usage, run.void_usage, was_cut=bool(run.open_message_id))
        outcome = replace(outcome, text=outcome.text or last_text, usage=usage)
        calls = OpenCalls(self._sanitiser)
        changes = [calls.finish(call, result, duration_s=None) for call, result in calls.take_over(rows)]
        changes.append(calls.stop())
        bodies = [tool_result_body(result) for result in calls.results]
        return RunChange(
            events=(
                *_voided(run, now),
                *(NewEvent(now, event) for change in changes for event in change.events),
                NewEvent(now, terminal_of(outcome, run, now)),
            ),
            entries=tuple(NewEntry(self._ids.entry(), now, EntryKind.TOOL_RESULT, body) for body in bodies),
            tool_calls=tuple(row for change in changes for row in change.rows),
            open_message_id="",
            end=end_of(outcome, now),
        )


def _voided(run: Run, now: datetime) -> list[NewEvent]:
    """What was shown of a message that nobody can end any more is void, as after any crash (D-3)."""
    if not run.open_message_id:
        return []
    recovered = Lifecycle(
        LifecyclePhase.RECOVERED, RunState.RUNNING.value, attempt=run.attempt, void_message_id=run.open_message_id
    )
    return [NewEvent(now, recovered)]
