"""The queue before the ledger: what is taken, written, dropped and counted."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.audit.ledger import AuditLedger, LedgerLimits
from lanewayd.audit_records import AuditAction, AuditActor, AuditFilter, AuditPage, AuditRecord, AuditStatus
from lanewayd.errors import StoreUnavailable

EVER = AuditFilter(after=datetime.min.replace(tzinfo=FakeClock().now().tzinfo))


def record(number: int) -> AuditRecord:
    return AuditRecord(
        "default",
        f"run_1:{number}",
        FakeClock().now(),
        AuditActor.AGENT,
        AuditAction.RUN_STARTED,
        AuditStatus.STARTED,
    )


@dataclass
class FakeStore:
    """Implements AuditStore: keeps batches, or fails, or waits until `go_on`."""

    batches: list[tuple[AuditRecord, ...]] = field(default_factory=list)
    written: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Exception | None = None
    go_on: asyncio.Event | None = None
    asked: list[AuditFilter] = field(default_factory=list)
    pages: list[AuditPage] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)

    async def append_audit(self, records: tuple[AuditRecord, ...], max_rows: int) -> None:
        if self.go_on is not None:
            await self.go_on.wait()
        if self.failure is not None:
            raise self.failure
        self.batches.append(records)
        self.written.set()

    async def prune_audit(self, oldest: datetime, max_rows: int) -> bool:
        return True

    async def audit_key(self, new_secret: bytes) -> bytes | None:
        return new_secret

    async def audit_page(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int, max_rows: int
    ) -> AuditPage:
        self.asked.append(which)
        self.places.append(before_no)
        return self.pages.pop(0)


@dataclass
class Stage:
    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=FakeClock)
    dropped: list[int] = field(default_factory=list)

    def ledger(self, **limits: float) -> AuditLedger:
        values = LedgerLimits(timedelta(days=30), 100, **limits)  # type: ignore[arg-type]
        return AuditLedger(values, store=self.store, clock=self.clock, on_dropped=self.dropped.append)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_what_comes_within_a_second_is_written_together(stage: Stage) -> None:
    ledger = stage.ledger()
    running = asyncio.create_task(ledger.run())
    ledger.add([record(1)])
    await stage.clock.wait_for_sleepers(1)
    ledger.add([record(2), record(3)])
    assert stage.store.batches == []
    await stage.clock.advance(1)
    await stage.store.written.wait()
    assert [len(batch) for batch in stage.store.batches] == [3]
    assert not stage.clock.sleeper_count
    running.cancel()


async def test_more_than_a_batch_is_written_by_several(stage: Stage) -> None:
    ledger = stage.ledger(batch=2)
    ledger.add(record(number) for number in range(5))
    await ledger.flush()
    assert [len(batch) for batch in stage.store.batches] == [2, 2, 1]
    assert [each.event_id for batch in stage.store.batches for each in batch] == [f"run_1:{n}" for n in range(5)]


async def test_what_does_not_fit_is_dropped_and_counted_with_one_warning(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = stage.ledger(max_waiting=2)
    ledger.add(record(number) for number in range(5))
    assert sum(stage.dropped) == 3
    assert [line.levelno for line in caplog.records] == [logging.WARNING]
    await ledger.flush()
    ledger.add(record(number) for number in range(5))
    assert sum(stage.dropped) == 6
    # It had got over it in between.
    assert len(caplog.records) == 2


@pytest.mark.parametrize("failure", [StoreUnavailable("full"), ValueError("refused")])
async def test_what_the_store_does_not_take_is_dropped_and_the_next_is_tried(
    stage: Stage, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = stage.ledger()
    stage.store.failure = failure
    for _ in range(2):
        ledger.add([record(1), record(2)])
        await ledger.flush()
    assert (sum(stage.dropped), len(caplog.records)) == (4, 1)
    stage.store.failure = None
    ledger.add([record(3)])
    await ledger.flush()
    assert [len(batch) for batch in stage.store.batches] == [1]


async def test_the_end_of_the_service_waits_for_the_ledger_for_a_while_only(stage: Stage) -> None:
    stage.store.go_on = asyncio.Event()
    ledger = stage.ledger(batch=1, close_s=0.01)
    ledger.add([record(1), record(2), record(3)])
    await ledger.close()
    assert stage.dropped == [2]  # the first may still be written


async def test_what_is_left_at_the_end_is_written(stage: Stage) -> None:
    ledger = stage.ledger(batch=1)
    ledger.add([record(1), record(2)])
    await ledger.close()
    assert len(stage.store.batches) == 2


async def test_a_list_sees_what_was_done_before_it_and_nothing_old(stage: Stage) -> None:
    ledger = stage.ledger()
    ledger.add([record(1)])
    # A window without anything that passes, one with a part, and the last.
    stage.store.pages = [AuditPage((), 50), AuditPage((record(2),), 20), AuditPage((record(3),), 0)]
    found = await ledger.records("default", EVER, before_no=None, limit=5)
    assert [each.event_id for each in found] == ["run_1:2", "run_1:3"]
    assert stage.store.places == [None, 50, 20]
    assert len(stage.store.batches) == 1
    assert {which.after for which in stage.store.asked} == {stage.clock.now() - timedelta(days=30)}
