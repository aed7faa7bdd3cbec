"""One dispatch of a run from its start to its end, supervised.

The supervisor starts the run in the store, lets the execution work in a task of its own, and writes the end whatever
became of that task: an answer, an error, a crash, an abort, a deadline, a drain. It returns when the task is gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from lanewayd.clock import TimerHandle
from lanewayd.errors import ClaimLost, CollectionChanged, RunNotStartable, StoreUnavailable
from lanewayd.events import Diagnostic
from lanewayd.loop.interface import Parked
from lanewayd.loop.limits import remaining_budget_s
from lanewayd.messages import ToolCall, UserMessage
from lanewayd.records import Run, RunState
from lanewayd.runs.activity import Activity
from lanewayd.runs.backoff import Backoff
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.execution import Execution
from lanewayd.runs.outcome import Outcome, StopCause, aborted, deadline_passed, failed_inside, stalled
from lanewayd.runs.recorder import RunRecorder
from lanewayd.runs.runlog import RunLog
from lanewayd.runs.settling import Settling
from lanewayd.runs.starting import Opening, opening_of, opening_of_recovered
from lanewayd.runs.steering import Steering
from lanewayd.store.interface import Started, StartRun
from lanewayd.telemetry.traces import RunFacts, RunTrace

logger = logging.getLogger(__name__)

Work = asyncio.Task[Outcome | Parked | None]


class Supervision:
    """Supervises one dispatch. Owner of the run's task and of the reason it was stopped for."""

    def __init__(
        self,
        run: Run,
        collaborators: Collaborators,
        *,
        settling: Settling,
        is_recovered: bool,
        on_slot_free: Callable[[str], None],
        on_left_behind: Callable[[Work], None] = lambda _: None,
    ) -> None:
        """`on_slot_free`: the run has ended, but its task still unwinds: its place in the lane can be used.
        `on_left_behind`: the run was given up, and this is what is left of it; it can write nothing any more."""
        self._run = run
        self._with = collaborators
        self._settling = settling
        self._is_recovered = is_recovered
        self._on_slot_free = on_slot_free
        self._on_left_behind = on_left_behind
        self._trace: RunTrace
        self._cause: StopCause | None = None
        self._stop_reason = ""
        self._said: UserMessage | None = None
        self.steering = Steering(collaborators)
        """Messages that wait to go into the run; the scheduler puts them there."""
        self.activity: Activity | None = None
        """What the run is up to; None until it has been started."""
        self._recorder: RunRecorder
        self._execution: Execution
        self._log: RunLog
        self._work: Work | None = None
        self._unwind_limit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = asyncio.Event()
        self._given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timers: list[TimerHandle] = []

    def stop(self, cause: StopCause, stop_reason: str = "") -> None:
        """Stop the run; the first cause stands. Harmless when the work is done. `stop_reason`: of a stalled run, how
        long it was silent and in what."""
        if self._cause is not None:
            return
        self._cause, self._stop_reason = cause, stop_reason
        self._timers.append(self._with.clock.call_later(self._with.settings.unwind_limit_s, self._end_unwinding))
        if self._work is not None:
            self._work.cancel()

    def give_up(self) -> None:
        """Write the end now, and leave what does not let go behind: its session is free for the next run."""
        self._end_unwinding()
        if not self._given_up.done():
            self._given_up.set_result(None)

    async def gone(self) -> None:
        """Return when nothing of the run is at work any more and its end is written."""
        await self._left.wait()

    @property
    def is_behind(self) -> bool:
        """What it has written is not stored yet."""
        return self.activity is not None and self._log.is_behind

    def tool_limit_s(self, call: ToolCall) -> float:
        """After so long the tool ends the call by itself; 0 = it does not."""
        return self._execution.tool_limit_s(call)

    def tell(self, diagnostic: Diagnostic) -> None:
        """A line about the run, into its log; nothing when that has ended."""
        if self.activity is not None:
            self._recorder.tell(diagnostic)

    async def supervise(self) -> None:
        """Return when the run has ended or was handed over, and nothing of it is left at work."""
        try:
            started = await self._start()
            if started is not None:
                with self._with.telemetry.run(_facts_of(started.run)) as trace:
                    await self._supervise_started(started, trace)
        finally:
            self._left.set()

    async def _supervise_started(self, started: Started, trace: RunTrace) -> None:
        self._trace = trace
        run = started.run
        self._log = log = RunLog(run, store=self._with.store, clock=self._with.clock)
        activity = Activity(self._with.clock)
        self._recorder = recorder = RunRecorder(started, log, self._with, activity=activity)
        self.steering.write_to(recorder)
        execution = Execution(started, recorder, self._with, trace, said=self._said, steering=self.steering)
        self._execution, self.activity = execution, activity
        async with asyncio.TaskGroup() as group:
            group.create_task(log.pump(), name=f"log {run.run_id}")
            try:
                await self._work_to_end(run, execution, recorder, log)
            finally:
                log.close()
                await execution.close()

    async def _work_to_end(self, run: Run, execution: Execution, recorder: RunRecorder, log: RunLog) -> None:
        self._arm_deadline(run)
        work = self._begin(execution.work)
        try:
            while not await self._ends(run, execution, recorder, log, work):
                work = self._begin(execution.go_on)
        except ClaimLost:
            logger.warning("run overtaken, its end is not ours to write", extra={"run_id": run.run_id})
        finally:
            for timer in self._timers:
                timer.cancel()
            await self._until_gone(run)

    async def _until_gone(self, run: Run) -> None:
        """Return when nothing of the run is at work, or it was given up."""
        work = self._work
        if work is None or work.done():
            return
        if not work.cancelling():
            work.cancel()  # the supervisor itself was stopped, or another process has the run
        logger.error("run ended, but a tool does not let go", extra={"run_id": run.run_id})
        self._on_slot_free(run.run_id)
        futures: list[asyncio.Future[Any]] = [work, self._given_up]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            logger.error("what is left of a run was given up", extra={"run_id": run.run_id})
            self._on_left_behind(work)

    def _begin(self, work: Callable[[], Awaitable[Outcome]]) -> "Work":
        """A task for a part of the run's work; cancelled at once when the run has been stopped meanwhile. No group owns
        it: it may have to be left behind."""
        task = self._work = asyncio.create_task(_contained(work, self._run.run_id), name=f"run {self._run.run_id}")
        if self._cause is not None:
            task.cancel()
        return task

    async def _ends(self, run: Run, execution: Execution, recorder: RunRecorder, log: RunLog, work: "Work") -> bool:
        """Wait for the work and write down what became of it; False when messages that came last keep the run going."""
        await self._gone_or_unwinding(work)
        if self._is_handed_over(work):
            recorder.hand_over(is_cut=not isinstance(_result_of(work), Parked))
            self._trace.handed_over()
            await log.stored()
            return True
        await execution.catch_up()
        outcome = self._outcome(run, work)
        recorder.close(outcome)
        if not await log.ended():
            recorder.reopen()
            return False
        self._trace.ended(
            state=outcome.state.value,
            stop_reason=outcome.stop_reason,
            used_s=recorder.used_s,
            error_type=outcome.error.reason if outcome.error is not None else "",
            tokens=recorder.usage,
        )
        return True

    def _is_handed_over(self, work: "Work") -> bool:
        """The run does not end here: another process goes on with it."""
        result = _result_of(work)
        return isinstance(result, Parked) or (result is None and self._cause is StopCause.DRAIN)

    def _outcome(self, run: Run, work: "Work") -> Outcome:
        """The end of a run that is not handed over."""
        result = _result_of(work)
        if isinstance(result, Outcome):
            return result
        if self._cause is StopCause.ABORT:
            return aborted(self._stop_reason)
        if self._cause is StopCause.DEADLINE:
            return deadline_passed(run.request.timeout_s)
        if self._cause is StopCause.STALLED:
            return stalled(self._stop_reason)
        return failed_inside()

    async def _gone_or_unwinding(self, work: "Work") -> None:
        """Return when the task is gone, or was stopped and has not let go within the limit."""
        futures: list[asyncio.Future[Any]] = [work, self._unwind_limit]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)

    def _end_unwinding(self) -> None:
        if not self._unwind_limit.done():
            self._unwind_limit.set_result(None)

    def _arm_deadline(self, run: Run) -> None:
        remaining_s = remaining_budget_s(run.request.timeout_s, run.used_s)
        if remaining_s is not None:
            self._timers.append(self._with.clock.call_later(remaining_s, lambda: self.stop(StopCause.DEADLINE)))

    async def _start(self) -> Started | None:
        """The run as started; None when it was cancelled or ended before, or the server leaves first."""
        opening, was_tried = None, False
        backoff = Backoff(self._with.clock)
        while self._cause is not StopCause.DRAIN:
            try:
                opening = opening or await self._opening()
                self._said = opening.said
                return await self._try_to_start(opening.command, was_tried=was_tried)
            except CollectionChanged:
                opening = None
            except StoreUnavailable:
                was_tried = True
                await backoff.wait()
        return None

    async def _opening(self) -> Opening:
        if self._is_recovered:
            return opening_of_recovered(self._run, self._with)
        return await opening_of(self._run, self._with)

    async def _try_to_start(self, command: StartRun, *, was_tried: bool) -> Started | None:
        store, run = self._with.store, self._run
        try:
            return await store.start(command)
        except RunNotStartable:
            row = await store.run(run.tenant, run.run_id) if was_tried else None
            if row is not None and row.state is RunState.RUNNING and row.claim == run.claim + 1:
                return Started(row, ())  # an earlier try was stored, only its answer said otherwise
            if self._is_recovered:
                await self._settling.settle_aborted(run)
            return None


def _facts_of(run: Run) -> RunFacts:
    request, waited_s = run.request, None
    if run.attempt == 1 and run.started_at is not None:
        waited_s = max(0.0, (run.started_at - run.accepted_at).total_seconds())
    return RunFacts(
        run_id=run.run_id,
        agent=request.agent_id,
        conversation_id=run.session_id,
        model=request.model,
        traceparent=request.traceparent,
        attempt=run.attempt,
        waited_s=waited_s,
    )


def _result_of(work: "Work") -> Outcome | Parked | None:
    return work.result() if work.done() and not work.cancelled() else None


async def _contained(work: Callable[[], Awaitable[Outcome]], run_id: str) -> Outcome | Parked | None:
    """The work's outcome; None for a fault of ours, which is logged here. Cancellation passes through."""
    try:
        return await work()
    except Parked as parked:
        return parked
    except ClaimLost:
        return None
    except Exception:  # the edge of the run: a fault of ours ends this run only
        logger.exception("run failed inside", extra={"run_id": run_id})
        return None
