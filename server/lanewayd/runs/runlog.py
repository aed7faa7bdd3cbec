"""The log of one run: its only writer (D-3).

Changes are appended in order and numbered by the store without gaps. One command is on its way at a time, so what
gathers meanwhile travels together. A store that cannot commit holds the log up, never loses or reorders it; readers see
an event only after the commit that stores it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lanewayd.clock import Clock
from lanewayd.errors import ClaimLost, IntakeNotEmpty, StoreUnavailable
from lanewayd.records import Run
from lanewayd.runs.backoff import Backoff
from lanewayd.store.interface import AppendToRun, Injection, InjectMessages, RunChange, Store

logger = logging.getLogger(__name__)

MAX_CHANGES = 256
"""Of one command, so that a log that was held up comes back in bounded transactions."""


@dataclass(frozen=True, slots=True)
class _Injection:
    behind_no: int
    """It follows this change."""
    injections: tuple[Injection, ...]
    answer: asyncio.Future[tuple[str, ...]]


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
        self._injection: _Injection | None = None
        self._end_refusals = 0
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

    async def inject(self, injections: Sequence[Injection]) -> tuple[str, ...]:
        """Take messages in that wait for this run, behind all that was appended so far; the ids of those that were.

        One at a time. Nothing that is appended meanwhile overtakes it. Raises ClaimLost.
        """
        if self._is_lost:
            raise ClaimLost(self._run.run_id)
        if self._injection is not None:
            raise ValueError("messages are being taken in already")
        answer: asyncio.Future[tuple[str, ...]] = asyncio.get_running_loop().create_future()
        self._injection = _Injection(self._appended_no, tuple(injections), answer)
        self._work.set()
        return await answer

    async def stored(self) -> None:
        """Return when everything appended so far is durable. Raises ClaimLost."""
        if self._is_lost:
            raise ClaimLost(self._run.run_id)
        if self._stored_no == self._appended_no:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self._appended_no, waiter))
        await waiter

    async def ended(self) -> bool:
        """Wait for the end that was appended last. False: messages wait to be taken in, so the run may not end, and the
        log goes on as if the end had not been appended. Raises ClaimLost."""
        before = self._end_refusals
        await self.stored()
        if self._end_refusals == before:
            return True
        await self.stored()  # what came before the end was refused with it, and is on its way again
        return False

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
            if self._injection is not None and self._injection.behind_no == self._stored_no:
                await self._inject(self._injection, backoff)
                continue
            if not self._pending:
                if self._is_closed:
                    return
                self._work.clear()
                await self._work.wait()
                continue
            changes = unanswered or tuple(islice(self._pending, self._count_to_send()))
            try:
                if not unanswered or not await self._is_stored(changes):
                    await self._store.append(
                        AppendToRun(self._run.run_id, self._run.claim, self._stored_seq + 1, changes)
                    )
            except StoreUnavailable:
                unanswered = changes  # exactly these again: they may be stored for all we know
                await backoff.wait()
                continue
            except IntakeNotEmpty:
                self._refuse_end(changes)
                unanswered = ()
                continue
            except ClaimLost:
                self._lose()
                return
            unanswered = ()
            backoff.reset()
            self._note_stored(changes)

    def _count_to_send(self) -> int:
        """Up to the place of an injection, if there is one."""
        if self._injection is None:
            return MAX_CHANGES
        return min(MAX_CHANGES, self._injection.behind_no - self._stored_no)

    async def _inject(self, injection: "_Injection", backoff: Backoff) -> None:
        command = InjectMessages(self._run.run_id, self._run.claim, self._clock.now(), injection.injections)
        try:
            result = await self._store.inject(command)
        except StoreUnavailable:
            await backoff.wait()
            return
        except ClaimLost:
            self._lose()
            return
        backoff.reset()
        self._stored_seq = result.last_seq
        self._injection = None
        if not injection.answer.done():
            injection.answer.set_result(result.taken)

    def _refuse_end(self, changes: tuple[RunChange, ...]) -> None:
        """The last change would have ended the run, while messages wait for it: it counts as never appended."""
        refused = self._pending.pop()
        if refused.end is None or refused is not changes[-1]:
            raise ValueError("something was appended behind the end of a run")
        self._end_refusals += 1
        while self._waiters and self._waiters[-1][0] == self._appended_no:
            _settle(self._waiters.pop()[1])
        self._appended_no -= 1

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
        waiters: list[asyncio.Future[Any]] = [waiter for _, waiter in self._waiters]
        self._waiters.clear()
        if self._injection is not None:
            waiters.append(self._injection.answer)
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(ClaimLost(self._run.run_id))


def _count_events(changes: tuple[RunChange, ...]) -> int:
    return sum(len(change.events) for change in changes)


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
