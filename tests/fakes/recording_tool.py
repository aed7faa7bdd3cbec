"""A tool that does what a test tells it, and remembers what it was asked."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from lanewayd.messages import ToolSpec
from lanewayd.tools.interface import ToolContext, ToolResult

DONE = ToolResult("done")
_ANY_OBJECT = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class AskedCall:
    """One call that has reached the tool. With `hold` it goes on when the test sets `answer`."""

    arguments: dict[str, Any]
    context: ToolContext
    answer: asyncio.Future[ToolResult] = field(compare=False)


class RecordingTool:
    """Implements Tool.

    By default each call answers "done" at once. `result` may be another result, an exception to raise, or None for a
    tool that forgets to return. With `hold=True` each call waits in `asked` until its `answer` is set.
    """

    def __init__(
        self,
        name: str = "record",
        *,
        result: ToolResult | BaseException | None = DONE,
        hold: bool = False,
        is_idempotent: bool = False,
        is_sequential: bool = False,
        schema: dict[str, Any] | None = None,
    ) -> None:
        self._spec = ToolSpec(name, f"Records calls of {name}.", schema or _ANY_OBJECT)
        self._result = result
        self._hold = hold
        self._is_idempotent = is_idempotent
        self._is_sequential = is_sequential
        self.calls: list[AskedCall] = []
        """Every call that began, in order."""
        self.ended: list[str] = []
        """Ids of calls that have returned, raised or been cancelled, in order."""
        self.cancelled: list[str] = []
        self.asked: asyncio.Queue[AskedCall] = asyncio.Queue()

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @property
    def is_idempotent(self) -> bool:
        return self._is_idempotent

    @property
    def is_sequential(self) -> bool:
        return self._is_sequential

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        call = AskedCall(arguments, context, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        self.asked.put_nowait(call)
        try:
            if self._hold:
                return await call.answer
            if isinstance(self._result, BaseException):
                raise self._result
            return self._result  # type: ignore[return-value] # None is what some tools of others return
        except asyncio.CancelledError:
            self.cancelled.append(context.call_id)
            raise
        finally:
            self.ended.append(context.call_id)
