"""The stage of most cases: the whole service, a model service over HTTP, and the tools `rec` and `now`."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.cases.case_tools import NumberingTool, now_tool
from tests.cases.stage import Stage
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

from lanewayd.app import Seams


@pytest.fixture
async def stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    """With the clock of the machine."""
    rec, now = NumberingTool(), now_tool()
    async with running_service(tmp_path / "home", model=model, tools=[rec, now]) as service:
        yield Stage(service, model, rec, now, FakeClock())


@pytest.fixture
async def timed_stage(tmp_path: Path, model: ModelServer) -> AsyncGenerator[Stage, None]:
    """Time moves only when the test says so."""
    rec, now, clock = NumberingTool(), now_tool(), FakeClock()
    seams = Seams(clock=clock)
    async with running_service(tmp_path / "home", model=model, tools=[rec, now], seams=seams) as service:
        yield Stage(service, model, rec, now, clock)


@pytest.fixture(params=["aiohttp", "httpx"])
async def stage_of_both_transports(
    request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer
) -> AsyncGenerator[Stage, None]:
    """Once with each HTTP transport: for what depends on how bytes come."""
    rec, now = NumberingTool(), now_tool()
    # running_service puts the text behind the provider's section, so the section of its own comes last.
    toml = f'\n[models]\ntransport = "{request.param}"\n'
    async with running_service(tmp_path / "home", model=model, tools=[rec, now], toml=toml) as service:
        yield Stage(service, model, rec, now, FakeClock())
