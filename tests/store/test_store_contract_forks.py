"""The contract of `Store`: forking sessions. Run against every implementation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.store_commands import NOW, SESSION, TENANT, an_entry, append_to, ends, running

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.records import EntryKind
from lanewayd.store.interface import ForkSession, ResetSession, RunChange, Store

FORK = "agent:main:fork"


def a_fork(**changes: Any) -> ForkSession:
    ids: Iterator[int] = iter(range(1000))
    command = ForkSession(
        tenant=TENANT,
        session_key=SESSION,
        entry_id="",
        new_session_key=FORK,
        new_session_id="id of the fork",
        label="",
        now=NOW,
        max_entries=100,
        max_bytes=10_000,
        new_entry_id=lambda: f"copy {next(ids)}",
        blobs_named_by=lambda _kind, _body: (),
    )
    return replace(command, **changes)


async def said(store: Store, *entry_ids: str) -> None:
    """A run of the session that wrote these entries and has ended."""
    await running(store, "r1")
    entries = tuple(an_entry(entry_id, body_json='"é"') for entry_id in entry_ids)
    await store.append(append_to("r1", 2, RunChange(entries=entries), ends()))


async def test_a_fork_that_fails_half_way_leaves_nothing(store: Store) -> None:
    await said(store, "a", "b", "c")
    with pytest.raises(IndexError):
        await store.fork_session(a_fork(new_entry_id=["second copy", "first copy"].pop))
    with pytest.raises(ValueError, match="UNIQUE"):
        await store.fork_session(a_fork(new_entry_id=lambda: "the same"))
    assert await store.session(TENANT, FORK) is None
    assert await store.context("id of the fork") == []
    forked = await store.fork_session(a_fork())
    assert (forked.entries, forked.session.leaf_entry_id) == (3, "copy 2")
    assert [entry.entry_id for entry in await store.context("id of the fork")] == ["copy 0", "copy 1", "copy 2"]


async def test_a_fork_counts_entries_and_bytes_on_the_way_to_its_entry_only(store: Store) -> None:
    await said(store, "a", "b", "c")
    for limits in ({"max_entries": 2}, {"max_bytes": 11}):
        with pytest.raises(LanewayError) as caught:
            await store.fork_session(a_fork(**limits))
        assert (caught.value.code, caught.value.metadata) == (ErrorCode.FIELD_INVALID, {"field": "entry_id"})
    assert (await store.fork_session(a_fork(max_entries=3, max_bytes=12))).entries == 3
    at_second = a_fork(new_session_key="agent:main:x", new_session_id="x", entry_id="b", max_entries=2, max_bytes=8)
    copies = iter("xy")
    assert (await store.fork_session(replace(at_second, new_entry_id=lambda: next(copies)))).entries == 2


async def test_what_a_reset_took_from_the_model_is_copied_and_stays_out_of_its_sight(store: Store) -> None:
    await said(store, "a")
    await store.reset_session(ResetSession(TENANT, SESSION, an_entry("r", EntryKind.RESET)))
    assert (await store.fork_session(a_fork())).entries == 2
    assert [entry.kind for entry in await store.context("id of the fork")] == [EntryKind.RESET]


async def test_a_session_without_entries_has_a_fork_without_entries(store: Store) -> None:
    await running(store, "r1")
    assert (await store.fork_session(a_fork())).entries == 0
    assert (await store.fork_session(a_fork())).is_duplicate
