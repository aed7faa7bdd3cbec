"""An installed server as a process with a home of its own, if wanted on a read-only root file system."""

import asyncio
import os
import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from laneway.v1 import agent_pb2, agent_pb2_grpc

# In a user and mount namespace of its own: the home is mounted on itself, then all other mounts become read-only.
# /proc and /dev stay: they are no disks, and a container has them too.
_READ_ONLY = """
mount --bind "$1" "$1"
while read -r _ place _; do
  case "$place" in "$1"|/proc*|/dev|/dev/null|/dev/zero|/dev/*random|/dev/tty|/dev/pts|/sys*) continue ;; esac
  mount -o remount,bind,ro "$place" 2>/dev/null || true
done < /proc/self/mounts
cd "$1"
shift
exec "$@"
"""
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _READ_ONLY, "sh")
_SCRIPT = 'turns:\n  - tool_calls: [{name: exec, arguments: {command: "${message}"}}]\n  - text: ["${tool_result}"]\n'


@cache
def can_mount_read_only() -> bool:
    """Whether this machine lets us have such a namespace."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "--bind", "/tmp", "/tmp"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """`async with`: the process, serving unless `waits` is false; at the end it is killed."""

    def __init__(
        self,
        command: Sequence[str],
        home: Path,
        *,
        path: Path,
        variables: Mapping[str, str] | None = None,
        is_read_only: bool = False,
        waits: bool = True,
    ) -> None:
        """`path` comes first in PATH; `home` is HOME and the working directory; `variables` are added."""
        self.address = f"127.0.0.1:{free_port()}"
        self._command = [*(_NAMESPACE if is_read_only else ()), *([str(home)] if is_read_only else ()), *command]
        self._home = home
        self._log_path = home.parent / f"{home.name}.log"
        self._waits = waits
        self._environment = {
            "PATH": f"{path}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANEWAY_HOME": str(home / ".laneway"),
            "LANEWAY_LISTEN": self.address,
            **(variables or {}),
        }
        if variables and "LANEWAY_LISTEN" in variables:
            self.address = f"127.0.0.1:{variables['LANEWAY_LISTEN'].rpartition(':')[2]}"

    @property
    def log(self) -> str:
        """All that the process wrote."""
        return f"{shlex.join(self._command)}\n{self._log_path.read_text(errors='replace')}"

    async def __aenter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=self._home, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self._channel = grpc.aio.insecure_channel(self.address)
        try:
            if self._waits:
                await self._serves()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._channel.close()

    async def health(self, service: str) -> str:
        """The name of the status that a health check answers."""
        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), wait_for_ready=True)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)

    async def answer_of(self, shell_command: str) -> str:
        """What a run answers whose model has the tool `exec` run this."""
        (self._home / ".laneway" / "scripts" / "shell.yaml").write_text(_SCRIPT)
        stub = agent_pb2_grpc.AgentServiceStub(self._channel)
        accepted = await stub.Agent(agent_pb2.AgentRequest(message=shell_command, model="scripted/shell"))
        done = await stub.Wait(agent_pb2.WaitRequest(run_id=accepted.run_id))
        return "".join(payload.text for payload in done.payloads).strip() or str(done)

    async def exit_code(self, command: Sequence[str]) -> int:
        """Of another command in the same environment, as a client of this server."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._home,
            env={**self._environment, "LANEWAY_ADDRESS": self.address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return await process.wait()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait for the end; the exit code."""
        return await self._process.wait()

    async def _serves(self) -> None:
        watched = asyncio.ensure_future(self.health(""))
        ended = asyncio.ensure_future(self._process.wait())
        try:
            async with asyncio.timeout(60):
                await asyncio.wait({watched, ended}, return_when=asyncio.FIRST_COMPLETED)
            assert watched.done(), f"the server ended before it served: {self.log}"
            await watched
        finally:
            for task in (watched, ended):
                task.cancel()
            await asyncio.gather(watched, ended, return_exceptions=True)
