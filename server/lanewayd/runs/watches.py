"""Who waits for which run to end. Owner of one watch per unended run, so it is bounded by them, not by history."""

import asyncio
from dataclasses import dataclass, field

from lanewayd.clock import Clock
from lanewayd.messages import RunError
from lanewayd.records import Run


@dataclass(eq=False, slots=True)
class Watch:
    """One unended run, until its terminal event is readable."""

    tenant: str
    ended: Run | None = None
    """The run as it ended."""
    pending_error: RunError | None = None
    is_stalled: bool = False
    """Liveness has found it so, and it has not got on since."""
    waiters: set["asyncio.Future[None]"] = field(default_factory=set)


class RunWatches:
    """All unended runs of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watches: dict[str, Watch] = {}
        self._is_leaving = False

    def __len__(self) -> int:
        return len(self._watches)

    @property
    def is_leaving(self) -> bool:
        """Waits do not block any more."""
        return self._is_leaving

    def open(self, run: Run) -> Watch:
        """The run exists and has not ended. Gives its watch, the one that there is or a new one."""
        return self._watches.setdefault(run.run_id, Watch(run.tenant))

    def find(self, run_id: str) -> Watch | None:
        """None for a run that has ended or is not of this process."""
        return self._watches.get(run_id)

    def set_pending_error(self, run_id: str, error: RunError | None) -> None:
        """A failure that a retry follows; None when the run has got over it."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.pending_error = error

    def set_stalled(self, run_id: str, is_stalled: bool) -> None:
        """Whether the run gets on."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.is_stalled = is_stalled

    def close(self, run: Run) -> None:
        """The run has ended, as it is given: wake all who wait. Idempotent."""
        watch = self._watches.pop(run.run_id, None)
        if watch is not None:
            watch.ended = run
            _wake(watch)

    def drop(self, run_id: str) -> None:
        """The run cannot be read, or is gone: wake all who wait, so that they see for themselves."""
        watch = self._watches.pop(run_id, None)
        if watch is not None:
            _wake(watch)

    def leave(self) -> None:
        """The server goes: wake all who wait, for good."""
        self._is_leaving = True
        for watch in self._watches.values():
            _wake(watch)

    async def until_ended(self, watch: Watch, timeout_s: float) -> None:
        """Return when the run has ended, the server leaves, or `timeout_s` is over."""
        if watch.ended is not None or self._is_leaving or timeout_s <= 0:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch.waiters.add(woken)
        timer = self._clock.call_later(timeout_s, lambda: _resolve(woken))
        try:
            await woken
        finally:
            timer.cancel()
            watch.waiters.discard(woken)


def _wake(watch: Watch) -> None:
    for waiter in watch.waiters:
        _resolve(waiter)


def _resolve(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
