"""A `laneway serve` of its own process, which outlives the command that starts it."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from laneway.channels import open_channel
from laneway.cli.exits import CliError, ExitCode

_START_TIMEOUT_S = 60.0
_LOSER_TIMEOUT_S = 15.0
"""How long the loser of a race for the home waits for the winner's socket."""
_HOME_IN_USE = "another server uses the home"
"""What the loser of that race says; any other refusal is final."""
_LOG_LINES = 5
_LOG_LIMIT_BYTES = 1024 * 1024
"""A log above this is put aside at the next start; the one before it goes."""
_RUN_VARIABLES = ("LANEWAY_RUN_ID", "LANEWAY_CALL_ID", "LANEWAY_OWNER", "LANEWAY_ADDRESS")
"""They belong to the tool call this command may run in; a server that had them would be ended with that call."""


def _inheritable_files() -> list[int]:
    """What this process would hand on besides its streams. A pipe of its own caller among it would then stay open, and
    the caller would wait for the server's end instead of this command's."""
    numbers = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    inheritable = []
    for number in numbers:
        with suppress(OSError):  # the folder's own number is closed by now
            if number > 2 and os.get_inheritable(number):
                inheritable.append(number)
    return inheritable


@dataclass(slots=True)
class ServerProcess:
    """One started server. Its output goes to `run/server.log` in home."""

    pid: int
    log_path: Path
    _log_start: int
    """What stood in the log before, in bytes."""
    _pidfd: int
    _exit_status: int | None = None

    @classmethod
    def start(cls, home: Path, arguments: Sequence[str], environ: Mapping[str, str]) -> Self:
        """Start `laneway serve` with `arguments` in a session of its own. Raises CliError when the home is unusable."""
        run_path = home / "run"
        log_path = run_path / "server.log"
        child_environ = {name: value for name, value in environ.items() if name not in _RUN_VARIABLES}
        child_environ["LANEWAY_HOME"] = str(home)
        if child_environ.get("LANEWAY_CONFIG"):
            child_environ["LANEWAY_CONFIG"] = str(Path.cwd() / Path(child_environ["LANEWAY_CONFIG"]).expanduser())
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            run_path.mkdir(mode=0o700, exist_ok=True)
            log_start = log_path.stat().st_size if log_path.exists() else 0
            if log_start > _LOG_LIMIT_BYTES:
                log_path.replace(log_path.with_suffix(".log.old"))
                log_start = 0
            # posix_spawn and not Popen: no object that wants its child to end first, and no fork of this process.
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", "laneway.cli.main", "serve", *arguments],
                child_environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.fspath(log_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                    *((os.POSIX_SPAWN_CLOSE, number) for number in _inheritable_files()),
                ],
                setsid=True,
            )
        except OSError as error:
            raise CliError(f"no server can be started in {home}: {error.strerror}", ExitCode.NO_SERVER) from error
        return cls(pid, log_path, log_start, os.pidfd_open(pid))

    async def answers(self, address: str) -> None:
        """Return when a server accepts connections at `address`: this one, or the one that holds the home already.

        Raises CliError NO_SERVER with the end of the log when there is none in time.
        """
        channel = open_channel(address)
        ready = asyncio.ensure_future(channel.channel_ready())
        exited = asyncio.ensure_future(self.exit_status())
        try:
            await asyncio.wait({ready, exited}, return_when=asyncio.FIRST_COMPLETED, timeout=_START_TIMEOUT_S)
            if exited.done() and not ready.done() and _HOME_IN_USE in self._log():
                await asyncio.wait({ready}, timeout=_LOSER_TIMEOUT_S)
            if not ready.done():
                raise CliError(
                    f"the server did not start; the end of {self.log_path}:\n{self.log_tail()}", ExitCode.NO_SERVER
                )
        finally:
            ready.cancel()
            exited.cancel()
            await asyncio.gather(ready, exited, return_exceptions=True)
            await channel.close()

    async def exit_status(self) -> int:
        """Wait until the process has ended; its exit code, or minus the signal that ended it."""
        if self._exit_status is None:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._pidfd, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(self._pidfd)
            _, status = os.waitpid(self.pid, 0)  # noqa: ASYNC222 - it has ended, so this returns at once
            self._exit_status = os.waitstatus_to_exitcode(status)
        return self._exit_status

    @property
    def is_running(self) -> bool:
        """Whether its end was not seen yet."""
        return self._exit_status is None

    async def stop(self, *, kill_after_s: float = 30.0) -> int:
        """Tell it to leave and wait for its end, which is forced after `kill_after_s`; the exit status."""
        if self._exit_status is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        try:
            async with asyncio.timeout(kill_after_s):
                return await self.exit_status()
        except TimeoutError:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            return await self.exit_status()

    def forget(self) -> None:
        """Leave the process alone from now on. Idempotent."""
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd >= 0:
            os.close(pidfd)

    def log_tail(self) -> str:
        """The last lines that were written since the start, indented."""
        lines = self._log().splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:]) or "  (it wrote nothing)"

    def _log(self) -> str:
        try:
            return self.log_path.read_bytes()[self._log_start :].decode(errors="replace")
        except OSError:
            return ""
