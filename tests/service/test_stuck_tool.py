"""A tool that ignores its cancellation does not keep the server from leaving."""

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import ModelServer, calls_answer
from tests.fakes.service import running_service

from lanewayd.app import Seams
from lanewayd.messages import ToolSpec
from lanewayd.tools.interface import ToolContext, ToolResult


class StubbornTool:
    """Goes on until the test lets it go, whatever it is told."""

    spec = ToolSpec("stubborn", "Does not let go.")
    is_idempotent = False
    is_sequential = False

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.began.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                continue
        return ToolResult("at last")


async def test_a_drain_leaves_without_a_tool_that_does_not_let_go(tmp_path: Path, model: ModelServer) -> None:
    clock, tool = FakeClock(), StubbornTool()
    exits: asyncio.Queue[int] = asyncio.Queue()
    seams = Seams(clock=clock, exit_now=exits.put_nowait)
    async with running_service(tmp_path / "home", model=model, tools=[tool], seams=seams) as service:
        model.answer(calls_answer(("stubborn", {})))
        await service.accept("hold on")
        await tool.began.wait()
        service.service.request_drain()
        service.service.request_drain()
        while exits.empty():
            await clock.advance(1.0)
        assert exits.get_nowait() == 0
        tool.may_end.set()
        while not service.finished.done():
            await clock.advance(1.0)
