"""The servers that are measured: the product and the floors, each a process on a unix socket."""

import asyncio
import itertools
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.benchmarks.child_process import Child

START_LIMIT_S = 60.0
_LOOK_AGAIN_S = 0.002
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """How to start a server. `prefix`: arguments of python before the module, a profiler; `settings`: variables."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    toml: str = ""


def floor_plan(name: str, module: str, *arguments: str) -> ServerPlan:
    """A floor of floors/."""
    return ServerPlan(name, f"tests.benchmarks.floors.{module}", arguments)


def product_plan(
    base_url: str, *, width: int, delta_interval_ms: int | None = None, prefix: Sequence[str] = ()
) -> ServerPlan:
    """The product with the mock model and `width` runs at once."""
    settings = {"LANEWAY_AGENTS__DEFAULTS__MAX_CONCURRENT": str(width)}
    if delta_interval_ms is not None:
        settings["LANEWAY_EVENTS__DELTA_INTERVAL_MS"] = str(delta_interval_ms)
    toml = f'[models.providers.mock]\napi = "openai_chat"\nbase_url = "{base_url}"\n'
    return ServerPlan("product", "tests.benchmarks.product_server", (), settings, tuple(prefix), toml)


class Server:
    """A running server in a folder of its own."""

    def __init__(self, plan: ServerPlan, child: Child, folder: Path, *, target: str, start_s: float) -> None:
        self.name = plan.name
        self.child = child
        self.target = target
        self.start_s = start_s
        """From the process's start to SERVING."""
        self._folder = folder

    @classmethod
    async def start(cls, plan: ServerPlan, parent: Path) -> "Server":
        """Start it and return when it serves. Raises ChildFailed, TimeoutError."""
        folder = Path(tempfile.mkdtemp(prefix=f"{plan.name}-", dir=parent))
        path = parent / f"{next(_numbers)}.sock"
        target = f"unix:{path}"
        variables = {}
        arguments = [*plan.prefix, "-m", plan.module, *plan.arguments]
        if plan.toml:
            (folder / "laneway.toml").write_text(plan.toml)
            variables = {"LANEWAY_HOME": str(folder), "LANEWAY_LISTEN": target, **plan.settings}
        else:
            arguments += ["--listen", target]
        began = time.perf_counter()
        child = await Child.start(arguments, log=folder / "server.log", variables=variables)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await _serving(child, path, target)
        except BaseException:
            await child.end()
            raise
        return cls(plan, child, folder, target=target, start_s=time.perf_counter() - began)

    @property
    def folder(self) -> Path:
        """Its home, on the disk that it syncs to."""
        return self._folder

    async def stop(self) -> None:
        """End it, gently so that a profiler can write its file, and remove its folder."""
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await self.child.end(signal.SIGTERM)
        await self.child.end()
        shutil.rmtree(self._folder)


async def _serving(child: Child, path: Path, target: str) -> None:
    """Return when health says SERVING. The socket is tried first: a refused channel would wait for its backoff."""
    while not _accepts(path):
        if child.has_ended:
            raise child.failure()
        await asyncio.sleep(_LOOK_AGAIN_S)
    async with grpc.aio.insecure_channel(target, options=(("grpc.use_local_subchannel_pool", 1),)) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        async for answer in watch:
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                watch.cancel()
                return


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
