"""Leaving when the store stays down (D-19): `store.stall_limit_s`."""

import logging
from collections.abc import Callable

from lanewayd.clock import Clock, TimerHandle

logger = logging.getLogger(__name__)

STALLED_EXIT_CODE = 5


class StallExit:
    """Ends the process, by `exit_now` with STALLED_EXIT_CODE, when the store has been down for `limit_s`."""

    def __init__(self, limit_s: float, *, clock: Clock, exit_now: Callable[[int], None]) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._exit_now = exit_now
        self._timer: TimerHandle | None = None

    def store_works(self, works: bool) -> None:
        """The store commits again, or cannot any more; called when that changes."""
        self.disarm()
        if not works:
            self._timer = self._clock.call_later(self._limit_s, self._leave)

    def disarm(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        logger.critical("store stalled", extra={"stall_limit_s": self._limit_s})
        self._exit_now(STALLED_EXIT_CODE)
