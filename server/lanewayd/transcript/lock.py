"""One writer per session among processes (D-9).

The lock is the kernel's: a file lock under `locks/`, so a killed holder frees it by dying. The file is named by the
SHA-256 of tenant and session key; its holder removes it before release, and who acquires checks that the path still
names the file it locked. Beside it lies a JSON note of the holder, for error messages only: nothing decides by it.
"""

import asyncio
import hashlib
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode, LanewayError

FIRST_RETRY_S = 0.05
LONGEST_RETRY_S = 1.0


@dataclass(eq=False, slots=True)
class HeldLock:
    """A held session lock. Owned by the run that acquired it; given back through `SessionLocks.release`."""

    path: Path
    file_lock: FileLock
    holds: int = 1


class SessionLocks:
    """Takes and gives back session write locks. Owner of the files under its folder that this process holds."""

    def __init__(self, folder: Path, *, clock: Clock, acquire_timeout_s: float) -> None:
        """`folder` is made if missing. `acquire_timeout_s` <= 0 or NaN means the default of 60 s (R-3.5)."""
        self._folder = folder
        self._clock = clock
        self._acquire_timeout_s = acquire_timeout_s if acquire_timeout_s > 0 else 60.0
        self._held: dict[Path, HeldLock] = {}
        # Read once: it costs more than the lock.
        self._holder = {
            "pid": os.getpid(),
            "process_started": process_start(os.getpid()),
            "host": socket.gethostname(),
        }
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="session-lock")
        folder.mkdir(parents=True, exist_ok=True)

    def path_of(self, tenant: str, session_key: str) -> Path:
        """Where the lock of a session lies."""
        digest = hashlib.sha256(f"{tenant}\0{session_key}".encode()).hexdigest()
        return self._folder / f"{digest}.lock"

    async def acquire(
        self,
        tenant: str,
        session_key: str,
        *,
        run_id: str,
        allow_reentrant: bool = False,
        timeout_s: float | None = None,
    ) -> HeldLock:
        """Wait for the session's lock and hold it.

        A second acquire in this process waits like any other, unless `allow_reentrant`: then it joins and counts.
        Raises LanewayError SESSION_BUSY (metadata `holder`) after `timeout_s`. Cancelling takes nothing.
        """
        path = self.path_of(tenant, session_key)
        if allow_reentrant and path in self._held:
            joined = self._held[path]
            joined.holds += 1
            return joined
        limit_s = self._acquire_timeout_s if timeout_s is None else timeout_s
        deadline = self._clock.monotonic() + limit_s
        delay_s = FIRST_RETRY_S
        while True:
            held = await self._try(path, run_id)
            if held is not None:
                return held
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                raise self._busy(path, session_key, limit_s)
            await self._clock.sleep(min(delay_s, remaining_s))
            delay_s = min(delay_s * 2, LONGEST_RETRY_S)

    async def release(self, held: HeldLock) -> None:
        """Give one hold back; the last one frees the lock and removes its files. Idempotent."""
        if held.holds == 0:
            return
        held.holds -= 1
        if held.holds == 0:
            del self._held[held.path]
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, _unlock, held))

    def close(self) -> None:
        """End the worker thread; held locks stay held until the process ends."""
        self._threads.shutdown(wait=True)

    async def _try(self, path: Path, run_id: str) -> HeldLock | None:
        note = json.dumps({**self._holder, "run_id": run_id})
        attempt = asyncio.get_running_loop().run_in_executor(self._threads, _lock, path, note)
        try:
            held = await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(self._undo)
            raise
        if held is not None:
            self._held[path] = held
        return held

    def _undo(self, attempt: "asyncio.Future[HeldLock | None]") -> None:
        held = None if attempt.cancelled() or attempt.exception() else attempt.result()
        if held is not None:
            self._threads.submit(_unlock, held)

    def _busy(self, path: Path, session_key: str, limit_s: float) -> LanewayError:
        holder = _read_note(path)
        return LanewayError(
            ErrorCode.SESSION_BUSY,
            f"session {session_key} was written by another process for {limit_s:g} s ({holder}); "
            "end that process or try again later",
            metadata={"holder": holder},
        )


def _lock(path: Path, note: str) -> HeldLock | None:
    """One try, on the worker thread. None when somebody else holds it or the file was replaced meanwhile."""
    locked: list[os.stat_result] = []
    file_lock = FileLock(
        path,
        timeout=0,
        thread_local=False,
        fallback_to_soft=False,
        is_singleton=False,
        on_acquired=lambda descriptor: locked.append(os.fstat(descriptor)),
    )
    try:
        file_lock.acquire()
    except Timeout:
        return None
    try:
        is_current = os.path.samestat(path.stat(), locked[0])
    except FileNotFoundError:
        is_current = False
    if not is_current:
        file_lock.release()
        return None
    with suppress(OSError):  # nothing decides by the note: a full disk must not keep the lock from its holder
        _note_path(path).write_text(note)
    return HeldLock(path, file_lock)


def _unlock(held: HeldLock) -> None:
    """On the worker thread. The files go first: after the release they may be somebody else's."""
    for path in (_note_path(held.path), held.path):
        with suppress(OSError):  # what cannot be removed is in nobody's way
            path.unlink()
    held.file_lock.release()


def _note_path(path: Path) -> Path:
    return path.with_suffix(".json")


def process_start(pid: int) -> int:
    """The kernel's start time of a process in clock ticks since boot; 0 if it is gone. Source: proc(5), stat (22)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2 :].split()[19])


def _read_note(path: Path) -> str:
    try:
        note = json.loads(_note_path(path).read_text())
        return f"pid {int(note['pid'])} on {note['host']}, run {note['run_id']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "an unknown process"
