"""The audit ledger: takes records without waiting, writes them behind the runs, and reads them back (spec 03, 10).

Records wait in a bounded queue. What does not fit, what the store does not take and what is left when the service has
to go is dropped and counted, with one warning until records are written again: a record never delays or ends a run, and
therefore one that is missing proves nothing (R-3.82, R-3.87).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lanewayd.audit.interface import AuditStore
from lanewayd.audit_records import AuditFilter, AuditRecord
from lanewayd.clock import Clock
from lanewayd.errors import StoreUnavailable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LedgerLimits:
    """What is kept, and how records are written: `interval_s` after the first came, at most `batch` together, so that a
    run's own write never stands behind more than a millisecond or two of them."""

    max_age: timedelta
    max_rows: int
    max_waiting: int = 10_000
    batch: int = 100
    interval_s: float = 1.0
    close_s: float = 2.0
    """For what is left at the end."""


class AuditLedger:
    """The ledger of one process. Owner of the queue; belongs to the event loop."""

    def __init__(
        self, limits: LedgerLimits, *, store: AuditStore, clock: Clock, on_dropped: Callable[[int], None]
    ) -> None:
        """`on_dropped` hears how many records were lost."""
        self._limits = limits
        self._store = store
        self._clock = clock
        self._on_dropped = on_dropped
        self._waiting: deque[AuditRecord] = deque()
        self._has_come = asyncio.Event()
        self._is_writing = asyncio.Lock()
        self._is_losing = False

    def add(self, records: Iterable[AuditRecord]) -> None:
        """Take records; returns at once."""
        for record in records:
            if len(self._waiting) >= self._limits.max_waiting:
                self._drop(1, "too many wait")
            else:
                self._waiting.append(record)
                self._has_come.set()

    async def run(self) -> None:
        """Write what comes, until cancelled."""
        while True:
            await self._has_come.wait()
            await self._clock.sleep(self._limits.interval_s)
            await self.flush()

    async def flush(self) -> None:
        """Everything that was added before is written or dropped."""
        async with self._is_writing:
            for _ in range(-(-len(self._waiting) // self._limits.batch)):
                await self._write_batch()

    async def close(self) -> None:
        """Write what is left, for as long as the end may take."""
        try:
            async with asyncio.timeout(self._limits.close_s):
                await self.flush()
        except TimeoutError:
            self._drop(len(self._waiting), "the service has to go")
            self._waiting.clear()

    async def sweep(self) -> None:
        """Remove what is older or more than is kept. Raises StoreUnavailable."""
        while not await self._store.prune_audit(self._oldest(), self._limits.max_rows):
            pass

    async def records(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int
    ) -> tuple[AuditRecord, ...]:
        """Up to `limit` records of a tenant below `before_no`, newest first; fewer: there are no more. Has all that was
        done before the call, and nothing older than is kept. Raises StoreUnavailable."""
        if before_no is None:
            await self.flush()
        which = replace(which, after=max(which.after, self._oldest()))
        found: list[AuditRecord] = []
        place = before_no
        while len(found) < limit and place != 0:
            page = await self._store.audit_page(
                tenant, which, before_no=place, limit=limit - len(found), max_rows=self._limits.max_rows
            )
            found += page.records
            place = page.next_no
        return tuple(found)

    def _oldest(self) -> datetime:
        return self._clock.now() - self._limits.max_age

    async def _write_batch(self) -> None:
        batch = tuple(self._waiting.popleft() for _ in range(min(self._limits.batch, len(self._waiting))))
        if not self._waiting:
            self._has_come.clear()
        try:
            await self._store.append_audit(batch, self._limits.max_rows)
        except StoreUnavailable:
            self._drop(len(batch), "the store cannot commit")
        except ValueError:  # a record that the store refuses is a fault of ours, and none of the runs
            self._drop(len(batch), "the store refuses them")
        else:
            self._is_losing = False

    def _drop(self, count: int, cause: str) -> None:
        if count and not self._is_losing:
            logger.warning("audit records are dropped", extra={"cause": cause})
        self._is_losing = self._is_losing or count > 0
        self._on_dropped(count)
