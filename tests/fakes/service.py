"""The whole service inside the test's process: real gRPC over a unix socket, real SQLite file, real HTTP to the model.

Only clock, model script and tools are fakes, and only where a test asks for them.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2_grpc
from grpc_status import rpc_status
from tests.fakes.model_server import ModelServer

from laneway.v1 import admin_pb2_grpc, agent_pb2, agent_pb2_grpc, event_pb2, run_pb2, session_pb2_grpc
from lanewayd.app import Seams, Service
from lanewayd.config import Flags, load_settings
from lanewayd.tools.interface import Tool

TENANT_KEY = "x-tenant"


def tenant_from_metadata(context: grpc.aio.ServicerContext) -> str:
    """So that tests can be two tenants."""
    return str(dict(context.invocation_metadata() or ()).get(TENANT_KEY, "default"))


@dataclass
class Refusal:
    """An error as a caller sees it."""

    status: grpc.StatusCode
    reason: str
    metadata: dict[str, str]
    text: str
    details: list[str]
    """Names of the detail messages."""


def refusal_of(error: grpc.aio.AioRpcError) -> Refusal:
    """Status, reason and metadata of a refused call."""
    status = rpc_status.from_call(cast(grpc.Call, error))
    info = error_details_pb2.ErrorInfo()
    names = []
    for detail in status.details if status is not None else []:
        names.append(detail.type_url.rsplit(".", 1)[-1])
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            detail.Unpack(info)
    return Refusal(error.code(), info.reason, dict(info.metadata), error.details() or "", names)


class RunningService:
    """A started service and a channel to it."""

    def __init__(self, service: Service, home: Path, target: str) -> None:
        self.service = service
        self.home = home
        self.target = target
        self.channel = grpc.aio.insecure_channel(target)
        self.agent = agent_pb2_grpc.AgentServiceStub(self.channel)
        self.sessions = session_pb2_grpc.SessionServiceStub(self.channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.finished: asyncio.Task[int]

    async def accept(self, message: str = "hello", **fields: Any) -> run_pb2.AgentResponse:
        """`Agent`, with model mock/any unless given."""
        fields.setdefault("model", "mock/any")
        return await self.agent.Agent(agent_pb2.AgentRequest(message=message, **fields))

    async def wait(self, run_id: str, timeout_s: float = 30.0) -> agent_pb2.WaitResponse:
        """`Wait` with a timeout in seconds."""
        request = agent_pb2.WaitRequest(run_id=run_id)
        request.timeout.FromNanoseconds(int(timeout_s * 1e9))
        return await self.agent.Wait(request)

    async def finish(self, message: str = "hello", **fields: Any) -> agent_pb2.WaitResponse:
        """Accept and wait for the end."""
        return await self.wait((await self.accept(message, **fields)).run_id)

    async def events(self, run_id: str, **fields: Any) -> list[event_pb2.Event]:
        """All events of a run up to its end, without the snapshot, tool results included."""
        fields.setdefault("after_seq", 0)
        fields.setdefault("verbose", agent_pb2.VERBOSITY_FULL)
        call = self.agent.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, **fields))
        return [event async for event in call]

    async def close_channel(self) -> None:
        """Give the channel back."""
        await self.channel.close()


def toml_for(model: ModelServer | None, extra: str = "") -> str:
    """Settings that know the model server as provider `mock`."""
    provider = (
        f'[models.providers.mock]\napi = "openai_chat"\nbase_url = "{model.base_url}"\n' if model is not None else ""
    )
    return f"{provider}{extra}"


@asynccontextmanager
async def running_service(
    home: Path,
    *,
    model: ModelServer | None = None,
    toml: str = "",
    tools: Sequence[Tool] = (),
    seams: Seams | None = None,
    listen: str = "",
) -> AsyncGenerator[RunningService, None]:
    """Start the service on `home`, yield it, drain it. `toml` is added to the settings file."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "laneway.toml").write_text(toml_for(model, toml))
    # Socket paths are short, those of temporary folders are not always.
    listen = listen or f"unix:/tmp/laneway-{os.getpid()}-{uuid.uuid4().hex[:8]}.sock"
    environ = {"LANEWAY_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"]}
    settings = load_settings(environ, Flags(listen=listen))
    seams = replace(seams or Seams(), environ=environ, more_tools=tuple(tools), tenant_of=tenant_from_metadata)
    service = Service(settings, seams)
    await service.start()
    running = RunningService(service, home, service.address)
    running.finished = asyncio.create_task(service.run(), name="service")
    try:
        yield running
    finally:
        service.request_drain()
        service.request_drain()
        await running.finished
        await running.close_channel()
        if listen.startswith("unix:"):
            with suppress(FileNotFoundError):
                Path(listen.removeprefix("unix:")).unlink()
