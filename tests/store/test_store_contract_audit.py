"""The audit ledger in the store: numbers, bounds, and what a read looks at."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.conftest import OpenStore

from lanewayd.audit_records import AuditAction, AuditActor, AuditFilter, AuditRecord, AuditStatus
from lanewayd.store.audit_commands import AUDIT_STEP_ROWS, AUDIT_WINDOW_ROWS
from lanewayd.store.sqlite import SqliteStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVER = AuditFilter(after=NOW - timedelta(days=3650))
MANY = 1_000_000


def a_record(number: int, tenant: str = "default", **fields: Any) -> AuditRecord:
    fields = {"at": NOW + timedelta(seconds=number), "run_id": f"run_{number}", **fields}
    return AuditRecord(
        tenant=tenant,
        event_id=f"run_{number}:1",
        actor=AuditActor.AGENT,
        action=AuditAction.RUN_STARTED,
        status=AuditStatus.STARTED,
        **fields,
    )


def some(count: int, tenant: str = "default") -> tuple[AuditRecord, ...]:
    return tuple(a_record(number, tenant) for number in range(count))


async def numbers(store: SqliteStore, tenant: str = "default", *, max_rows: int = MANY, **which: Any) -> list[int]:
    """Of all that a tenant sees, oldest first."""
    found: list[int] = []
    place: int | None = None
    while place != 0:
        filters = AuditFilter(**{"after": EVER.after, **which})
        page = await store.audit_page(tenant, filters, before_no=place, limit=1000, max_rows=max_rows)
        found += [record.ledger_no for record in page.records]
        place = page.next_no
    return found[::-1]


@pytest.fixture
async def ledger(open_store: OpenStore) -> SqliteStore:
    store = await open_store()
    assert isinstance(store, SqliteStore)
    return store


async def test_a_record_comes_back_as_it_was_given_with_its_number(ledger: SqliteStore) -> None:
    record = a_record(1, session_key="k", session_id="s", agent_id="main", tool_name="exec", tool_call="f", code="C")
    await ledger.append_audit((record,), MANY)
    page = await ledger.audit_page("default", EVER, before_no=None, limit=10, max_rows=MANY)
    [kept] = page.records
    assert page.next_no == 0
    assert kept.ledger_no == 1
    assert (kept.at, kept.action, kept.session_key, kept.code) == (record.at, record.action, "k", "C")


async def test_each_tenant_counts_for_itself_and_never_again_from_the_start(ledger: SqliteStore) -> None:
    await ledger.append_audit((*some(3, "one"), *some(2, "two")), MANY)
    assert (await numbers(ledger, "one"), await numbers(ledger, "two")) == ([1, 2, 3], [1, 2])
    assert await ledger.prune_audit(NOW + timedelta(days=1), MANY)
    assert (await numbers(ledger, "one"), await numbers(ledger, "two")) == ([], [])
    await ledger.append_audit(some(1, "one"), MANY)
    assert await numbers(ledger, "one") == [4]


async def test_what_is_too_much_goes_as_it_is_written_from_the_longest_ledger(ledger: SqliteStore) -> None:
    await ledger.append_audit((*some(2, "small"), *some(8, "large")), 6)
    assert (await numbers(ledger, "small"), await numbers(ledger, "large")) == ([1, 2], [5, 6, 7, 8])
    await ledger.append_audit(some(4, "small"), 6)
    assert (await numbers(ledger, "small"), await numbers(ledger, "large")) == ([4, 5, 6], [6, 7, 8])


async def test_a_step_removes_a_bounded_number_and_says_whether_more_is_left(ledger: SqliteStore) -> None:
    await ledger.append_audit(some(AUDIT_STEP_ROWS + 10), MANY)
    later = NOW + timedelta(days=1)
    assert not await ledger.prune_audit(later, MANY)
    assert await numbers(ledger) == list(range(AUDIT_STEP_ROWS + 1, AUDIT_STEP_ROWS + 11))
    assert await ledger.prune_audit(later, MANY)
    assert await numbers(ledger) == []


async def test_old_records_go_and_those_that_are_kept_stay(ledger: SqliteStore) -> None:
    await ledger.append_audit(some(10), MANY)
    assert await ledger.prune_audit(NOW + timedelta(seconds=4), MANY)
    assert await numbers(ledger) == [5, 6, 7, 8, 9, 10]
    assert await ledger.prune_audit(NOW, 2)
    assert await numbers(ledger) == [9, 10]


async def test_a_smaller_limit_hides_at_once_what_is_not_yet_removed(ledger: SqliteStore) -> None:
    await ledger.append_audit(some(10), MANY)
    assert await numbers(ledger, max_rows=3) == [8, 9, 10]


async def test_a_search_for_what_is_rare_is_done_in_parts(ledger: SqliteStore) -> None:
    await ledger.append_audit(some(AUDIT_WINDOW_ROWS + 10), MANY)
    rare = AuditFilter(after=EVER.after, run_id="run_0")
    first = await ledger.audit_page("default", rare, before_no=None, limit=10, max_rows=MANY)
    assert (first.records, first.next_no) == ((), 11)
    second = await ledger.audit_page("default", rare, before_no=11, limit=10, max_rows=MANY)
    assert ([record.ledger_no for record in second.records], second.next_no) == ([1], 0)


FILTERS: dict[str, Any] = {
    "agent_id": "research",
    "session_key": "agent:main:s",
    "run_id": "run_x",
    "channel": "mail",
    "status": AuditStatus.FAILED,
    "actions": (AuditAction.TOOL_STARTED, AuditAction.TOOL_FINISHED),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_every_filter_lets_pass_what_it_names(ledger: SqliteStore, name: str) -> None:
    value = FILTERS[name]
    fields: dict[str, Any] = {"action": AuditAction.TOOL_STARTED} if name == "actions" else {name: value}
    records = [a_record(1), replace(a_record(2), **fields), a_record(3)]
    await ledger.append_audit(tuple(records), MANY)
    assert await numbers(ledger, **{name: value}) == [2]


async def test_times_are_inclusive(ledger: SqliteStore) -> None:
    await ledger.append_audit(some(5), MANY)
    moment = NOW + timedelta(seconds=2)
    assert await numbers(ledger, after=moment) == [3, 4, 5]
    assert await numbers(ledger, before=moment) == [1, 2, 3]
    assert await numbers(ledger, after=moment, before=moment) == [3]


async def test_the_key_of_the_pseudonyms_stays_and_is_not_replaced_while_it_is_needed(
    open_store: OpenStore,
) -> None:
    store = await open_store()
    assert isinstance(store, SqliteStore)
    first, second = b"a" * 32, b"b" * 32
    assert await store.audit_key(first) == first
    assert await store.audit_key(second) == first
    await store.close()
    again = await open_store()
    assert isinstance(again, SqliteStore)
    assert await again.audit_key(second) == first
