"""Other processes of this machine: finding them in /proc and ending them for good. Linux only.

A process found is held by a pidfd, checked after it was opened: a signal can never hit one that took over its number.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lanewayd.clock import Clock

_PROC = Path("/proc")
_MOST_ROUNDS = 50
_DEATH_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One line of /proc/<pid>/stat. Source: proc(5)."""

    pid: int
    parent_pid: int
    session_id: int
    is_dead: bool
    start_ticks: int


@dataclass(frozen=True, slots=True)
class ProcessHandle:
    """A process that was alive when it was found. Who gets it closes it."""

    pid: int
    pidfd: int

    def signal(self, signal_number: signal.Signals) -> None:
        """Send it; harmless when the process is gone."""
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self.pidfd, signal_number)

    def close(self) -> None:
        os.close(self.pidfd)


def stat_of(pid: int) -> ProcessStat | None:
    """None if there is no such process."""
    try:
        line = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name stands in brackets and may itself hold brackets and spaces.
    fields = line[line.rindex(b")") + 2 :].split()
    return ProcessStat(
        pid=pid,
        parent_pid=int(fields[1]),
        session_id=int(fields[3]),
        is_dead=fields[0] in (b"Z", b"X"),
        start_ticks=int(fields[19]),
    )


def living_processes() -> dict[int, ProcessStat]:
    """All but this process and the first one, by number; zombies are not alive."""
    spared = (1, os.getpid())
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    stats = [stat_of(pid) for pid in pids if pid not in spared]
    return {stat.pid: stat for stat in stats if stat is not None and not stat.is_dead}


def environment_of(pid: int) -> frozenset[bytes]:
    """The `NAME=value` entries it was started with; empty if it is gone or another user's."""
    try:
        return frozenset((_PROC / str(pid) / "environ").read_bytes().split(b"\x00"))
    except OSError:
        return frozenset()


def with_descendants(pids: Iterable[int], living: dict[int, ProcessStat]) -> set[int]:
    """`pids` and every living process that descends from one of them."""
    children: dict[int, list[int]] = {}
    for stat in living.values():
        children.setdefault(stat.parent_pid, []).append(stat.pid)
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def hold(stats: Iterable[ProcessStat]) -> list[ProcessHandle]:
    """Handles of those that still are what they were when `stats` was read.

    Raises OSError if no more file descriptors are to be had; none is held then.
    """
    handles: list[ProcessHandle] = []
    try:
        for stat in stats:
            try:
                handle = ProcessHandle(stat.pid, os.pidfd_open(stat.pid))
            except ProcessLookupError:
                continue
            handles.append(handle)
            now = stat_of(stat.pid)
            if now is None or now.start_ticks != stat.start_ticks:
                handles.pop().close()
    except OSError:
        close_all(handles)
        raise
    return handles


def close_all(handles: Iterable[ProcessHandle]) -> None:
    for handle in handles:
        handle.close()


async def deaths_of(handles: Iterable[ProcessHandle], *, clock: Clock, limit_s: float) -> None:
    """Return when all are dead or `limit_s` has passed."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    alive = {handle.pidfd for handle in handles}

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def died(pidfd: int) -> None:
        loop.remove_reader(pidfd)
        alive.discard(pidfd)
        if not alive:
            finish()

    if not alive:
        return
    timer = clock.call_later(limit_s, finish)
    try:
        for pidfd in tuple(alive):
            loop.add_reader(pidfd, died, pidfd)
        await done
    finally:
        timer.cancel()
        for pidfd in alive:
            loop.remove_reader(pidfd)


async def end_processes(
    find: Callable[[], list[ProcessHandle]], *, clock: Clock, grace_s: float, threads: Executor | None = None
) -> int:
    """TERM to all that `find` finds, KILL to those that are there after `grace_s`; return when none is found any more.

    `find` runs in `threads` and is asked again after each round, because what dies may start others before it does.
    Returns how many were found at first. Raises OSError like `hold`. Not to be cancelled half-way: see `end_of`.
    """
    loop = asyncio.get_running_loop()
    first_count = 0
    for attempt in range(_MOST_ROUNDS):
        handles = await loop.run_in_executor(threads, find)
        try:
            if not handles:
                break
            if attempt == 0:
                first_count = len(handles)
            for handle in handles:
                handle.signal(signal.SIGTERM if attempt == 0 else signal.SIGKILL)
            await deaths_of(handles, clock=clock, limit_s=grace_s if attempt == 0 else _DEATH_LIMIT_S)
        finally:
            close_all(handles)
    return first_count
