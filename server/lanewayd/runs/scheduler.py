"""Starts the runs whose turn has come, and stops them. Owner of the TaskGroup in which every run is supervised, and of
the LaneBook that decides."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lanewayd.clock import TimerHandle
from lanewayd.errors import LanewayError
from lanewayd.records import Disposition, QueueMode, Run, RunState
from lanewayd.runs.attached import AttachedMessages
from lanewayd.runs.backoff import until_answered
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.lanes import LaneBook, Ticket
from lanewayd.runs.outcome import StopCause, failed_inside
from lanewayd.runs.quiet_times import QuietTimes
from lanewayd.runs.settling import Settling
from lanewayd.runs.supervision import Supervision

logger = logging.getLogger(__name__)

GATE_LIMIT_S = 30.0
"""A run with one charge holds the recovery gate no longer than this (D-2)."""
LONG_WAIT_S = 2.0
"""A run that waited for its turn at least so long is logged (R-2.14)."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A run that was started by the lanes, until it gives its place back."""

    number: int
    """Another one for each dispatch of this process."""
    began_s: float


class Scheduler:
    """Runs wait here from `enqueue` until their supervision has ended."""

    def __init__(
        self,
        book: LaneBook,
        collaborators: Collaborators,
        *,
        settling: Settling,
        supervision: Callable[[Run, bool], Supervision],
    ) -> None:
        """`supervision` makes one for a run; its second argument says whether the run is recovered."""
        self._book = book
        self._store = collaborators.store
        self._clock = collaborators.clock
        self._metrics = collaborators.telemetry.metrics
        self._settling = settling
        self._quiet_times = QuietTimes(collaborators.clock, let_go=self._let_go)
        self._make_supervision = supervision
        self._supervisions: dict[str, Supervision] = {}
        self._dispatches: dict[str, Dispatch] = {}
        self._left_behind: set[asyncio.Task[Any]] = set()
        """Work of runs that were given up; it goes on somewhere."""
        self._recovered: dict[str, Run] = {}
        self._attached = AttachedMessages()
        self._gate_timers: dict[str, TimerHandle] = {}
        self._group: asyncio.TaskGroup | None = None
        self._dispatched = 0
        self._is_admitting = False
        self._is_leaving = False
        self._leave = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def book(self) -> LaneBook:
        """The lanes as they are; read only for others."""
        return self._book

    @property
    def attached(self) -> AttachedMessages:
        """Messages that wait to go into runs; read only for others."""
        return self._attached

    @property
    def executing(self) -> int:
        """Runs under supervision."""
        return len(self._supervisions)

    def dispatch(self, run_id: str) -> "Dispatch | None":
        """What became of a run that the lanes count as started; None = nobody has it."""
        return self._dispatches.get(run_id)

    def supervision(self, run_id: str) -> Supervision | None:
        """Who supervises the run; None = nobody, or not yet."""
        return self._supervisions.get(run_id)

    def give_up(self, run_id: str) -> None:
        """Take its place and its session from a run that does not let them go."""
        supervision = self._supervisions.get(run_id)
        if supervision is not None:
            supervision.give_up()
        elif run_id not in self._dispatches:
            self._book.release(run_id)

    def overdue(self) -> list[tuple[Ticket, int]]:
        """See LaneBook.overdue; nothing is while no run may start at all."""
        return self._book.overdue() if self._is_admitting else []

    def leave_behind(self, work: "asyncio.Task[Any]") -> None:
        """A run was given up: nothing waits for its work any more."""
        self._left_behind.add(work)
        work.add_done_callback(self._left_behind.discard)

    @property
    def left_behind(self) -> int:
        """How many of them still go on: the process cannot end in order."""
        return len(self._left_behind)

    def pump(self) -> None:
        """Start whatever may start."""
        self._admit(None)

    async def serve(self) -> None:
        """Supervise runs until `leave`; returns when none is left under supervision."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._leave.wait()

    def leave(self) -> None:
        """No further run comes: `serve` returns when the last one has ended."""
        self._is_admitting = False
        self._leave.set()

    def start_admitting(self) -> None:
        """Recovery has put everything in its place: runs may start, unless a drain has begun before."""
        self._is_admitting = not self._is_leaving
        self._admit(None)

    def stop_admitting(self) -> None:
        """A drain has begun: no queued run is started any more."""
        self._is_admitting, self._is_leaving = False, True

    def enqueue(self, run: Run) -> None:
        """A run was accepted."""
        is_held = run.request.queue_mode == QueueMode.COLLECT and run.disposition is not Disposition.STARTED
        self._book.enqueue(_ticket(run, is_held=is_held))
        if is_held:
            self._quiet_times.hold((run.tenant, run.session_key), run.run_id, run.request.quiet_s)
        self._metrics.lane_queued(*_place_of(run), 1)
        self._admit(run)

    def enqueue_recovered(self, run: Run) -> None:
        """A run that another process left RUNNING: first in its session, and through the gate if it was charged."""
        self._recovered[run.run_id] = run
        self._book.enqueue(_ticket(run, is_gated=run.charges > 0), is_first=True)
        self._metrics.lane_queued(*_place_of(run), 1)

    def enqueue_detached(self, run: Run) -> None:
        """A message that was to go into a run, which has ended: it waits where it would, had it never been attached."""
        self._attached.take_out(run.run_id)
        self._book.enqueue(_ticket(run))
        self._metrics.lane_queued(*_place_of(run), 1)

    def attach(self, run: Run) -> None:
        """A message waits to go into its host, which is under supervision or waits to be again."""
        self._attached.add(run)
        supervision = self._supervisions.get(run.host_run_id)
        if supervision is not None:
            supervision.steering.add(run)

    def _detach(self, run: Run) -> None:
        """A message does not wait for its host any more."""
        host = self._attached.take_out(run.run_id)
        supervision = self._supervisions.get(host)
        if supervision is not None:
            supervision.steering.withdraw(run.run_id)

    def cancel_queued(self, run: Run) -> None:
        """The run waits no longer: it has ended, or is part of another one."""
        self._detach(run)
        self._quiet_times.forget((run.tenant, run.session_key), run.run_id)
        if self._book.cancel(run.run_id):
            self._metrics.lane_queued(*_place_of(run), -1)
            self._admit(None)

    def stop(self, run_id: str, cause: StopCause, stop_reason: str = "") -> None:
        """Stop a run under supervision, or end a recovered one that still waits; harmless for any other."""
        supervision = self._supervisions.get(run_id)
        if supervision is not None:
            supervision.stop(cause, stop_reason)
        elif run_id in self._recovered and self._book.cancel(run_id) and self._group is not None:
            run = self._recovered.pop(run_id)
            self._metrics.lane_queued(*_place_of(run), -1)
            self._group.create_task(self._settle_waiting(run), name=f"settle {run_id}")

    def stop_all(self, cause: StopCause) -> None:
        """Stop every run under supervision."""
        for supervision in list(self._supervisions.values()):
            supervision.stop(cause)

    def got_on(self, run_id: str) -> None:
        """A run committed a result: it need not hold the recovery gate."""
        timer = self._gate_timers.pop(run_id, None)
        if timer is not None:
            timer.cancel()
        self._book.leave_gate(run_id)
        self._admit(None)

    def ended(self, run_id: str) -> None:
        """The end of a run is stored."""
        self._book.ended(run_id)
        self._admit(None)

    def _let_go(self, run_ids: Sequence[str]) -> None:
        self._book.let_go(run_ids)
        self._admit(None)

    def free_slot(self, run_id: str) -> None:
        """The run has ended while its task unwinds: its lane has room, its session stays taken."""
        self._book.free_slot(run_id)
        self._admit(None)

    async def idle(self) -> None:
        """Return when no run is under supervision."""
        await self._idle.wait()

    def _admit(self, at_hand: Run | None) -> None:
        if not self._is_admitting or self._group is None:
            return
        for ticket in self._book.admit():
            run = at_hand if at_hand is not None and at_hand.run_id == ticket.run_id else None
            self._idle.clear()
            self._metrics.lane_queued(ticket.lane, ticket.priority.name.lower(), -1)
            self._metrics.lane_active(ticket.lane, ticket.priority.name.lower(), 1)
            self._dispatched += 1
            self._dispatches[ticket.run_id] = Dispatch(self._dispatched, self._clock.monotonic())
            self._group.create_task(self._dispatch(ticket, run), name=f"supervise {ticket.run_id}")

    async def _dispatch(self, ticket: Ticket, at_hand: Run | None) -> None:
        """Supervise one run and give its place back, whatever happens."""
        run_id = ticket.run_id
        try:
            recovered = self._recovered.pop(run_id, None)
            run = recovered or at_hand or await self._row(ticket)
            if run is not None:
                self._tell_wait(run)
                if ticket.is_gated and run.charges == 1:
                    self._gate_timers[run_id] = self._clock.call_later(GATE_LIMIT_S, lambda: self.got_on(run_id))
                supervision = self._supervisions[run_id] = self._make_supervision(run, recovered is not None)
                for attached in self._attached.of(run_id):
                    supervision.steering.add(attached)
                await supervision.supervise()
        except Exception:  # the edge of the run: one run's fault must not end the others'
            logger.exception("supervision failed", extra={"run_id": run_id})
            await self._settle_failed(ticket)
        finally:
            self._supervisions.pop(run_id, None)
            self._dispatches.pop(run_id, None)
            self._attached.forget(run_id)
            timer = self._gate_timers.pop(run_id, None)
            if timer is not None:
                timer.cancel()
            self._book.release(run_id)
            self._metrics.lane_active(ticket.lane, ticket.priority.name.lower(), -1)
            if not self._book.active:
                self._idle.set()
            self._admit(None)

    def _tell_wait(self, run: Run) -> None:
        """A wait is measured when it is over, and a long one logged once (R-2.14)."""
        if run.started_at is not None:
            return
        waited_s = max(0.0, (self._clock.now() - run.accepted_at).total_seconds())
        self._metrics.lane_waited(*_place_of(run), waited_s)
        if waited_s >= LONG_WAIT_S:
            fields = {"run_id": run.run_id, "lane": run.request.lane, "waited_s": round(waited_s, 3)}
            logger.warning("run waited for its turn", extra=fields)

    async def _row(self, ticket: Ticket) -> Run | None:
        """The run's row, however long the store takes to answer."""
        return await until_answered(lambda: self._store.run(ticket.tenant, ticket.run_id), self._clock)

    async def _settle_waiting(self, run: Run) -> None:
        """A recovered run was aborted before its turn came."""
        try:
            await until_answered(lambda: self._settling.settle_aborted(run), self._clock)
        except LanewayError:  # recovery ends it after the next start
            logger.exception("aborted run not settled", extra={"run_id": run.run_id})
        self._admit(None)

    async def _settle_failed(self, ticket: Ticket) -> None:
        """A fault of ours has left a run without anybody to end it."""
        try:
            run = await self._row(ticket)
            if run is not None and run.state is RunState.RUNNING:
                await until_answered(lambda: self._settling.settle(run, failed_inside()), self._clock)
        except Exception:  # recovery looks at it after the next start
            logger.exception("failed run not settled", extra={"run_id": ticket.run_id})


def _place_of(run: Run) -> tuple[str, str]:
    """Lane and priority, as metrics count them."""
    return run.request.lane, run.request.priority.name.lower()


def _ticket(run: Run, *, is_gated: bool = False, is_held: bool = False) -> Ticket:
    request = run.request
    return Ticket(
        run.run_id,
        run.tenant,
        run.session_key,
        request.lane,
        request.priority,
        is_gated=is_gated,
        accepted_no=run.accepted_no,
        is_held=is_held,
    )
