"""Leaving without losing anything (D-18): announce, refuse, park, cut, tell, go.

The phases and their times are the drain's; what each part does in a phase is its own: the registry refuses, the
scheduler stops starting, the step gate parks, supervisions hand over.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from lanewayd.clock import Clock
from lanewayd.loop.interface import Parked
from lanewayd.runs.followers import Followers
from lanewayd.runs.outcome import StopCause
from lanewayd.runs.registry import RunRegistry
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.watches import RunWatches

logger = logging.getLogger(__name__)

CUT_LIMIT_S = 40.0
"""For what is cut: longer than a supervision waits for a tool before it hands its run over."""


class ParkGate:
    """Implements loop.interface.StepGate: once closed, no model call or tool batch begins."""

    def __init__(self) -> None:
        self._is_closed = False

    def close(self) -> None:
        """Runs that reach their next step are parked from now on."""
        self._is_closed = True

    def check(self) -> None:
        """Raises Parked once closed."""
        if self._is_closed:
            raise Parked


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Times of the drain, in seconds; `park_s` is the last part of `timeout_s`."""

    announce_s: float
    timeout_s: float
    park_s: float


@dataclass(frozen=True, slots=True)
class Leavers:
    """The parts that a drain talks to."""

    registry: RunRegistry
    scheduler: Scheduler
    gate: ParkGate
    watches: RunWatches
    followers: Followers


class Drain:
    """The way out. Owner of the drain's phase."""

    def __init__(
        self, settings: DrainSettings, leavers: Leavers, *, clock: Clock, on_begin: Callable[[], None]
    ) -> None:
        """`on_begin` makes the service NOT_SERVING; liveness stays."""
        self._settings = settings
        self._parts = leavers
        self._clock = clock
        self._on_begin = on_begin
        self._requested = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def is_draining(self) -> bool:
        """A drain was asked for."""
        return self._requested.is_set()

    def request(self) -> None:
        """Begin to leave; asked again, what still runs is cut at once."""
        if self._requested.is_set():
            self._hurry.set()
            return
        logger.info("drain begins")
        self._requested.set()
        self._parts.scheduler.stop_admitting()
        self._on_begin()

    async def run(self) -> bool:
        """Wait for the request, then return when nothing of a run is left at work and all readers were told.

        False: a tool does not let go; its run was handed over all the same, and the process may end.
        """
        await self._requested.wait()
        settings = self._settings
        await self._pass(settings.announce_s, until_idle=False)
        self._parts.registry.refuse()
        await self._pass(settings.timeout_s - settings.park_s - settings.announce_s, until_idle=True)
        self._parts.gate.close()
        await self._pass(settings.park_s, until_idle=True)
        self._parts.scheduler.stop_all(StopCause.DRAIN)
        await self._first_of(CUT_LIMIT_S, self._parts.scheduler.idle())
        is_clean = self._parts.scheduler.executing == 0
        self._parts.watches.leave()
        self._parts.followers.leave()
        logger.info("drain done", extra={"is_clean": is_clean})
        return is_clean

    async def _pass(self, duration_s: float, *, until_idle: bool) -> None:
        """Let `duration_s` go by; less when a second request came, or nothing runs any more and that is enough."""
        if duration_s <= 0 or self._hurry.is_set():
            return
        waited: list[Coroutine[Any, Any, object]] = [self._hurry.wait()]
        if until_idle:
            waited.append(self._parts.scheduler.idle())
        await self._first_of(duration_s, *waited)

    async def _first_of(self, limit_s: float, *waited: Coroutine[Any, Any, object]) -> None:
        """Return when one of the waits is over, at the latest after `limit_s`."""
        over = asyncio.Event()
        timer = self._clock.call_later(limit_s, over.set)
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(wait, name="drain phase") for wait in (over.wait(), *waited)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        timer.cancel()
