"""The sessions of this process as liveness sees them: what the lanes and those who supervise their runs say."""

import asyncio
from collections.abc import Iterator

from lanewayd.clock import Clock
from lanewayd.diagnostics.liveness import Diagnosis, Health, OpenTool, SessionLook, Work
from lanewayd.diagnostics.monitor import Recovery, event_of
from lanewayd.events import Diagnostic, SessionDiagnosis
from lanewayd.runs.activity import Activity
from lanewayd.runs.lanes import Ticket
from lanewayd.runs.outcome import StopCause
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.supervision import Supervision
from lanewayd.runs.watches import RunWatches

SOURCE = "liveness"


class LiveSessions:
    """Implements diagnostics.monitor.Sessions.

    Runs that wait for a lane are no sessions of it: only what the lanes count as started. One that has waited for the
    store since the look before is not looked at either: its silence is the store's, which has a watchdog of its own.
    """

    def __init__(self, scheduler: Scheduler, watches: RunWatches, clock: Clock) -> None:
        self._scheduler = scheduler
        self._watches = watches
        self._clock = clock
        self._behind: set[str] = set()
        """Runs whose log was not stored at the last looks."""
        self._overdue: dict[str, float] = {}
        """First runs of sessions that could start and did not -> when that was first seen."""

    def looks(self) -> Iterator[SessionLook]:
        behind, self._behind = self._behind, set()
        for ticket, waiting in self._scheduler.book.active_tickets():
            supervision = self._scheduler.supervision(ticket.run_id)
            if supervision is not None and supervision.is_behind:
                self._behind.add(ticket.run_id)
                if ticket.run_id in behind:
                    continue
            look = self._look(ticket, waiting)
            if look is not None:
                self._watches.set_stalled(ticket.run_id, False)  # until it is found so again
                yield look
        now_s = self._clock.monotonic()
        overdue = self._scheduler.overdue()
        self._overdue = {ticket.run_id: self._overdue.get(ticket.run_id, now_s) for ticket, _ in overdue}
        for ticket, waiting in overdue:
            yield self._waiting(ticket, waiting)

    def look(self, tenant: str, session_key: str) -> SessionLook | None:
        for ticket, waiting in self._scheduler.book.active_tickets():
            if (ticket.tenant, ticket.session_key) == (tenant, session_key):
                return self._look(ticket, waiting)
        for ticket, waiting in self._scheduler.overdue():
            if (ticket.tenant, ticket.session_key) == (tenant, session_key):
                return self._waiting(ticket, waiting)
        return None

    def tell(self, look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> None:
        supervision = self._scheduler.supervision(look.run_id)
        if supervision is not None:
            supervision.tell(Diagnostic(SOURCE, _line(look, diagnosis, recovery), _told(look, diagnosis, recovery)))

    def found_stalled(self, look: SessionLook) -> None:
        self._watches.set_stalled(look.run_id, True)

    async def stop(self, look: SessionLook, settle_s: float) -> None:
        supervision = self._scheduler.supervision(look.run_id)
        if supervision is None:
            return
        self._scheduler.stop(look.run_id, StopCause.STALLED, _silence(look))
        gone = asyncio.ensure_future(supervision.gone())
        timer = self._clock.call_later(settle_s, lambda: _cancel(gone))
        try:
            await asyncio.wait({gone})
        finally:
            timer.cancel()
            gone.cancel()

    def give_up(self, look: SessionLook) -> None:
        self._scheduler.give_up(look.run_id)

    def pump(self) -> None:
        self._scheduler.pump()

    def _waiting(self, ticket: Ticket, waiting: int) -> SessionLook:
        """Nobody is at work, though somebody could be."""
        age_s = self._clock.monotonic() - self._overdue.get(ticket.run_id, self._clock.monotonic())
        return SessionLook(
            tenant=ticket.tenant,
            session_key=ticket.session_key,
            run_id=ticket.run_id,
            generation=ticket.accepted_no,
            has_owner=False,
            work=None,
            age_s=age_s,
            progress_age_s=age_s,
            queue_depth=waiting,
        )

    def _look(self, ticket: Ticket, waiting: int) -> SessionLook | None:
        dispatch = self._scheduler.dispatch(ticket.run_id)
        supervision = self._scheduler.supervision(ticket.run_id)
        if dispatch is not None and (supervision is None or supervision.activity is None):
            return None  # it has not been started yet, which takes the store only
        now_s = self._clock.monotonic()
        activity = supervision.activity if supervision is not None else None
        alive_s = activity.alive_s if activity is not None else 0.0
        progressed_s = activity.progressed_s if activity is not None else 0.0
        return SessionLook(
            tenant=ticket.tenant,
            session_key=ticket.session_key,
            run_id=ticket.run_id,
            generation=dispatch.number if dispatch is not None else 0,
            has_owner=dispatch is not None,
            work=activity.work if activity is not None else Work.OTHER,
            age_s=now_s - alive_s,
            progress_age_s=now_s - progressed_s,
            progress_reason=activity.progress_reason if activity is not None else "",
            has_ended=activity is not None and activity.has_ended,
            queue_depth=waiting,
            tool=_oldest_tool(activity, supervision, now_s),
        )


def _cancel(future: "asyncio.Future[None]") -> None:
    future.cancel()


def _oldest_tool(activity: Activity | None, supervision: Supervision | None, now_s: float) -> OpenTool | None:
    """Of those that are open, the one that may be silent longest counts: while it may, the run may."""
    if activity is None or supervision is None or not activity.tools or activity.has_ended:
        return None
    call, launched_s = min(activity.tools.values(), key=lambda tool: tool[1])
    limit_s = max(supervision.tool_limit_s(each) for each, _ in activity.tools.values())
    return OpenTool(call.name, call.call_id, now_s - launched_s, limit_s)


def _silence(look: SessionLook) -> str:
    where = f"the tool {look.tool.name}" if look.tool is not None else "a model call"
    return f"{look.progress_age_s:.0f} s in {where if look.work is not Work.OTHER or look.tool else 'its own work'}"


def _line(look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> str:
    """For people; no content."""
    if recovery is not None:
        done = f": {recovery.outcome.value}" if recovery.outcome is not None else ""
        return f"recovery, {recovery.action.value}{done} ({diagnosis.reason})"
    where = f" in the tool {look.tool.name}" if look.tool is not None else ""
    words = {Health.LONG_RUNNING: "slow", Health.STALLED: "stalled", Health.STUCK: "stuck"}
    return f"{words[diagnosis.health]}: no progress for {look.progress_age_s:.0f} s{where} ({diagnosis.reason})"


def _told(look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> SessionDiagnosis:
    tool = look.tool
    return SessionDiagnosis(
        event=event_of(diagnosis, recovery),
        reason=diagnosis.reason,
        classification=diagnosis.classification,
        state=look.state,
        age_s=look.age_s,
        progress_age_s=look.progress_age_s,
        progress_reason=look.progress_reason,
        queue_depth=look.queue_depth,
        work=look.work.value if look.work is not None else "",
        tool_name=tool.name if tool is not None else "",
        call_id=tool.call_id if tool is not None else "",
        tool_age_s=tool.age_s if tool is not None else 0.0,
        action=recovery.action.value if recovery is not None else "",
        outcome=recovery.outcome.value if recovery is not None and recovery.outcome is not None else "",
    )
