"""What becomes of the runs an earlier process left behind (D-2). The decision is pure; the shell applies it.

Runs before the service takes calls, after left-over processes have ended: nobody else writes.
"""

import logging
from enum import StrEnum

from lanewayd.records import Run, RunState
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.outcome import Outcome, aborted, finished, recovery_exhausted
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.settling import Settling
from lanewayd.transcript.context import Standing, standing_of

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

    def __init__(
        self, collaborators: Collaborators, *, scheduler: Scheduler, settling: Settling, max_attempts: int
    ) -> None:
        """`max_attempts`: charges after which a run is given up."""
        self._store = collaborators.store
        self._watches = collaborators.watches
        self._scheduler = scheduler
        self._settling = settling
        self._max_attempts = max_attempts

    async def recover(self) -> int:
        """Classify all unended runs; return how many were interrupted. Raises StoreUnavailable."""
        interrupted = 0
        attached: list[Run] = []
        resumed: set[str] = set()
        for run in await self._store.unended_runs():
            self._watches.open(run)
            if run.state is RunState.QUEUED and run.host_run_id:
                attached.append(run)
                continue
            if run.state is RunState.QUEUED:
                self._scheduler.enqueue(run)
                continue
            if run.state is RunState.MERGED:
                continue  # it ends with its host
            interrupted += 1
            standing = standing_of(await self._store.context(run.session_id), run.run_id)
            step = recovery_step(run, standing, self._max_attempts)
            logger.info("run recovered", extra={"run_id": run.run_id, "step": step.value, "charges": run.charges})
            if step is RecoveryStep.RESUME:
                self._scheduler.enqueue_recovered(run)
                resumed.add(run.run_id)
            else:
                await self._settling.settle(run, self._outcome(run, standing, step), standing)
        for run in attached:
            # The others have been queued again by the end of their host.
            if run.host_run_id in resumed:
                self._scheduler.attach(run)
        return interrupted

    def _outcome(self, run: Run, standing: Standing, step: RecoveryStep) -> Outcome:
        if step is RecoveryStep.SETTLE and standing.final is not None:
            return finished(standing.final, run.request)
        if step is RecoveryStep.CANCEL:
            return aborted(run.abort_stop_reason)
        return recovery_exhausted(self._max_attempts)
