"""The session write lock among real processes. Cases B-049 and B-051, variant 1."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.unit.transcript.lock_checks import SESSION, check_busy, files, soon

from lanewayd.clock import SystemClock
from lanewayd.transcript.lock import SessionLocks, process_start

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
