"""Commits that fail: who hears of it, what is stored, and how the store goes on."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.commit_gates import FailingGate
from tests.fakes.commit_listener import RecordingListener
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import (
    TENANT,
    a_key,
    accept_run,
    append_to,
    running,
    says,
)

from lanewayd.errors import ErrorCode, LanewayError, StoreUnavailable
from lanewayd.store.interface import RunFilter
from lanewayd.store.opening import OpenOptions
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer import WriterLimits

SOON = WriterLimits(first_retry_s=0.001, last_retry_s=0.004)


async def open_store(home: Path, **options: Any) -> SqliteStore:
    return await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), **options)


def is_failing(store: SqliteStore) -> bool:
    return store.failing_since is not None


async def stored_runs(store: SqliteStore) -> set[str]:
    return {run.run_id for run in await store.runs(TENANT, RunFilter(), before_no=None, limit=10_000)}


async def test_a_failed_commit_fails_the_whole_group_and_stores_nothing(tmp_path: Path) -> None:
    gate = FailingGate()
    store = await open_store(tmp_path, gate=gate, limits=SOON)
    listener = store.listener = RecordingListener()
    await running(store, "r1")
    gate.is_failing = True
    results = await asyncio.gather(
        store.accept(accept_run("r2", "s2", key=a_key())),
        store.accept(accept_run("r3", "s3", key=a_key())),
        store.accept(accept_run("r4", "s4", key=a_key(request=b"other"))),  # refused, if the first one is stored
        store.append(append_to("r1", 2, says("lost"))),
        return_exceptions=True,
    )
    assert {type(result) for result in results} == {StoreUnavailable}
    assert all(result.code is ErrorCode.STORE_UNAVAILABLE for result in results if isinstance(result, LanewayError))
    assert await stored_runs(store) == {"r1"}
    assert is_failing(store)
    gate.is_failing = False
    await listener.is_working.wait()
    assert not is_failing(store)
    assert listener.failures == ["[Errno 28] No space left on device"]
    answer = await store.accept(accept_run("r5", "s5", key=a_key(request=b"other")))
    assert (answer.run_id, answer.duplicate, answer.run and answer.run.accepted_no) == ("r5", False, 2)
    appended = await store.append(append_to("r1", 2, says("again")))
    assert (appended.events[0].seq, appended.events[0].position) == (2, 2)
    await store.close()


async def test_a_failing_store_tries_by_itself_until_it_works(tmp_path: Path) -> None:
    class CountingGate(FailingGate):
        loop = asyncio.get_running_loop()
        failed_often = asyncio.Event()

        def before_commit(self, commands: Sequence[object]) -> None:
            if self.failures == 5:
                self.loop.call_soon_threadsafe(self.failed_often.set)
            super().before_commit(commands)

    gate = CountingGate()
    store = await open_store(tmp_path, gate=gate, limits=SOON)
    listener = store.listener = RecordingListener()
    gate.is_failing = True
    with pytest.raises(StoreUnavailable):
        await store.accept(accept_run("r1"))
    await gate.failed_often.wait()
    assert not listener.is_working.is_set()
    gate.is_failing = False
    await listener.is_working.wait()
    assert len(listener.failures) == 1
    await store.close()


async def test_a_run_goes_on_in_order_after_a_failed_group(tmp_path: Path) -> None:
    gate = FailingGate()
    store = await open_store(tmp_path, gate=gate, limits=SOON)
    await running(store, "r1")
    seq, texts = 2, [f"text {number}" for number in range(30)]
    for number, text in enumerate(texts):
        gate.is_failing = number % 3 == 0
        while True:
            try:
                await store.append(append_to("r1", seq, says(text)))
                break
            except StoreUnavailable:
                gate.is_failing = False
        seq += 1
    page = await store.run_events(TENANT, "r1", after_seq=1, limit=100)
    assert page is not None
    assert [event.seq for event in page.events] == list(range(2, 32))
    positions = [event.position for event in page.events]
    assert positions == sorted(set(positions))
    assert [text.encode() in event.encoded for text, event in zip(texts, page.events, strict=True)] == [True] * 30
    await store.close()


class CommitsThenFails(sqlite3.Connection):
    """Reports an error for a COMMIT that has happened, when told."""

    is_armed = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = super().execute(sql, *parameters)
        if sql == "COMMIT" and CommitsThenFails.is_armed:
            CommitsThenFails.is_armed = False
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


async def test_a_group_that_is_there_after_a_commit_error_is_acknowledged(tmp_path: Path) -> None:
    store = await open_store(tmp_path, options=OpenOptions(connection_class=CommitsThenFails))
    listener = store.listener = RecordingListener()
    await running(store, "r1")
    CommitsThenFails.is_armed = True
    appended = await store.append(append_to("r1", 2, says("kept")))
    assert not CommitsThenFails.is_armed
    assert appended.events[0].seq == 2
    assert (listener.failures, store.failing_since) == ([], None)
    assert (await store.append(append_to("r1", 3, says("next")))).events[0].position == appended.events[0].position + 1
    await store.close()


class FailsToBegin(sqlite3.Connection):
    """Cannot take the write lock, when told."""

    is_armed = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE" and FailsToBegin.is_armed:
            FailsToBegin.is_armed = False
            raise sqlite3.OperationalError("database is locked")
        return super().execute(sql, *parameters)


async def test_a_group_that_could_not_begin_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    store = await open_store(tmp_path, limits=SOON, options=OpenOptions(connection_class=FailsToBegin))
    listener = store.listener = RecordingListener()
    await store.accept(accept_run("r1"))
    FailsToBegin.is_armed = True
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.accept(accept_run("r2"))
    await listener.is_working.wait()
    assert await stored_runs(store) == {"r1"}
    await store.close()
