"""One batch of tool calls in three stages: prepare, execute, finish (spec 05, 2.1; D-2).

Prepare resolves and checks each call, in request order. Execute launches what is left, together or one after the other.
Finish gives every call exactly one result, in request order. A call's failure is its result; it never harms another.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewayd.clock import Clock
from lanewayd.loop.interface import Recorder, Toolset
from lanewayd.messages import ToolCall, ToolOutcome, ToolResultMessage
from lanewayd.tools.interface import Tool, ToolResult

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Prepared:
    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


class ToolBatch:
    """Runs the calls of one assistant message after the other's."""

    def __init__(self, *, toolset: Toolset, recorder: Recorder, clock: Clock, is_sequential: bool = False) -> None:
        """`is_sequential` makes every batch so; otherwise a batch is if one of its tools is."""
        self._toolset = toolset
        self._recorder = recorder
        self._clock = clock
        self._is_sequential = is_sequential

    async def run(
        self, calls: Sequence[ToolCall], *, known: Sequence[ToolResultMessage] = ()
    ) -> tuple[ToolResultMessage, ...]:
        """The results of all calls, in request order; those in `known` are kept as they are and not run.

        When cancelled, every tool has ended what it started before this returns.
        """
        results = {result.call_id: result for result in known}
        pending = [call for call in calls if call.call_id not in results]
        if self._is_sequential or any(self._is_sequential_tool(call) for call in pending):
            await self._one_by_one(pending, results)
        else:
            await self._together(pending, results)
        ordered = tuple(results[call.call_id] for call in calls)
        self._recorder.batch_settled(ordered)
        return ordered

    def _is_sequential_tool(self, call: ToolCall) -> bool:
        tool = self._toolset.find(call.name)
        return tool is not None and tool.is_sequential

    async def _one_by_one(self, calls: Sequence[ToolCall], results: dict[str, ToolResultMessage]) -> None:
        for call in calls:
            prepared = await self._prepare(call, results)
            if prepared is not None:
                await self._recorder.launch([call], durable=not prepared.tool.is_idempotent)
                await self._execute(prepared, results)

    async def _together(self, calls: Sequence[ToolCall], results: dict[str, ToolResultMessage]) -> None:
        prepared = [each for call in calls if (each := await self._prepare(call, results)) is not None]
        if not prepared:
            return
        needs_sync = any(not each.tool.is_idempotent for each in prepared)
        await self._recorder.launch([each.call for each in prepared], durable=needs_sync)
        async with asyncio.TaskGroup() as group:
            for each in prepared:
                group.create_task(self._execute(each, results), name=f"tool {each.call.name} {each.call.call_id}")

    async def _prepare(self, call: ToolCall, results: dict[str, ToolResultMessage]) -> _Prepared | None:
        """The call ready to run; or None, and its error result stands in `results`."""
        tool = self._toolset.find(call.name)
        if tool is None:
            offered = ", ".join(spec.name for spec in self._toolset.specs()) or "none"
            problem = f"there is no tool {call.name!r}; the tools are: {offered}"
        else:
            checked = self._toolset.arguments(tool, call.arguments_json)
            if not checked.problem:
                return _Prepared(call, tool, checked.values)
            problem = checked.problem
        await self._recorder.launch([call], durable=False)
        self._finish(call, ToolResult(problem, is_error=True, outcome=ToolOutcome.ERROR), 0.0, False, results)
        return None

    async def _execute(self, prepared: _Prepared, results: dict[str, ToolResultMessage]) -> None:
        call, started = prepared.call, self._clock.monotonic()
        result = await self._call_tool(prepared)
        self._finish(call, result, self._clock.monotonic() - started, True, results)

    async def _call_tool(self, prepared: _Prepared) -> ToolResult:
        """The tool's result; whatever it raises is one too, but a cancellation of this run."""
        call = prepared.call
        is_open = True

        def report(text: str) -> None:
            if is_open:
                self._recorder.tool_update(call, text)

        try:
            result: ToolResult | None = await prepared.tool.run(
                prepared.arguments, self._toolset.context(call.call_id, report)
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            result = _error("the tool cancelled itself")
        except (SystemExit, KeyboardInterrupt) as error:
            result = _error(f"the tool tried to end the process ({type(error).__name__})")
        except Exception as error:  # noqa: BLE001 - the edge of the tool call: its failure is data for the model
            logger.warning("tool raised", extra={"tool_name": call.name, "error_type": type(error).__name__})
            result = _error(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        finally:
            is_open = False
        return result or ToolResult("(no output)")

    def _finish(
        self,
        call: ToolCall,
        result: ToolResult,
        duration_s: float,
        really_ran: bool,
        results: dict[str, ToolResultMessage],
    ) -> None:
        self._recorder.tool_finished(call, result, duration_s=duration_s, really_ran=really_ran)
        results[call.call_id] = ToolResultMessage(call.call_id, call.name, result.text, result.is_error, result.outcome)


def _error(text: str) -> ToolResult:
    return ToolResult(text, is_error=True, outcome=ToolOutcome.ERROR)
