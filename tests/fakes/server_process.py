"""The real server as a process on a home and a unix socket: started, killed, stopped, restarted - also on the image of
what a power cut would have left.

Nothing here sleeps: a start waits for health's SERVING, an end for the process, a notice for a line on stdout.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.processes.server_entry import VARIABLE, Extras

from laneway.v1 import admin_pb2_grpc, agent_pb2, agent_pb2_grpc, event_pb2, run_pb2, session_pb2_grpc

REPOSITORY = Path(__file__).parents[2]
SUBFOLDERS = ("locks", "run", "scripts", "workspaces", "blobs")
READY_S = 60.0

# Reconnects at once after a restart: the default waits a second and more. With a pool of its own each channel is a
# connection of its own.
CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)


class ServerExited(Exception):
    """The process ended before it served."""

    def __init__(self, exit_code: int, log: str) -> None:
        super().__init__(f"exit code {exit_code}: {log[-2000:]}")
        self.exit_code = exit_code
        self.log = log


def compile_synced(folder: Path) -> Path:
    """The library that keeps a copy of each file as it was synced last."""
    library = folder / "synced.so"
    source = REPOSITORY / "tests" / "synced.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True)
    return library


class ServerProcess:
    """One home with its server. `folder` holds all of it: `home`, `image`, `ledger`, `server.log`.

    With `synced_library` an image of what is synced is kept beside the home. With `extras` the process is
    tests.processes.server_entry, else `python -m lanewayd`. What is set on the object counts from the next start on.
    """

    def __init__(
        self,
        folder: Path,
        *,
        toml: str = "",
        synced_library: Path | None = None,
        extras: Extras | None = None,
        listen: str = "",
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.image = folder / "image"
        self.ledger = folder / "ledger"
        self.log_path = folder / "server.log"
        self.toml = toml
        self.extras = extras
        self.variables: dict[str, str] = {}
        self.starts = 0
        # Socket paths are short, those of temporary folders are not always.
        self.socket = Path(f"/tmp/laneway-{os.getpid()}-{uuid.uuid4().hex[:8]}.sock")
        self.target = listen or f"unix:{self.socket}"
        self._synced_library = synced_library
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._notices: list[dict[str, Any]] = []
        self._noticed = asyncio.Event()
        self.channel = self.new_channel()
        self.agent = agent_pb2_grpc.AgentServiceStub(self.channel)
        self.sessions = session_pb2_grpc.SessionServiceStub(self.channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self.channel)
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)

    # --- the process -------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Of the process started last."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything that all starts wrote to stderr."""
        return self.log_path.read_text(errors="replace")

    async def start(self) -> None:
        """Start and return when the service is SERVING. Raises ServerExited."""
        await self.launch()
        assert self._process is not None
        serving = asyncio.ensure_future(self.reaches(health_pb2.HealthCheckResponse.SERVING))
        exited = asyncio.ensure_future(self._process.wait())
        try:
            async with asyncio.timeout(READY_S):
                await asyncio.wait({serving, exited}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                assert self._reader is not None
                await self._reader
                raise ServerExited(exited.result(), self.log)
            await serving
        finally:
            for waiting in (serving, exited):
                waiting.cancel()
            await asyncio.gather(serving, exited, return_exceptions=True)

    async def launch(self) -> None:
        """Start and return at once."""
        for folder in (self.home, *(self.home / name for name in SUBFOLDERS)):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / "laneway.toml").write_text(self.toml)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANEWAY_HOME": str(self.home),
            "LANEWAY_LISTEN": self.target,
            "PYTHONPATH": os.pathsep.join(str(REPOSITORY / part) for part in ("", "server", "clients/python")),
            **self.variables,
        }
        if self._synced_library is not None:
            for name in SUBFOLDERS:
                (self.image / name).mkdir(parents=True, exist_ok=True)
            environment |= {
                "LD_PRELOAD": str(self._synced_library),
                "SHADOW_FROM": str(self.home),
                "SHADOW_TO": str(self.image),
            }
        module = "lanewayd"
        if self.extras is not None:
            module, environment[VARIABLE] = "tests.processes.server_entry", self.extras.to_json()
        self.starts += 1
        self._notices.clear()
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                env=environment,
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._reader = asyncio.create_task(self._read_notices(self._process.stdout), name="server's stdout")

    async def exited(self) -> int:
        """Wait for the process to end; its exit code, negative for a signal."""
        assert self._process is not None
        assert self._reader is not None
        exit_code = await self._process.wait()
        await self._reader
        return exit_code

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone. Harmless when it has ended."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            await self.exited()

    def signal(self, number: int) -> None:
        """Send a signal; harmless when the process has ended."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM: begin to drain."""
        self.signal(signal.SIGTERM)

    def stop(self) -> None:
        """SIGSTOP: it stands still."""
        self.signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    async def restart(self, *, on_image: bool = False) -> None:
        """Kill it if it lives, and start it again: on its home, or on what a power cut would have left of it."""
        await self.kill()
        if on_image:
            self.lose_power()
        await self.start()

    def lose_power(self) -> None:
        """The home becomes what was synced of it. The process must have ended."""
        shutil.rmtree(self.home)
        for unfinished in self.image.rglob("*.tmp"):
            unfinished.unlink()
        self.image.rename(self.home)
        # The next image begins with what is on the disk now.
        shutil.copytree(self.home, self.image)

    async def close(self) -> None:
        """Kill it and give everything back."""
        await self.kill()
        await self.channel.close()
        self.socket.unlink(missing_ok=True)

    # --- what it says ------------------------------------------------------------------------------------------------

    async def notice(self, name: str, value: object = None) -> dict[str, Any]:
        """The first notice of this process that has `name`, with `value` unless that is None. Waits for it."""
        while True:
            for notice in self._notices:
                if name in notice and value in (None, notice[name]):
                    return notice
            self._noticed.clear()
            await self._noticed.wait()

    def release(self) -> None:
        """Let a held writer go on."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def _read_notices(self, stdout: asyncio.StreamReader) -> None:
        async for line in stdout:
            self._notices.append(json.loads(line))
            self._noticed.set()

    # --- calls -------------------------------------------------------------------------------------------------------

    def new_channel(self) -> grpc.aio.Channel:
        """Another connection."""
        return grpc.aio.insecure_channel(self.target, options=CHANNEL_OPTIONS)

    async def reaches(self, status: int, service: str = "") -> None:
        """Return when health says so; reconnects."""
        while True:
            watch = self.health.Watch(health_pb2.HealthCheckRequest(service=service), wait_for_ready=True)
            try:
                async for answer in watch:
                    if answer.status == status:
                        return
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
            finally:
                watch.cancel()

    async def accept(self, message: str = "hello", **fields: Any) -> run_pb2.AgentResponse:
        """`Agent`, with model mock/any unless given."""
        fields.setdefault("model", "mock/any")
        return await self.agent.Agent(agent_pb2.AgentRequest(message=message, **fields))

    async def wait(self, run_id: str, timeout_s: float = 60.0) -> agent_pb2.WaitResponse:
        """`Wait` with a timeout in seconds."""
        request = agent_pb2.WaitRequest(run_id=run_id)
        request.timeout.FromNanoseconds(int(timeout_s * 1e9))
        return await self.agent.Wait(request)

    async def events(self, run_id: str, **fields: Any) -> list[event_pb2.Event]:
        """All events of a run up to its end, tool results included."""
        fields.setdefault("after_seq", 0)
        fields.setdefault("verbose", agent_pb2.VERBOSITY_FULL)
        return [event async for event in self.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, **fields))]

    async def event(self, run_id: str, matches: Callable[[event_pb2.Event], bool]) -> event_pb2.Event:
        """The first event of a run that matches. Waits for it."""
        request = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, verbose=agent_pb2.VERBOSITY_FULL)
        call = self.agent.Subscribe(request)
        try:
            async for event in call:
                if matches(event):
                    return event
        finally:
            call.cancel()
        raise AssertionError("the run ended without such an event")
