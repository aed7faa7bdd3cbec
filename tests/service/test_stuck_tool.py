"""A tool that ignores its cancellation does not keep the server from leaving."""

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
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
        accepted = await service.accept("hold on")
        await tool.began.wait()
        timers = clock.timer_count
        service.service.request_drain()
        service.service.request_drain()
        # The limits of the supervision, which then hands the run over, and of the drain.
        await clock.wait_for_timers(timers + 2)
        await clock.advance(31.0)
        store = service.service.parts.store
        while not (run := await store.run("default", accepted.run_id)) or not run.handed_over:
            pass  # each read waits for the store
        await clock.advance(10.0)
        assert await exits.get() == 0
        tool.may_end.set()
        assert await service.finished == 0
