"""Leaving when nobody needs the server any more: `laneway serve --idle-exit`."""

from collections.abc import Callable

from lanewayd.clock import Clock, TimerHandle


class IdleExit:
    """Asks for a drain after `idle_s` without calls, unended runs and subscriptions. Does nothing without `idle_s`."""

    def __init__(
        self, idle_s: float | None, *, clock: Clock, is_busy: Callable[[], bool], leave: Callable[[], None]
    ) -> None:
        self._idle_s = idle_s
        self._clock = clock
        self._is_busy = is_busy
        self._leave = leave
        self._touched_s = 0.0
        self._timer: TimerHandle | None = None

    def touch(self) -> None:
        """A call came in."""
        self._touched_s = self._clock.monotonic()

    def arm(self) -> None:
        """Begin to count."""
        self.touch()
        self._wait()

    def disarm(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        if self._idle_s is not None:
            left_s = self._touched_s + self._idle_s - self._clock.monotonic()
            self._timer = self._clock.call_later(max(left_s, self._idle_s / 4), self._look)

    def _look(self) -> None:
        """When the time is over: leave, or count again from the last sign of life."""
        if self._is_busy():
            self.touch()
        if self._idle_s is not None and self._clock.monotonic() - self._touched_s >= self._idle_s:
            self._leave()
        else:
            self._wait()
