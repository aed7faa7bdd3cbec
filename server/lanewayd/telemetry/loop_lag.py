"""How late the event loop is: a timer that says how much later than asked it fired."""

import asyncio
from collections.abc import Callable

INTERVAL_S = 1.0


class LoopLag:
    """Measures from `start` to `stop`, both on the loop's thread. One timer, whatever the load."""

    def __init__(self, report: Callable[[float], None], *, interval_s: float = INTERVAL_S) -> None:
        self._report = report
        self._interval_s = interval_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure the running loop."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._fired, loop, loop.time() + self._interval_s)

    def stop(self) -> None:
        """Measure no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self._report(max(0.0, loop.time() - due_s))
        self._timer = loop.call_later(self._interval_s, self._fired, loop, loop.time() + self._interval_s)
