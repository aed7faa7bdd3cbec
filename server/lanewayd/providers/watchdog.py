"""Gives up a wait for a model service when nothing useful has come for too long."""

import asyncio
from types import TracebackType

from lanewayd.clock import Clock


class IdleExpired(Exception):
    """Nothing useful came within the limit. No TimeoutError: those of the network mean something else."""


class IdleWatchdog:
    """Interrupts waits: `with watchdog:` around each `await` of the service's next bytes.

    Time counts only inside the `with`, not while the consumer works, and adds up over waits until `reset`: bytes alone
    are no progress. When `limit_s` is used up the wait ends with `IdleExpired`. Not re-entrant; a wait belongs to the
    task that begins it.
    """

    def __init__(self, clock: Clock, limit_s: float) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._waited_s = 0.0
        self._began_at = 0.0
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._has_expired = False

    def reset(self, limit_s: float) -> None:
        """Progress was made; from now on `limit_s` applies."""
        self._limit_s = limit_s
        self._waited_s = 0.0

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None, "a watchdog needs a task to interrupt"  # noqa: S101 - a bug of the caller
        self._cancelling = self._task.cancelling()
        self._began_at = self._clock.monotonic()
        self._has_expired = False
        remaining_s = max(0.0, self._limit_s - self._waited_s)
        self._timer = self._clock.call_later(remaining_s, self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._waited_s += self._clock.monotonic() - self._began_at
        task, self._task = self._task, None
        # As in asyncio.timeout: the interruption is ours only if nobody else cancelled the task meanwhile.
        is_ours = self._has_expired and task is not None and task.uncancel() <= self._cancelling
        if is_ours and isinstance(error, asyncio.CancelledError):
            raise IdleExpired from error

    def _expire(self) -> None:
        # A task that somebody else has cancelled is on its way out: a second blow would hit it while it closes the
        # connection, and leave that open.
        if self._task is not None and self._task.cancelling() <= self._cancelling:
            self._has_expired = True
            self._task.cancel()
