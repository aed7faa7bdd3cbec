"""The rpc layer on a real grpc.aio server and channel over a socket file, with the service behind it played."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.rpc.harness import Harness

from laneway.v1 import admin_pb2_grpc, agent_pb2_grpc, session_pb2_grpc
from lanewayd.rpc.server import add_address


@pytest.fixture
async def harness() -> Harness:
    return Harness()


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket file."""
    with tempfile.TemporaryDirectory(prefix="lw") as folder:
        yield Path(folder)


@pytest.fixture
async def channel(harness: Harness, socket_folder: Path) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a started server."""
    server = harness.server()
    address = f"unix:{socket_folder}/s"
    add_address(server, address)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as opened:
            yield opened
    finally:
        await server.stop(None)


@pytest.fixture
def agent(channel: grpc.aio.Channel) -> Any:
    return agent_pb2_grpc.AgentServiceStub(channel)


@pytest.fixture
def sessions(channel: grpc.aio.Channel) -> Any:
    return session_pb2_grpc.SessionServiceStub(channel)


@pytest.fixture
def admin(channel: grpc.aio.Channel) -> Any:
    return admin_pb2_grpc.AdminServiceStub(channel)
