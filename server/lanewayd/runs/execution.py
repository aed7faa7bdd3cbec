"""One dispatch of one run: session lock, history, prompt, loop (D-2, D-9).

`Execution.work` does what the run needs and says how it went; it never writes the end. The supervisor does, because a
task that was cancelled is not the one to write down that it was.
"""

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.loop.agent_loop import AgentLoop, LoopPlan
from lanewayd.loop.interface import LoopEnd, LoopStart, Toolset
from lanewayd.loop.limits import remaining_budget_s
from lanewayd.loop.tool_calls import ToolBatch
from lanewayd.loop.turn import ModelTurn
from lanewayd.messages import RunError
from lanewayd.prompt.system_prompt import system_prompt
from lanewayd.providers.interface import Provider
from lanewayd.records import Run, ToolCallRow, ToolCallState
from lanewayd.runs.call_rows import requested_again
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.outcome import Outcome, failed, finished
from lanewayd.runs.recorder import RunRecorder
from lanewayd.transcript.context import Standing, standing_of
from lanewayd.transcript.lock import HeldLock


class Execution:
    """One dispatch. Owner of the session lock from `work` until `close`."""

    def __init__(self, run: Run, recorder: RunRecorder, collaborators: Collaborators) -> None:
        """`run` as its start returned it."""
        self._run = run
        self._recorder = recorder
        self._with = collaborators
        self._lock: HeldLock | None = None

    async def work(self) -> Outcome:
        """Run to an outcome. Raises Parked when the server is leaving; CancelledError and ClaimLost pass through."""
        run = self._run
        try:
            self._lock = await self._with.locks.acquire(run.tenant, run.session_key, run_id=run.run_id)
            standing = standing_of(await self._with.store.context(run.session_id), run.run_id)
            if standing.final is not None:
                return finished(standing.final, standing.usage)
            toolset = self._with.toolsets.for_run(run)
            provider_name, _, model = run.request.model.partition("/")
            loop = self._loop(toolset, self._with.provider(provider_name), model)
        except LanewayError as error:
            return failed(RunError(error.code.value, error.message))
        await toolset.prepare()
        start = await self._loop_start(standing, toolset)
        return _outcome_of(await loop.run(start))

    async def close(self) -> None:
        """Give the session lock back. Idempotent."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            await self._with.locks.release(lock)

    def _loop(self, toolset: Toolset, provider: Provider, model: str) -> AgentLoop:
        run, recorder, clock, gate = self._run, self._recorder, self._with.clock, self._with.gate
        plan = LoopPlan(
            model=model,
            system=system_prompt(
                workspace=self._with.workspace_of(run.request.agent_id), extra=run.request.extra_system_prompt
            ),
            max_turns=run.request.max_turns,
            idle_timeout_cap_s=remaining_budget_s(run.request.timeout_s, run.used_s),
        )
        return AgentLoop(
            plan=plan,
            turn=ModelTurn(provider=provider, recorder=recorder, clock=clock, gate=gate),
            batch=ToolBatch(toolset=toolset, recorder=recorder, clock=clock),
            toolset=toolset,
            recorder=recorder,
            gate=gate,
        )

    async def _loop_start(self, standing: Standing, toolset: Toolset) -> LoopStart:
        rows = await self._with.store.tool_calls(self._run.run_id) if standing.unsettled else []
        known = self._recorder.resume(
            _open_rows(standing, rows, toolset),
            last_text=standing.last_message.text if standing.last_message is not None else "",
            usage=standing.usage,
        )
        return LoopStart(standing.messages, standing.turns, standing.usage, standing.unsettled, tuple(known))


def _open_rows(standing: Standing, rows: list[ToolCallRow], toolset: Toolset) -> list[ToolCallRow]:
    """The rows of the unsettled message's calls; a launched idempotent call counts as only requested: it runs again."""
    return [
        requested_again(row) if row.state is ToolCallState.LAUNCHED and _is_idempotent(toolset, row.name) else row
        for row in rows
        if row.entry_id == standing.unsettled_entry_id
    ]


def _is_idempotent(toolset: Toolset, name: str) -> bool:
    tool = toolset.find(name)
    return tool is not None and tool.is_idempotent


def _outcome_of(end: LoopEnd) -> Outcome:
    if end.error is not None:
        return failed(end.error, usage=end.usage)
    if end.message is None:
        return failed(RunError(ErrorCode.INTERNAL.value, "the loop ended without a message"), usage=end.usage)
    return finished(end.message, end.usage)
