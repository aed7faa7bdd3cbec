"""One batch of tool calls in three stages: prepare, execute, finish (spec 05, 2.1; D-2).

Prepare resolves and checks each call, in request order. Execute launches what is left, together or one after the other.
Finish gives every call exactly one result, in request order. A call's failure is its result; it never harms another.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from lanewayd.clock import Clock
from lanewayd.loop.interface import Recorder, Steering, Workplace
from lanewayd.messages import ToolCall, ToolOutcome, ToolResultMessage
from lanewayd.telemetry.names import OTHER
from lanewayd.telemetry.traces import RunTrace
from lanewayd.tools.interface import PreparedCall, ToolResult, Toolset

logger = logging.getLogger(__name__)

Results = dict[str, ToolResultMessage]

_SKIPPED = ToolResult(
    "not run: a newer message of the user came in first and is to be read before anything else is done",
    is_error=True,
    outcome=ToolOutcome.SKIPPED,
)


class ToolBatch:
    """Runs the calls of one assistant message after the other's."""

    def __init__(
        self,
        *,
        toolset: Toolset,
        workplace: Workplace,
        recorder: Recorder,
        clock: Clock,
        trace: RunTrace | None = None,
        steering: Steering | None = None,
    ) -> None:
        """`trace`: None tells nobody. `steering`: None = no message ever comes in between."""
        self._steering = steering
        self._toolset = toolset
        self._workplace = workplace
        self._recorder = recorder
        self._clock = clock
        self._trace = trace or RunTrace.off()
        self._has_side_effects = False

    @property
    def has_side_effects(self) -> bool:
        """A call of this run was started whose tool is not idempotent: something outside may be different now."""
        return self._has_side_effects

    def ran_before(self, calls: Sequence[ToolCall]) -> None:
        """Earlier dispatches of the run were asked for these; whether they were run does not matter."""
        prepared = [self._toolset.prepare(call) for call in calls]
        self._note(step for step in prepared if isinstance(step, PreparedCall))

    async def run(
        self, calls: Sequence[ToolCall], *, known: Sequence[ToolResultMessage] = ()
    ) -> tuple[ToolResultMessage, ...]:
        """The results of all calls, in request order; those in `known` are kept as they are and not run.

        When cancelled, every tool has ended what it started before this returns.
        """
        results: Results = {result.call_id: result for result in known}
        prepared = [(call, self._toolset.prepare(call)) for call in calls if call.call_id not in results]
        if any(isinstance(step, PreparedCall) and step.tool.is_sequential for _, step in prepared):
            for call, step in prepared:
                await self._launch_and_run([(call, step)], results)
        else:
            await self._launch_and_run(prepared, results)
        ordered = tuple(results[call.call_id] for call in calls)
        self._recorder.batch_settled(ordered)
        return ordered

    async def _launch_and_run(
        self, steps: Sequence[tuple[ToolCall, PreparedCall | ToolResult]], results: Results
    ) -> None:
        """Refused calls end at once, in request order; the others are launched by one commit and run together.

        A message that waits to go into the run keeps them from being launched (R-2.78, R-2.79); later ones recall none.
        """
        ready = []
        for call, step in steps:
            if isinstance(step, PreparedCall):
                ready.append(step)
            else:
                await self._refuse(call, step, results)
        if ready and self._steering is not None and self._steering.is_waiting:
            for step in ready:
                await self._refuse(step.call, _SKIPPED, results)
            return
        if not ready:
            return
        needs_sync = any(not step.tool.is_idempotent for step in ready)
        self._note(ready)
        await self._recorder.launch([step.call for step in ready], durable=needs_sync)
        async with asyncio.TaskGroup() as group:
            for step in ready:
                group.create_task(self._execute(step, results), name=f"tool {step.call.name} {step.call.call_id}")

    def _note(self, steps: Iterable[PreparedCall]) -> None:
        if any(not step.tool.is_idempotent for step in steps):
            self._has_side_effects = True

    async def _refuse(self, call: ToolCall, result: ToolResult, results: Results) -> None:
        """The call ends without having run."""
        await self._recorder.launch([call], durable=False)
        self._trace_refusal(call, result)
        self._finish(call, result, 0.0, False, results)

    async def _execute(self, prepared: PreparedCall, results: Results) -> None:
        call, spec, started = prepared.call, prepared.tool.spec, self._clock.monotonic()
        with self._trace.tool_call(spec.name, call.call_id, spec.description) as trace:
            result = await self._call_tool(prepared)
            trace.ended(
                outcome=result.outcome.value,
                is_error=result.is_error,
                arguments_json=call.arguments_json,
                text=result.text,
            )
        self._finish(call, result, self._clock.monotonic() - started, True, results)

    def _trace_refusal(self, call: ToolCall, result: ToolResult) -> None:
        name = next((spec.name for spec in self._toolset.specs if spec.name == call.name), OTHER)
        with self._trace.tool_call(name, call.call_id, "") as trace:
            trace.ended(
                outcome=result.outcome.value,
                is_error=result.is_error,
                arguments_json=call.arguments_json,
                text=result.text,
            )

    async def _call_tool(self, prepared: PreparedCall) -> ToolResult:
        """The tool's result; whatever it raises is one too, but a cancellation of this run."""
        call = prepared.call
        is_open = True

        def report(text: str) -> None:
            if is_open:
                self._recorder.tool_update(call, text)

        try:
            result: ToolResult | None = await prepared.tool.run(
                prepared.arguments, self._workplace.context(call.call_id, report)
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
        results: Results,
    ) -> None:
        self._recorder.tool_finished(call, result, duration_s=duration_s, really_ran=really_ran)
        results[call.call_id] = ToolResultMessage(call.call_id, call.name, result.text, result.is_error, result.outcome)


def _error(text: str) -> ToolResult:
    return ToolResult(text, is_error=True, outcome=ToolOutcome.ERROR)
