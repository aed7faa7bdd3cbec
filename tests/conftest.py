"""Fixtures for all tests: the event loop they run on, a service in this process, a model server."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop that the server uses where it can."""
    return ("asyncio", {"use_uvloop": True})


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer, None]:
    """A model service over real HTTP, known to `service` as provider `mock`."""
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def service(tmp_path: Path, model: ModelServer) -> AsyncGenerator[RunningService, None]:
    """The whole service with default settings, in this process, over a real socket."""
    async with running_service(tmp_path / "home", model=model) as running:
        yield running
