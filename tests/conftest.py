"""Fixtures for all tests: the event loop they run on, a service in this process, a model server."""

import asyncio
import functools
import inspect
import os
import traceback
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
        _ignore_late_events_of_closed_loops()
        async with asyncio.timeout(limit_s):
            await test(**fixtures)

    item.obj = limited


def _ignore_late_events_of_closed_loops() -> None:
    """gRPC has one poller for all loops of a process: what comes late for the loop of an earlier test, which is closed,
    would fail the test whose loop happens to hear of it."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        is_late = isinstance(error, RuntimeError) and str(error) == "Event loop is closed"
        frames = traceback.extract_tb(error.__traceback__) if is_late and error is not None else []
        if any("_handle_events" in frame.name for frame in frames):
            return
        if handler is not None:
            handler(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


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
