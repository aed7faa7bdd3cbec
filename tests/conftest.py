"""Fixtures for all tests: the event loop they run on, a service in this process, a model server."""

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service

LIMIT_SHARE = 0.8
"""Of pytest-timeout's limit, which cannot interrupt a loop of uvloop that waits."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each async test a limit that its own loop keeps: one that hangs fails, and cleans up."""
    test = getattr(item, "obj", None)
    if not (isinstance(item, pytest.Function) and inspect.iscoroutinefunction(test)):
        return

    marker = item.get_closest_marker("timeout")
    limit_s = LIMIT_SHARE * float(marker.args[0] if marker is not None else item.config.getini("timeout"))

    @functools.wraps(test)
    async def limited(**fixtures: Any) -> None:
        async with asyncio.timeout(limit_s):
            await test(**fixtures)

    item.obj = limited


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
