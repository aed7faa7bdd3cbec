"""A tool that does not let go when it is cancelled, until the test says so."""

import asyncio
from typing import Any

from tests.fakes.recording_tool import RecordingTool

from lanewayd.tools.interface import ToolContext, ToolResult


class StubbornTool(RecordingTool):
    """Each call ends when `let_go` is set, however often it is cancelled before."""

    def __init__(self, name: str = "stubborn") -> None:
        super().__init__(name)
        self.let_go = asyncio.Event()
        self.asked_to_stop = asyncio.Event()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        while not self.let_go.is_set():
            try:
                await super().run(arguments, context)
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.asked_to_stop.set()
        return ToolResult("far too late")
