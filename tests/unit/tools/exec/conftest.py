"""Stages for `exec`, under both event loops."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.tools.exec.stage import Shell

from lanewayd.clock import SystemClock


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def shell(workspace: Path, clock: FakeClock) -> AsyncIterator[Shell]:
    """On a clock that stands still until it is told."""
    shell = Shell(workspace, clock)
    yield shell
    shell.children.close()


@pytest.fixture
async def real_shell(workspace: Path) -> AsyncIterator[Shell]:
    shell = Shell(workspace, SystemClock())
    yield shell
    shell.children.close()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A child in the service's own process group."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()
