"""The session write lock (D-9) on real files."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.transcript.lock_checks import SESSION, MakeLocks, check_busy, check_free, files, soon, until_waiting

from lanewayd.clock import SystemClock
from lanewayd.errors import LanewayError
from lanewayd.transcript.lock import SessionLocks, process_start

# --- taking and giving back ---


async def test_a_lock_has_its_files_while_it_is_held_and_none_afterwards(make: MakeLocks, folder: Path) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    [lock, note] = [locks.path_of("default", SESSION), locks.path_of("default", SESSION).with_suffix(".json")]
    assert files(folder) == sorted([lock.name, note.name])
    assert json.loads(note.read_text()) == {
        "pid": os.getpid(),
        "process_started": process_start(os.getpid()),
        "host": os.uname().nodename,
        "run_id": "run_1",
    }
    await locks.release(held)
    assert files(folder) == []


def test_each_session_of_each_tenant_has_its_own_file(folder: Path) -> None:
    locks = SessionLocks(folder, clock=SystemClock(), acquire_timeout_s=60)
    paths = {
        locks.path_of(tenant, key) for tenant, key in [("a", "x"), ("b", "x"), ("a", "y"), ("a", "../x"), ("a\0x", "")]
    }
    assert len(paths) == 5
    assert all(path.parent == folder for path in paths)
    locks.close()


async def test_other_sessions_and_other_tenants_do_not_meet(make: MakeLocks, folder: Path) -> None:
    locks, names = make(), [("default", "one"), ("default", "two"), ("other tenant", "one")]
    held = [await locks.acquire(tenant, key, run_id="r", timeout_s=0) for tenant, key in names]
    for each in held:
        await locks.release(each)
    assert files(folder) == []


async def test_release_is_idempotent_and_never_frees_the_next_holders_lock(make: MakeLocks, folder: Path) -> None:
    locks, other = make(), make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    await locks.release(held)
    second = await other.acquire("default", SESSION, run_id="run_2")
    await locks.release(held)
    await check_busy(locks)
    assert len(files(folder)) == 2
    await other.release(second)


@pytest.mark.parametrize("is_same_process", [True, False])
async def test_a_second_acquire_waits_and_gets_the_lock_when_it_is_free(
    make: MakeLocks, clock: FakeClock, is_same_process: bool
) -> None:
    locks = make()
    others = locks if is_same_process else make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    waiting = asyncio.create_task(others.acquire("default", SESSION, run_id="run_2"))
    for delay_s in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        await until_waiting(clock)
        await clock.advance(delay_s * 0.99)
        assert clock.sleeper_count == 1
        await clock.advance(delay_s * 0.02)
    await until_waiting(clock)
    await locks.release(held)
    await clock.advance(1.0)
    await others.release(await soon(waiting))


async def test_who_asks_to_join_joins_and_the_lock_is_free_when_all_have_left(make: MakeLocks, folder: Path) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    joined = await locks.acquire("default", SESSION, run_id="run_1", allow_reentrant=True)
    await locks.release(held)
    await check_busy(make())
    await locks.release(joined)
    assert files(folder) == []
    await locks.release(joined)
    await check_free(make())


async def test_joining_a_lock_that_nobody_holds_takes_it(make: MakeLocks, folder: Path) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1", allow_reentrant=True)
    assert len(files(folder)) == 2
    await locks.release(held)


# --- waiting in vain ---


async def test_a_wait_that_is_over_names_the_holder(make: MakeLocks, clock: FakeClock) -> None:
    holder = make()
    held = await holder.acquire("default", SESSION, run_id="run_1")
    waiting = asyncio.create_task(make().acquire("default", SESSION, run_id="run_2"))
    while clock.monotonic() < 60.0:
        await until_waiting(clock)
        assert not waiting.done()
        await clock.advance(min(1.0, 60.0 - clock.monotonic()))
    with pytest.raises(LanewayError) as raised:
        await soon(waiting)
    assert raised.value.code == "SESSION_BUSY"
    assert raised.value.metadata["holder"] == f"pid {os.getpid()} on {os.uname().nodename}, run run_1"
    assert "60 s" in raised.value.message
    assert raised.value.metadata["holder"] in raised.value.message
    await holder.release(held)


@pytest.mark.parametrize("note", [None, b"", b"{", b"[]", b'{"pid":"x"}', b"\xff\xfe", b"null"])
async def test_a_note_that_cannot_be_read_changes_nothing_but_the_text(make: MakeLocks, note: bytes | None) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    path = locks.path_of("default", SESSION).with_suffix(".json")
    if note is None:
        path.unlink()
    else:
        path.write_bytes(note)
    assert (await check_busy(make())).metadata["holder"] == "an unknown process"
    await locks.release(held)
    await check_free(make())


async def test_a_note_that_cannot_be_written_does_not_matter(make: MakeLocks, folder: Path) -> None:
    locks = make()
    path = locks.path_of("default", SESSION)
    path.with_suffix(".json").mkdir()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    await check_busy(make())
    await locks.release(held)
    assert not path.exists()
    await check_free(make())


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
async def test_a_limit_that_makes_no_sense_is_the_default(make: MakeLocks, clock: FakeClock, timeout_s: float) -> None:
    holder = make()
    held = await holder.acquire("default", SESSION, run_id="run_1")
    locks = make(timeout_s)
    waiting = asyncio.create_task(locks.acquire("default", SESSION, run_id="run_2"))
    await until_waiting(clock)
    await clock.advance(0.05)
    await until_waiting(clock)
    await holder.release(held)
    await clock.advance(0.1)
    await locks.release(await soon(waiting))


async def test_an_endless_limit_is_allowed(make: MakeLocks, clock: FakeClock) -> None:
    holder = make()
    held = await holder.acquire("default", SESSION, run_id="run_1")
    locks = make(float("inf"))
    waiting = asyncio.create_task(locks.acquire("default", SESSION, run_id="run_2"))
    await until_waiting(clock)
    await clock.advance(10**9)
    await until_waiting(clock)
    await holder.release(held)
    await clock.advance(1.0)
    await locks.release(await soon(waiting))


# --- cancelling ---


async def test_a_cancelled_wait_takes_nothing(make: MakeLocks, clock: FakeClock, folder: Path) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    waiting = asyncio.create_task(locks.acquire("default", SESSION, run_id="run_2"))
    await until_waiting(clock)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(waiting)
    await locks.release(held)
    assert files(folder) == []


async def test_an_acquire_that_is_cancelled_while_it_succeeds_takes_nothing(make: MakeLocks, folder: Path) -> None:
    locks = SessionLocks(folder, clock=SystemClock(), acquire_timeout_s=60)
    for number in range(50):
        taking = asyncio.create_task(locks.acquire("default", SESSION, run_id=f"run_{number}"))
        for _ in range(number % 3):
            await asyncio.sleep(0)
        taking.cancel()
        try:
            await soon(taking)
        except asyncio.CancelledError:
            pass
        else:
            raise AssertionError("it was not cancelled")
    await locks.release(await locks.acquire("default", SESSION, run_id="last"))
    assert files(folder) == []
    locks.close()


async def test_a_release_that_is_cancelled_gives_the_lock_back_all_the_same(make: MakeLocks, folder: Path) -> None:
    locks = make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    releasing = asyncio.create_task(locks.release(held))
    await asyncio.sleep(0)
    releasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(releasing)
    await check_free(locks)
    assert files(folder) == []


async def test_a_lock_on_a_file_that_was_replaced_does_not_count(make: MakeLocks, folder: Path) -> None:
    """Whoever takes the lock away from the path has given the session up: the next one gets it."""
    locks, other = make(), make()
    held = await locks.acquire("default", SESSION, run_id="run_1")
    locks.path_of("default", SESSION).unlink()
    second = await other.acquire("default", SESSION, run_id="run_2", timeout_s=0)
    await check_busy(make())
    await other.release(second)
    await locks.release(held)
    assert files(folder) == []
