"""One child process of the embedded model: started off the loop, heard and watched on it, ended at once.

Forking on the loop's thread would stop every stream for milliseconds, so it is started in a thread; its pipe and a
pidfd are watched by the loop (asyncio and uvloop alike).
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lanewayd.clock import Clock

_MOST_REPORT_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """What to start: `environment` is complete, `spec_line` is written to its stdin."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    spec_line: bytes


class StartFailed(Exception):
    """It did not come up; the text says why."""


class ModelProcess:
    """A started child. It lives until its stdin is closed: by `end`, or by the end of this process."""

    def __init__(self, command: ModelCommand) -> None:
        """Starts it; blocks, so not on the loop's thread. Raises OSError."""
        child_stdin, self._stdin_fd = os.pipe2(os.O_CLOEXEC)
        self._report_fd, child_stdout = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                command.argv,
                stdin=child_stdin,
                stdout=child_stdout,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=dict(command.environment),
                start_new_session=True,
            )
            try:
                self._pidfd = os.pidfd_open(self._process.pid)
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise
        except BaseException:
            os.close(self._stdin_fd)
            os.close(self._report_fd)
            raise
        finally:
            os.close(child_stdin)
            os.close(child_stdout)
        os.set_blocking(self._report_fd, False)
        with suppress(BrokenPipeError):  # dead already: that is seen where its report is awaited
            os.write(self._stdin_fd, command.spec_line)

    @property
    def pid(self) -> int:
        """Its process id, which is also its group's."""
        return self._process.pid

    async def port(self, *, clock: Clock, limit_s: float) -> int:
        """The port it serves. Raises StartFailed: it said so, died, or said nothing for `limit_s`."""
        line = await self._report(clock, limit_s)
        try:
            report = json.loads(line)
        except ValueError:
            report = {}
        if not isinstance(report, dict) or not isinstance(report.get("port"), int):
            raise StartFailed(str(report.get("error")) if isinstance(report, dict) and report else "it died")
        return int(report["port"])

    async def death(self) -> None:
        """Return when it is dead."""
        loop = asyncio.get_running_loop()
        died: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._pidfd, _settle, died)
        try:
            await died
        finally:
            loop.remove_reader(self._pidfd)

    def kill(self) -> None:
        """KILL it and what it may have started. Its number is ours until it is reaped."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self) -> int:
        """Kill it if it lives, reap it, give every descriptor back; its exit code, negative for a signal. Only once."""
        self.kill()
        os.close(self._stdin_fd)
        # In a thread: it is as good as dead, but a page that is being read may hold it for a moment.
        exit_code = await asyncio.to_thread(self._process.wait)
        os.close(self._report_fd)
        os.close(self._pidfd)
        return exit_code

    async def _report(self, clock: Clock, limit_s: float) -> bytes:
        """Its line; what there is of it when the pipe is closed, nothing when the time is over."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[None] = loop.create_future()
        received = bytearray()

        def read() -> None:
            with suppress(BlockingIOError):
                chunk = os.read(self._report_fd, _MOST_REPORT_BYTES)
                received.extend(chunk)
                if not chunk or b"\n" in chunk or len(received) >= _MOST_REPORT_BYTES:
                    _settle(heard)

        timer = clock.call_later(limit_s, lambda: _settle(heard, StartFailed(f"it was not ready within {limit_s:g} s")))
        loop.add_reader(self._report_fd, read)
        try:
            await heard
        finally:
            loop.remove_reader(self._report_fd)
            timer.cancel()
        return bytes(received)


def _settle(future: asyncio.Future[None], error: Exception | None = None) -> None:
    if not future.done():
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
