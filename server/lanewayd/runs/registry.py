"""Accept, look up, wait, abort: every change of a run's row that a caller asks for goes through here.

The registry hears of each commit: it puts an accepted run into the lanes before the caller learns of it (D-1), and
wakes those who wait. What a message means is acceptance.py's.
"""

import asyncio
import logging
from collections.abc import Sequence

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import Run, RunState
from lanewayd.runs.acceptance import Acceptance, AgentCatalog
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.interface import AbortReceipt, NewMessage, WaitOutcome, WaitResult
from lanewayd.runs.outcome import StopCause
from lanewayd.runs.room import AcceptLimits
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.watches import Watch
from lanewayd.sessions.keys import canonical_key, normal_agent_id
from lanewayd.sessions.reset import NO_RESETS, ResetRules
from lanewayd.store.interface import (
    AbortRequested,
    Accepted,
    Appended,
    AppendToRun,
    Injected,
    RequestAbort,
    RunFilter,
    Started,
)

logger = logging.getLogger(__name__)

ABORT_ANSWER_S = 5.0
"""`Abort` waits at most this long for terminal events (D-20)."""


class RunRegistry:
    """The run service of one process."""

    def __init__(
        self,
        collaborators: Collaborators,
        *,
        scheduler: Scheduler,
        agents: AgentCatalog,
        limits: AcceptLimits,
        queue: QueueDefaults,
        resets: ResetRules = NO_RESETS,
    ) -> None:
        self._store = collaborators.store
        self._clock = collaborators.clock
        self._watches = collaborators.watches
        self._metrics = collaborators.telemetry.metrics
        self._scheduler = scheduler
        self._acceptance = Acceptance(
            collaborators, scheduler=scheduler, agents=agents, limits=limits, queue=queue, resets=resets
        )

    @property
    def entering(self) -> int:
        """Messages on their way into the store."""
        return self._acceptance.entering

    # --- calls -------------------------------------------------------------------------------------------------------

    async def accept(self, message: NewMessage) -> Accepted:
        """Make the message durable; returns when it is. Cancelling the caller changes nothing any more.

        Raises AGENT_NOT_FOUND, SESSION_KEY_MALFORMED, FIELD_INVALID, MODEL_UNKNOWN, MODEL_NOT_CONFIGURED,
        IDEMPOTENCY_KEY_REUSED, SESSION_NOT_FOUND, RUN_NOT_FOUND, NESTED_IN_SESSION, SESSION_ARCHIVED, QUEUE_FULL,
        TENANT_LIMIT, DRAINING, STORE_UNAVAILABLE.
        """
        return await self._acceptance.accept(message)

    def owner_of(self, key: str) -> str:
        """The agent of a canonical key that a session may have. Raises SESSION_KEY_MALFORMED, AGENT_NOT_FOUND."""
        return self._acceptance.owner_of(key)

    async def run(self, tenant: str, run_id: str) -> Run:
        """The run as it is. Raises RUN_NOT_FOUND."""
        run = await self._store.run(tenant, run_id)
        if run is None:
            raise LanewayError(
                ErrorCode.RUN_NOT_FOUND,
                "there is no such run, or it is older than the retention",
                metadata={"run_id": run_id},
            )
        return run

    async def runs(  # noqa: PLR0913 - the filters of one list
        self,
        tenant: str,
        *,
        session_key: str = "",
        states: tuple[RunState, ...] = (),
        agent_id: str = "",
        label: str = "",
        before_no: int | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Newest first, those below `before_no` in acceptance order; empty parts do not filter."""
        key = canonical_key(session_key) if session_key else ""
        which = RunFilter(key, states, normal_agent_id(agent_id) if agent_id else "", label)
        return await self._store.runs(tenant, which, before_no=before_no, limit=limit)

    async def wait(self, tenant: str, run_id: str, timeout_s: float) -> WaitResult:
        """The run when it has ended, or as it is after `timeout_s` or when the server leaves. Raises RUN_NOT_FOUND."""
        watch = self._watches.find(run_id)
        if watch is None or watch.tenant != tenant:
            run = await self.run(tenant, run_id)
            if not run.state.is_ended:
                # Not given up with its caller: others may have found the watch meanwhile.
                run, watch = await asyncio.shield(self._watched(run))
            if watch is None or run.state.is_ended:
                return WaitResult(WaitOutcome.ENDED, run)
        await self._watches.until_ended(watch, timeout_s)
        run = watch.ended or await self.run(tenant, run_id)
        if run.state.is_ended:
            return WaitResult(WaitOutcome.ENDED, run)
        outcome = WaitOutcome.DRAINING if self._watches.is_leaving else WaitOutcome.EXPIRED
        return WaitResult(outcome, run, watch.pending_error, watch.is_stalled)

    async def abort_run(self, tenant: str, run_id: str, *, stop_reason: str, reason: str) -> AbortReceipt:
        """Abort one run (D-20). Raises RUN_NOT_FOUND; an ended run is an empty receipt."""
        return await self._abort(
            RequestAbort(tenant, self._clock.now(), stop_reason=stop_reason, reason=reason, run_id=run_id)
        )

    async def abort_session(
        self, tenant: str, session_key: str, *, clear_queued: bool, stop_reason: str, reason: str
    ) -> AbortReceipt:
        """Abort a session's running run and, with `clear_queued`, before it the queued ones.

        Raises SESSION_NOT_FOUND.
        """
        key = canonical_key(session_key)
        if await self._store.session(tenant, key) is None:
            raise LanewayError(ErrorCode.SESSION_NOT_FOUND, f"there is no session {key}")
        return await self._abort(
            RequestAbort(
                tenant,
                self._clock.now(),
                stop_reason=stop_reason,
                reason=reason,
                session_key=key,
                clear_queued=clear_queued,
            )
        )

    # --- what the drain says -----------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """From now on `accept` answers DRAINING."""
        self._acceptance.refuse()

    # --- what the store says (part of writer_interface.CommitListener) ------------------------------------------------

    def committed(self, command: object, result: object) -> None:
        """A command is durable: lanes and waiters learn of it."""
        if isinstance(result, Accepted):
            self._accepted(result)
        elif isinstance(result, Started):
            self._started(result)
        elif isinstance(result, Appended):
            if result.run is not None:
                for run in (*result.settled, result.run):
                    self._ended(run)
                for run in result.detached:
                    self._scheduler.enqueue_detached(run)
            elif isinstance(command, AppendToRun) and any(change.got_on for change in command.changes):
                self._scheduler.got_on(command.run_id)
        elif isinstance(result, Injected):
            self._merged(result.merged)
        elif isinstance(result, AbortRequested) and isinstance(command, RequestAbort):
            self._abort_requested(result, command.stop_reason)

    def _abort_requested(self, result: AbortRequested, stop_reason: str) -> None:
        self._ended_in_queue(result.cancelled)
        for run_id in result.running:
            self._scheduler.stop(run_id, StopCause.ABORT, stop_reason)

    def _accepted(self, result: Accepted) -> None:
        if result.stopped is not None:
            self._abort_requested(result.stopped, "stop_word")
        if result.run is None:
            return
        logger.info("run accepted", extra=_fields(result.run))
        self._metrics.run_accepted(result.run.request.lane, result.run.request.priority.name.lower())
        self._watches.open(result.run)
        if result.run.host_run_id:
            self._scheduler.attach(result.run)
        else:
            self._scheduler.enqueue(result.run)
        if result.interrupted_run_id:
            self._scheduler.stop(result.interrupted_run_id, StopCause.ABORT, "interrupt")
        self._ended_in_queue(result.dropped)

    def _started(self, result: Started) -> None:
        logger.info("run started", extra={**_fields(result.run), "attempt": result.run.attempt})
        if result.run.attempt > 1:
            self._metrics.run_recovered()
        self._merged(result.merged)

    def _merged(self, runs: Sequence[Run]) -> None:
        for run in runs:
            logger.info("run merged", extra={**_fields(run), "host_run_id": run.host_run_id})
            self._scheduler.cancel_queued(run)

    def _ended_in_queue(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self._scheduler.cancel_queued(run)
            self._ended(run)

    def _ended(self, run: Run) -> None:
        reason = run.error.reason if run.error is not None else ""
        logger.info("run ended", extra={**_fields(run), "stop_reason": run.stop_reason, "reason": reason})
        self._metrics.run_ended(run.state.value, reason or run.stop_reason)
        self._scheduler.ended(run.run_id)
        self._watches.close(run)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _watched(self, run: Run) -> tuple[Run, Watch]:
        """A run that was read before the commit of its acceptance was heard, or just before its end: with its watch."""
        watch = self._watches.open(run)
        try:
            # Read again: an end that is not in it comes later than the watch.
            run = await self.run(run.tenant, run.run_id)
        except LanewayError:
            self._watches.drop(run.run_id)
            raise
        if run.state.is_ended:
            self._watches.close(run)
        return run, watch

    async def _abort(self, command: RequestAbort) -> AbortReceipt:
        requested = await self._store.request_abort(command)
        deadline = self._clock.monotonic() + ABORT_ANSWER_S
        aborted, pending = [], []
        for run_id in requested.running:
            watch = self._watches.find(run_id)
            if watch is not None:
                await self._watches.until_ended(watch, deadline - self._clock.monotonic())
            run = await self._store.run(command.tenant, run_id)
            if run is not None and not run.state.is_ended:
                pending.append(run_id)
            elif run is not None and run.state is RunState.CANCELLED:
                aborted.append(run_id)
        cancelled = tuple(run.run_id for run in requested.cancelled)
        return AbortReceipt(tuple(aborted), cancelled, tuple(pending))


def _fields(run: Run) -> dict[str, str]:
    return {"run_id": run.run_id, "session_key": run.session_key, "state": run.state.value}
