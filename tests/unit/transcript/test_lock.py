"""The session write lock (D-9): real files, real processes. Cases B-049 and B-051, variant 1."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.clock import SystemClock
from lanewayd.errors import LanewayError
from lanewayd.transcript.lock import SessionLocks, process_start

SESSION = "agent:main:talk"
T = TypeVar("T")

HOLDER = """
import asyncio, sys
from pathlib import Path
from lanewayd.clock import SystemClock
from lanewayd.transcript.lock import SessionLocks

async def hold():
    locks = SessionLocks(Path(sys.argv[1]), clock=SystemClock(), acquire_timeout_s=60)
    held = await locks.acquire("default", "agent:main:talk", run_id="run_other")
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await locks.release(held)
    print("released", flush=True)

asyncio.run(hold())
"""

RACER = """
import asyncio, os, sys
from pathlib import Path
from lanewayd.clock import SystemClock
from lanewayd.errors import LanewayError
from lanewayd.transcript.lock import SessionLocks

async def race(folder, witness):
    locks = SessionLocks(folder, clock=SystemClock(), acquire_timeout_s=60)
    wins = 0
    for line in iter(sys.stdin.readline, ""):
        try:
            held = await locks.acquire("default", "agent:main:talk", run_id=line.strip(), timeout_s=0.001)
        except LanewayError:
            print("lost", flush=True)
            continue
        try:
            os.close(os.open(witness, os.O_CREAT | os.O_EXCL))  # raises if the other one is inside too
            os.sched_yield()
            os.unlink(witness)
        finally:
            await locks.release(held)
        print("won", flush=True)

asyncio.run(race(Path(sys.argv[1]), sys.argv[2]))
"""


async def soon(what: "asyncio.Future[T] | asyncio.Task[T]") -> T:
    async with asyncio.timeout(10):
        return await what


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


MakeLocks = Callable[..., SessionLocks]


@pytest.fixture
async def make(folder: Path, clock: FakeClock) -> AsyncIterator[MakeLocks]:
    """Makes lock services as of several processes; all are closed at the end."""
    made: list[SessionLocks] = []

    def make_one(acquire_timeout_s: float = 60.0) -> SessionLocks:
        made.append(SessionLocks(folder, clock=clock, acquire_timeout_s=acquire_timeout_s))
        return made[-1]

    yield make_one
    for locks in made:
        locks.close()


async def check_free(locks: SessionLocks) -> None:
    """The session's lock can be had at once."""
    await locks.release(await locks.acquire("default", SESSION, run_id="run_check", timeout_s=0))


async def check_busy(locks: SessionLocks) -> LanewayError:
    """The session's lock cannot be had; what that says."""
    with pytest.raises(LanewayError) as raised:
        await locks.acquire("default", SESSION, run_id="run_check", timeout_s=0)
    assert raised.value.code == "SESSION_BUSY"
    return raised.value


async def until_waiting(clock: FakeClock) -> None:
    async with asyncio.timeout(10):
        await clock.wait_for_sleepers(1)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@asynccontextmanager
async def a_process(script: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(20):
        return (await process.stdout.readline()).decode().strip()


async def tell(process: asyncio.subprocess.Process, text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    await process.stdin.drain()


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


# --- other processes ---


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


async def test_b049_the_lock_of_a_killed_process_is_taken_over_at_once(folder: Path) -> None:
    folder.mkdir()
    locks = SessionLocks(folder, clock=SystemClock(), acquire_timeout_s=60)
    async with a_process(HOLDER, str(folder)) as holder:
        assert await line_of(holder) == "held"
        assert f"pid {holder.pid} on {os.uname().nodename}, run run_other" in (await check_busy(locks)).message
        holder.send_signal(signal.SIGKILL)
        await holder.wait()
        assert len(files(folder)) == 2  # left behind
        held = await locks.acquire("default", SESSION, run_id="run_1", timeout_s=0)
    await locks.release(held)
    assert files(folder) == []
    locks.close()


async def test_b049_two_processes_that_race_never_both_win(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    witness = str(tmp_path / "inside")
    async with a_process(RACER, str(folder), witness) as one, a_process(RACER, str(folder), witness) as two:
        wins = 0
        for number in range(100):
            await tell(one, f"run_{number}a")
            await tell(two, f"run_{number}b")
            results = [await line_of(one), await line_of(two)]
            assert set(results) <= {"won", "lost"}, "both were inside"
            wins += results.count("won")
        assert wins >= 100  # one of the two at least, each time
    assert files(folder) == []


async def test_b051_another_process_waits_or_is_told_and_the_holder_goes_on(folder: Path) -> None:
    """Variant 1: it asks for the lock."""
    folder.mkdir()
    locks = SessionLocks(folder, clock=SystemClock(), acquire_timeout_s=60)
    async with a_process(HOLDER, str(folder)) as holder:
        assert await line_of(holder) == "held"
        await check_busy(locks)
        waiting = asyncio.create_task(locks.acquire("default", SESSION, run_id="run_1"))
        await tell(holder, "done")
        assert await line_of(holder) == "released"
        held = await soon(waiting)
        assert await holder.wait() == 0
    await locks.release(held)
    locks.close()


def test_the_start_of_a_process_that_is_gone_is_0() -> None:
    assert process_start(os.getpid()) > 0
    assert process_start(2**22 + 1) == 0
