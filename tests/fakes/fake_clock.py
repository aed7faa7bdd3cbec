"""A clock that moves only when a test says so."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lanewayd.clock import TimerHandle

UPKEEP = frozenset({"retention", "audit", "liveness"})
"""Tasks of a service that sleep beside its runs, by name; they are no sleepers here."""


@dataclass(order=True)
class _Timer:
    due_s: float
    number: int
    callback: Callable[[], None] = field(compare=False)
    is_sleeper: bool = field(compare=False, default=False)
    task: str = field(compare=False, default="")
    """The name of the task that sleeps."""
    is_cancelled: bool = field(compare=False, default=False)

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClock:
    """Implements Clock. `advance` wakes sleepers and callbacks in the order in which they are due."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._timers: list[_Timer] = []
        self._numbers = itertools.count()
        self._begun = 0
        self._changed = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        return self._elapsed_s

    def leap(self, span: timedelta) -> None:
        """Only the time of day goes on, as after somebody has set the clock: nothing that sleeps wakes."""
        self._start += span

    async def sleep(self, delay_s: float) -> None:
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self._add(delay_s, wake, is_sleeper=True)
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        return self._add(delay_s, callback, is_sleeper=False)

    @property
    def sleeper_count(self) -> int:
        """Tasks in `sleep`, but for those of UPKEEP."""
        return sum(timer.is_sleeper and not timer.is_cancelled and timer.task not in UPKEEP for timer in self._timers)

    @property
    def timer_count(self) -> int:
        """Callbacks of `call_later` that are due later."""
        return sum(not timer.is_sleeper and not timer.is_cancelled for timer in self._timers)

    async def advance(self, seconds: float) -> None:
        """Move on; what becomes due runs at its own time, and tasks that it wakes run before later timers do."""
        end_s = self._elapsed_s + seconds
        while True:
            self._drop_cancelled()
            if not self._timers or self._timers[0].due_s > end_s:
                break
            timer = heapq.heappop(self._timers)
            self._elapsed_s = max(self._elapsed_s, timer.due_s)
            timer.callback()
            await asyncio.sleep(0)
        self._elapsed_s = end_s
        await asyncio.sleep(0)

    async def wait_for_sleepers(self, count: int) -> None:
        """Return when `sleeper_count` is at least `count`."""
        await self._wait(lambda: self.sleeper_count >= count)

    async def wait_for_upkeep(self, task: str) -> None:
        """Return when this task of UPKEEP sleeps."""
        await self._wait(lambda: any(timer.task == task and not timer.is_cancelled for timer in self._timers))

    async def wait_for_timers(self, count: int) -> None:
        """Return when at least `count` callbacks of `call_later` wait."""
        await self._wait(lambda: self.timer_count >= count)

    async def wait_for_another(self) -> None:
        """Return when one more wait has begun, of either kind, than before the call."""
        begun = self._begun
        await self._wait(lambda: self._begun > begun)

    def _add(self, delay_s: float, callback: Callable[[], None], *, is_sleeper: bool) -> _Timer:
        running = asyncio.current_task() if is_sleeper else None
        task = running.get_name() if running is not None else ""
        timer = _Timer(self._elapsed_s + delay_s, next(self._numbers), callback, is_sleeper, task=task)
        heapq.heappush(self._timers, timer)
        self._begun += 1
        self._changed.set()
        return timer

    def _drop_cancelled(self) -> None:
        while self._timers and self._timers[0].is_cancelled:
            heapq.heappop(self._timers)

    async def _wait(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self._changed.clear()
            await self._changed.wait()
