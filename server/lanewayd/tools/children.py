"""Child processes: started off the loop, read on it, and ended with everything they started.

Forking on the loop's thread would stop every stream for milliseconds, so children are started in a few threads that
`ChildProcesses` owns. Their pipe and a pidfd are watched by the loop (asyncio and uvloop alike). A child is over when
its shell is over, not when its pipe is closed: a background process may hold that for ever.
Whatever a child started is dead when its call returns: its process session, what carries its marks, what descends
from those.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from lanewayd.clock import Clock
from lanewayd.tools.leftovers import CALL_VARIABLE, OWNER_VARIABLE, RUN_VARIABLE, Owner, find_call
from lanewayd.tools.processes import end_processes
from lanewayd.tools.shielding import end_of

_READ_BYTES = 32_768
_DRAIN_LIMIT_BYTES = 1_048_576
CALL_GRACE_S = 1.5
"""Between TERM and KILL: an aborted run ends within 2 s, whatever its commands do with TERM."""
_LEFTOVER_GRACE_S = 0.5
"""For what a command leaves in the background: the call must return within a second of its shell."""


class ChildCause(Enum):
    """Why a child is over."""

    EXITED = auto()
    TIMED_OUT = auto()


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """What to start. `environment` is complete but for the marks. `timeout_s` None = none."""

    run_id: str
    call_id: str
    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How it ended. A negative `exit_code` is the signal that killed it."""

    cause: ChildCause
    exit_code: int
    left_over_count: int
    """Processes that were ended after an EXITED shell."""


class _Child:
    """A started process: its Popen, its pidfd, and the read end of the pipe that takes both of its streams."""

    def __init__(self, command: ChildCommand, owner: Owner) -> None:
        self.output_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(self.output_fd, False)
            self.process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=write_fd,
                stderr=write_fd,
                cwd=command.directory,
                env={
                    **command.environment,
                    OWNER_VARIABLE: str(owner),
                    RUN_VARIABLE: command.run_id,
                    CALL_VARIABLE: command.call_id,
                },
                start_new_session=True,
            )
        except BaseException:
            os.close(self.output_fd)
            raise
        finally:
            os.close(write_fd)
        try:
            self.pidfd = os.pidfd_open(self.process.pid)
        except BaseException:
            self.kill_group()
            self.process.wait()
            os.close(self.output_fd)
            raise

    def kill_group(self) -> None:
        """KILL the process group. Its number is ours until the child is reaped."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


class _Output:
    """Hands what is in the pipe to `take`, one read per turn of the loop so that others get theirs."""

    def __init__(self, output_fd: int, take: Callable[[bytes], None]) -> None:
        self._fd = output_fd
        self._take = take
        self._is_open = True
        asyncio.get_running_loop().add_reader(output_fd, self._read)

    def drain(self) -> None:
        """Take what is there now, without waiting. Bounded: a background process may write without end."""
        taken_bytes = 0
        while self._is_open and taken_bytes < _DRAIN_LIMIT_BYTES:
            read_bytes = self._read()
            if read_bytes == 0:
                return
            taken_bytes += read_bytes

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> int:
        try:
            chunk = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return 0
        if not chunk:
            self.close()
            return 0
        self._take(chunk)
        return len(chunk)


class ChildProcesses:
    """Starts and ends children. Owns its threads; `close` when no call is left."""

    def __init__(self, *, owner: Owner, clock: Clock, grace_s: float = CALL_GRACE_S) -> None:
        self._owner = owner
        self._clock = clock
        self._grace_s = grace_s
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="children")

    def close(self) -> None:
        """End the threads. Waits for those at work."""
        self._threads.shutdown()

    async def run(self, command: ChildCommand, take: Callable[[bytes], None]) -> ChildEnd:
        """Run it to its end; `take` gets its output as it comes.

        When the time is over or the caller is cancelled, everything it started gets TERM and, after the grace, KILL.
        Raises OSError if it cannot be started, ValueError if an argument cannot be passed to a process.
        """
        child = await self._start(command)
        output = _Output(child.output_fd, take)
        try:
            cause = await self._exit_or_timeout(child, command.timeout_s)
        except BaseException:
            await self._ended(child, output, command, self._grace_s)
            raise
        grace_s = _LEFTOVER_GRACE_S if cause is ChildCause.EXITED else self._grace_s
        left_over_count = await self._ended(child, output, command, grace_s)
        return ChildEnd(cause, child.process.returncode, left_over_count)

    async def _start(self, command: ChildCommand) -> _Child:
        submitted = self._threads.submit(_Child, command, self._owner)
        starting = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread may be past the point of no return; what it starts is then ours to end.
            if not submitted.cancel():
                with suppress(asyncio.CancelledError, OSError, ValueError):
                    await end_of(starting)
                if starting.exception() is None:
                    output = _Output(starting.result().output_fd, lambda _chunk: None)
                    with suppress(asyncio.CancelledError):
                        await self._ended(starting.result(), output, command, self._grace_s)
            raise

    async def _ended(self, child: _Child, output: _Output, command: ChildCommand, grace_s: float) -> int:
        """`_end`, done to its end whatever happens to the caller."""
        return await end_of(asyncio.ensure_future(self._end(child, output, command, grace_s)))

    async def _exit_or_timeout(self, child: _Child, timeout_s: float | None) -> ChildCause:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[ChildCause] = loop.create_future()

        def end(cause: ChildCause) -> None:
            if not over.done():
                over.set_result(cause)

        timer = None if timeout_s is None else self._clock.call_later(timeout_s, lambda: end(ChildCause.TIMED_OUT))
        loop.add_reader(child.pidfd, end, ChildCause.EXITED)
        try:
            return await over
        finally:
            loop.remove_reader(child.pidfd)
            if timer is not None:
                timer.cancel()

    async def _end(self, child: _Child, output: _Output, command: ChildCommand, grace_s: float) -> int:
        """End all that is left, take the last output, reap, and give every descriptor back."""
        session_id = child.process.pid
        try:
            return await end_processes(
                lambda: find_call(self._owner, command.run_id, command.call_id, session_id=session_id),
                clock=self._clock,
                grace_s=grace_s,
                threads=self._threads,
            )
        except OSError:
            # Out of descriptors: the group at least can be ended without one.
            return 0
        finally:
            child.kill_group()
            output.drain()
            output.close()
            os.close(child.pidfd)
            # Dead by now, so that this does not wait; in a thread because a stuck system call may delay a death.
            await asyncio.get_running_loop().run_in_executor(self._threads, child.process.wait)
