"""The log of one run: its only writer (D-3).

Changes are appended in order and numbered by the store without gaps. One command is on its way at a time, so what
gathers meanwhile travels together. A store that cannot commit holds the log up, never loses or reorders it; readers see
an event only after the commit that stores it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import islice

from lanewayd.clock import Clock
from lanewayd.errors import ClaimLost, StoreUnavailable
from lanewayd.records import Run
from lanewayd.runs.backoff import Backoff
from lanewayd.store.interface import AppendToRun, RunChange, Store

logger = logging.getLogger(__name__)

MAX_CHANGES = 256
"""Of one command, so that a log that was held up comes back in bounded transactions."""


class RunLog:
    """Appends to one run's log under one claim. `pump` must be running; the run's supervisor owns its task."""

    def __init__(self, run: Run, *, store: Store, clock: Clock) -> None:
        """`run` as its start returned it: its claim and last_seq are where this log goes on."""
        self._run = run
        self._store = store
        self._clock = clock
        self._stored_seq = run.last_seq
        self._pending: deque[RunChange] = deque()
        self._appended_no = 0
        self._stored_no = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._work = asyncio.Event()
        self._is_closed = False
        self._is_lost = False
        self.on_caught_up: Callable[[], None] | None = None
        """Called when all that was appended is stored. Set by the one who appends."""

    @property
    def is_behind(self) -> bool:
        """Something that was appended is not stored yet."""
        return bool(self._pending)

    @property
    def is_lost(self) -> bool:
        """Another start of the run, or its end, has overtaken this log; nothing more can be written."""
        return self._is_lost

    def append(self, change: RunChange) -> None:
        """Add a change to the log; it becomes readable when stored. Raises ClaimLost after the claim was lost."""
        if self._is_lost:
            raise ClaimLost(self._run.run_id)
        if self._is_closed:
            raise ValueError("the log is closed")
        self._pending.append(change)
        self._appended_no += 1
        self._work.set()

    async def stored(self) -> None:
        """Return when everything appended so far is durable. Raises ClaimLost."""
        if self._is_lost:
            raise ClaimLost(self._run.run_id)
        if self._stored_no == self._appended_no:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self._appended_no, waiter))
        await waiter

    def close(self) -> None:
        """No more changes come: `pump` returns when all are stored."""
        self._is_closed = True
        self.on_caught_up = None  # else log and listener keep each other alive until a garbage collection
        self._work.set()

    async def pump(self) -> None:
        """Store what is appended, until closed and empty, or the claim is lost."""
        backoff = Backoff(self._clock)
        unanswered: tuple[RunChange, ...] = ()
        while not self._is_lost:
            if not self._pending:
                if self._is_closed:
                    return
                self._work.clear()
                await self._work.wait()
                continue
            changes = unanswered or tuple(islice(self._pending, MAX_CHANGES))
            try:
                if not unanswered or not await self._is_stored(changes):
                    await self._store.append(
                        AppendToRun(self._run.run_id, self._run.claim, self._stored_seq + 1, changes)
                    )
            except StoreUnavailable:
                unanswered = changes  # exactly these again: they may be stored for all we know
                await backoff.wait()
                continue
            except ClaimLost:
                self._lose()
                return
            unanswered = ()
            backoff.reset()
            self._note_stored(changes)

    def _note_stored(self, changes: tuple[RunChange, ...]) -> None:
        self._stored_seq += _count_events(changes)
        self._stored_no += len(changes)
        for _ in changes:
            self._pending.popleft()
        while self._waiters and self._waiters[0][0] <= self._stored_no:
            _settle(self._waiters.popleft()[1])
        if not self._pending and self.on_caught_up is not None:
            self.on_caught_up()

    async def _is_stored(self, changes: tuple[RunChange, ...]) -> bool:
        """Whether an earlier try of `changes` was stored and only its answer said otherwise."""
        row = await self._store.run(self._run.tenant, self._run.run_id)
        if row is None or row.claim != self._run.claim:
            return False
        if count := _count_events(changes):
            return row.last_seq == self._stored_seq + count
        entry = next((entry for change in changes for entry in change.entries), None)
        if entry is None:
            return False  # nothing in them that could be stored twice
        return await self._store.entry(row.tenant, row.session_key, entry.entry_id) is not None

    def _lose(self) -> None:
        self._is_lost = True
        logger.warning("run log overtaken", extra={"run_id": self._run.run_id})
        while self._waiters:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_exception(ClaimLost(self._run.run_id))


def _count_events(changes: tuple[RunChange, ...]) -> int:
    return sum(len(change.events) for change in changes)


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
