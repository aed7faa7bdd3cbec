"""Looks at all sessions from time to time, tells of those that are silent, and gets stuck ones going again.

One timer for all. What is told goes into the run's log, the service's log and the metrics; it names no content.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lanewayd.clock import Clock
from lanewayd.diagnostics.liveness import (
    Action,
    Diagnosis,
    Health,
    Recovered,
    SessionLook,
    Thresholds,
    action_for,
    diagnose,
    next_warning_s,
)

logger = logging.getLogger(__name__)

HEARTBEAT_S = 30.0
ROUNDING_S = 0.001
"""Of times that are computed from ages."""

SessionId = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What recovery does, or has done: `outcome` is None before."""

    action: Action
    outcome: Recovered | None = None
    reason: str = ""


class Sessions(Protocol):
    """The sessions of this process, as far as something is or should be at work in them."""

    def looks(self) -> Iterable[SessionLook]:
        """Each of them now; none that only waits for room."""

    def look(self, tenant: str, session_key: str) -> SessionLook | None:
        """One of them; None when nothing is at work in it or should be."""

    def tell(self, look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> None:
        """Into the log of the run at work, if there is one."""

    def found_stalled(self, look: SessionLook) -> None:
        """The session does not get on; asked anew each time."""

    async def stop(self, look: SessionLook, settle_s: float) -> None:
        """End the run at work, as failed; return when it is gone, after `settle_s` at the latest."""

    def give_up(self, look: SessionLook) -> None:
        """Take the session from whatever is left of its run."""

    def pump(self) -> None:
        """Start whatever may start."""


class Instruments(Protocol):
    """What is counted."""

    def session_diagnosed(self, event: str, reason: str) -> None:
        """A session was told of."""


class LivenessMonitor:
    """Owner of what was told of each silent session, until it shows signs of life."""

    def __init__(self, sessions: Sessions, thresholds: Thresholds, clock: Clock, *, instruments: Instruments) -> None:
        self._sessions = sessions
        self._thresholds = thresholds
        self._clock = clock
        self._instruments = instruments
        self._told: dict[SessionId, tuple[float, float]] = {}
        """Session -> when it showed its last sign of life, and the age at which it was told of since."""
        self._recovering: set[SessionId] = set()

    @property
    def told(self) -> int:
        """Sessions that were told of and have been silent since."""
        return len(self._told)

    async def run(self) -> None:
        """Look every 30 s, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._clock.sleep(HEARTBEAT_S)
                self.beat(group)

    def beat(self, group: asyncio.TaskGroup) -> None:
        """Look at all sessions once; recoveries go on in `group`."""
        silent: set[SessionId] = set()
        for look in self._sessions.looks():
            diagnosis = diagnose(look, self._thresholds)
            if diagnosis is None:
                continue
            session_id = (look.tenant, look.session_key)
            silent.add(session_id)
            if diagnosis.health is not Health.LONG_RUNNING:
                self._sessions.found_stalled(look)
            if self._is_due(session_id, look.age_s):
                self._tell(look, diagnosis, None)
            action = action_for(look, diagnosis, self._thresholds)
            if action in (Action.ABORT_RUN, Action.RELEASE_LANE) and session_id not in self._recovering:
                self._recovering.add(session_id)
                group.create_task(self._recover(look, diagnosis, action), name=f"recover {look.run_id}")
        for session_id in self._told.keys() - silent:
            del self._told[session_id]

    def _is_due(self, session_id: SessionId, age_s: float) -> bool:
        """Whether to tell of the session now; that it was told of is remembered."""
        alive_at = self._clock.monotonic() - age_s
        former = self._told.get(session_id)
        is_silent_since = former is not None and alive_at - former[0] < ROUNDING_S
        previous_s = former[1] if former is not None and is_silent_since else None
        if age_s < next_warning_s(self._thresholds, previous_s):
            return False
        self._told[session_id] = (alive_at, age_s)
        return True

    async def _recover(self, look: SessionLook, diagnosis: Diagnosis, action: Action) -> None:
        """Never raises: the next look tries again."""
        try:
            self._tell(look, diagnosis, Recovery(action))
            outcome, reason = await self._carried_out(look, action)
        except Exception:  # the edge of a diagnosis: it must not end the others
            logger.exception("recovery of a session failed", extra=_fields(look))
            outcome, reason = Recovered.FAILED, "fault"
        finally:
            self._recovering.discard((look.tenant, look.session_key))
        self._tell(look, diagnosis, Recovery(action, outcome, reason))

    async def _carried_out(self, look: SessionLook, action: Action) -> tuple[Recovered, str]:
        if not self._is_unchanged(look):
            return Recovered.SKIPPED, "stale_session_state"
        if action is Action.RELEASE_LANE:
            if look.work is not None:
                self._sessions.give_up(look)
            self._sessions.pump()
            return Recovered.RELEASED, "stale_lane_task" if look.work is not None else "queued_work_without_active_run"
        await self._sessions.stop(look, self._thresholds.settle_s)
        now = self._sessions.look(look.tenant, look.session_key)
        if now is not None and now.generation == look.generation:
            self._sessions.give_up(look)
        return Recovered.ABORTED, ""

    def _is_unchanged(self, look: SessionLook) -> bool:
        """Nothing has happened in the session since it was looked at (R-2.121)."""
        now = self._sessions.look(look.tenant, look.session_key)
        return now is not None and now.generation == look.generation and now.progress_age_s >= look.progress_age_s

    def _tell(self, look: SessionLook, diagnosis: Diagnosis, recovery: Recovery | None) -> None:
        event = event_of(diagnosis, recovery)
        fields = {**_fields(look), "reason": diagnosis.reason, "classification": diagnosis.classification}
        if recovery is not None:
            fields |= {"action": recovery.action.value, "outcome": recovery.outcome.value if recovery.outcome else ""}
        is_bad = diagnosis.health is not Health.LONG_RUNNING
        logger.log(logging.WARNING if is_bad else logging.INFO, event, extra=fields)
        self._instruments.session_diagnosed(event, diagnosis.reason)
        self._sessions.tell(look, diagnosis, recovery)


def event_of(diagnosis: Diagnosis, recovery: Recovery | None) -> str:
    """The name under which it is told."""
    if recovery is None:
        return diagnosis.health.value
    return "session.recovery.requested" if recovery.outcome is None else "session.recovery.completed"


def _fields(look: SessionLook) -> dict[str, object]:
    fields: dict[str, object] = {
        "run_id": look.run_id,
        "session_key": look.session_key,
        "state": look.state,
        "age_s": round(look.age_s, 1),
        "progress_age_s": round(look.progress_age_s, 1),
        "queue_depth": look.queue_depth,
    }
    if look.tool is not None:
        fields |= {"tool": look.tool.name, "call_id": look.tool.call_id}
    return fields
