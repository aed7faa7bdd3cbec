"""Where a demonstration takes place: a scratch home, the server in it, and what is said to that server."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from laneway.cli.address import socket_path
from laneway.cli.demo.logs import Seen
from laneway.cli.demo.report import Report, Unprepared, View
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.server_process import ServerProcess
from laneway.client import LanewayClient
from laneway.errors import LanewayError
from laneway.v1 import agent_pb2, run_pb2

EMBEDDED_PROVIDER = "local/"
_PREFIX = "laneway-demo-"
_IDLE_EXIT_S = 60
# Each piece of text is an event of its own, so that short answers of a fast machine have a middle too.
_SETTINGS = ("--set=events.delta_interval_ms=0",)
_MANNER = "Answer in one short sentence."
"""Longer answers of a small model begin to repeat themselves."""
_ENGINE_SERVES = "embedded model serves"
_ENGINE_MODULE = b"lanewayd.providers.local.engine"


class Stage:
    """Owner of the scratch home and of the server process. `end` gives both back."""

    def __init__(self, report: Report, environ: Mapping[str, str]) -> None:
        """`environ`: of the user; settings in it are kept away from the server."""
        self.report = report
        self.home = _scratch_folder()
        self.address = f"unix:{socket_path(self.home)}"
        self.model = ""
        """The embedded one, once the server has named it."""
        self._environ = {name: value for name, value in environ.items() if not name.startswith("LANEWAY_")}
        self._environ["LC_ALL"] = "C.UTF-8"  # what tools print is compared
        self._server: ServerProcess | None = None

    @property
    def view(self) -> View:
        """Where it is shown."""
        return self.report.view

    @property
    def server(self) -> ServerProcess:
        """The one that was started last."""
        if self._server is None:
            raise RuntimeError("no server was started")
        return self._server

    # --- the server --------------------------------------------------------------------------------------------------

    async def start_server(self) -> None:
        """Start one on the home and wait until it answers. Raises CliError."""
        if self._server is not None:
            self._server.forget()
        arguments = [f"--listen={self.address}", f"--idle-exit={_IDLE_EXIT_S}", *_SETTINGS]
        self._server = ServerProcess.start(self.home, arguments, self._environ)
        await self._server.answers(self.address)

    async def kill_server(self) -> int:
        """SIGKILL; its exit status."""
        os.kill(self.server.pid, signal.SIGKILL)  # ours and not waited for yet, so the number is its own
        return await self.server.exit_status()

    async def stop_server(self) -> int:
        """Tell it to leave; its exit status."""
        return await self.server.stop()

    def engines(self) -> list[int]:
        """The processes of the embedded model that the servers have started, as their log tells."""
        lines = (self.home / "run" / "server.log").read_text(errors="replace").splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{") and _ENGINE_SERVES in line]
        return [int(entry["pid"]) for entry in entries if entry["message"] == _ENGINE_SERVES]

    def living_engines(self) -> list[int]:
        """Those of them that live."""
        return [pid for pid in self.engines() if _ENGINE_MODULE in _command_line(pid)]

    async def end(self, *, keep: bool) -> None:
        """End the server if it lives; remove the home unless it is to be kept."""
        if self._server is not None:
            if self._server.is_running:
                await self._server.stop(kill_after_s=5)
            self._server.forget()
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)

    # --- what is said to it ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[LanewayClient, None]:
        """A connection of its own."""
        async with LanewayClient(self.address) as client:
            yield client

    async def find_model(self) -> str:
        """The embedded model. Raises Unprepared with what to do when it cannot be used."""
        async with self.connected() as client:
            models = [model async for model in client.list_models() if model.model.startswith(EMBEDDED_PROVIDER)]
            self.model = models[0].model if models else f"{EMBEDDED_PROVIDER}model"
            if not models or not models[0].available:
                try:
                    await client.agent(agent_pb2.AgentRequest(message="Hello", model=self.model))
                except LanewayError as error:
                    raise Unprepared(
                        f"the demo talks to the embedded model: {error.message}", ExitCode.USAGE
                    ) from error
        return self.model

    async def send(
        self, client: LanewayClient, message: str, *, session: str, model: str = ""
    ) -> run_pb2.AgentResponse:
        """Hand a message over, to the embedded model unless another one is named."""
        request = agent_pb2.AgentRequest(
            message=message,
            session_key=session,
            model=model or self.model,
            extra_system_prompt=_MANNER,
        )
        accepted = await client.agent(request)
        self.view.sent(message)
        return accepted

    async def turn(self, message: str, *, session: str, model: str = "") -> Seen:
        """Hand a message over and show its run to the end."""
        async with self.connected() as client:
            accepted = await self.send(client, message, session=session, model=model)
            seen = Seen()
            async with aclosing(client.subscribe(log_of(accepted.run_id))) as events:
                async for event in events:
                    seen.events.append(event)
                    self.view.show(event)
        return seen

    async def replay(self, run_id: str) -> Seen:
        """The whole log of a run that has ended."""
        async with self.connected() as client:
            return Seen([event async for event in client.subscribe(log_of(run_id))])

    async def transcript(self, session: str) -> list[str]:
        """Who has spoken in a session, in order."""
        async with self.connected() as client:
            return [str(entry.WhichOneof("body")) async for entry in client.sessions.entries(session)]


def log_of(run_id: str, *, after_seq: int = 0) -> agent_pb2.SubscribeRequest:
    """All of a run's log above `after_seq`."""
    return agent_pb2.SubscribeRequest(run_id=run_id, after_seq=after_seq, verbose=agent_pb2.VERBOSITY_FULL)


def _scratch_folder() -> Path:
    """A new one, with a path that is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        socket_path(folder)
    except CliError:
        folder.rmdir()
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    return folder


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
