"""The two tools that the cases speak of: `rec`, which takes any object, and `now`, which takes nothing."""

from typing import Any

from tests.fakes.recording_tool import RecordingTool

from lanewayd.tools.interface import ToolContext, ToolResult


class NumberingTool(RecordingTool):
    """`rec`: records each call and answers r1, r2, ... in the order in which they came."""

    def __init__(self) -> None:
        super().__init__("rec")

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await super().run(arguments, context)
        return ToolResult(f"r{len(self.calls)}")

    @property
    def seen(self) -> list[dict[str, Any]]:
        """The arguments of all calls, in order."""
        return [call.arguments for call in self.calls]

    @property
    def call_ids(self) -> list[str]:
        """The ids of all calls, in order."""
        return [call.context.call_id for call in self.calls]


def now_tool() -> RecordingTool:
    """`now`: takes no parameters."""
    return RecordingTool("now", schema={"type": "object", "properties": {}, "additionalProperties": False})
