"""Time as the service sees it: wall time for display, monotonic time for every duration (D-14).

Collaborators receive a Clock; nothing else in the server reads the system's time.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class TimerHandle(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Drop the callback; harmless when it already ran."""


class Clock(Protocol):
    """Source of time. Tests give one that only moves when told."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back."""

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds of this clock."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        """Call `callback` on the event loop after `delay_s` seconds of this clock."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, callback)
