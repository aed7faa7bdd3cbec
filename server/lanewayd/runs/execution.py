"""One dispatch of one run: session lock, history, prompt, loop (D-2, D-9).

`Execution.work` does what the run needs and says how it went; it never writes the end. The supervisor does, because a
task that was cancelled is not the one to write down that it was.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.loop.agent_loop import AgentLoop, LoopPlan
from lanewayd.loop.answer_schema import AnswerSchema, schema_of
from lanewayd.loop.interface import LoopEnd, LoopStart, Steering
from lanewayd.loop.limits import Budget, remaining_budget_s
from lanewayd.loop.route import Route, RouteParts
from lanewayd.loop.tool_calls import ToolBatch
from lanewayd.loop.turn import ModelTurn
from lanewayd.messages import RunError, ToolCall, Usage, UserMessage
from lanewayd.models.candidates import Candidate
from lanewayd.prompt.system_prompt import system_prompt
from lanewayd.records import RunRequest, ToolCallRow, ToolCallState
from lanewayd.runs.attachments import Attachments
from lanewayd.runs.backoff import until_answered
from lanewayd.runs.call_rows import call_of, requested_again
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.contexts import Context
from lanewayd.runs.outcome import Outcome, failed, finished
from lanewayd.runs.recorder import RunRecorder
from lanewayd.store.interface import Started
from lanewayd.telemetry.traces import RunTrace
from lanewayd.tools.interface import PreparedCall, SelfLimited, Toolset
from lanewayd.transcript.context import Standing, standing_of
from lanewayd.transcript.lock import HeldLock

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Execution:
    """One dispatch. Owner of the session lock from `work` until `close`."""

    def __init__(
        self,
        started: Started,
        recorder: RunRecorder,
        collaborators: Collaborators,
        trace: RunTrace | None = None,
        *,
        said: UserMessage | None = None,
        steering: Steering | None = None,
    ) -> None:
        """`trace`: None tells nobody. `said`: the user's words as the start stored them; None = read them."""
        run = self._run = started.run
        self._leaf_entry_id = started.leaf_entry_id
        self._said = said
        self._steering = steering
        self._session_usage = started.session_usage
        self._context = Context()
        self._recorder = recorder
        self._with = collaborators
        self._trace = trace
        self._toolset = collaborators.workshop.toolset(run)
        self._workplace = collaborators.workshop.workplace(run)
        self._lock: HeldLock | None = None
        self._is_caught_up = run.attempt == 1

    async def catch_up(self) -> None:
        """Give the recorder what earlier dispatches left open, for an end that comes before `work` has done so."""
        if not self._is_caught_up:
            await self._loop_start(await self._standing())

    async def work(self) -> Outcome:
        """Run to an outcome. Raises Parked when the server is leaving; CancelledError and ClaimLost pass through."""
        run = self._run
        try:
            self._lock = await self._with.locks.acquire(run.tenant, run.session_key, run_id=run.run_id)
            standing = await self._standing()
        except LanewayError as error:
            return failed(RunError(error.code.value, error.message))
        if standing.final is not None:
            return finished(standing.final, run.request)
        return await self._work_from(standing)

    async def go_on(self) -> Outcome:
        """Take in the messages that kept the run from ending, and work to another outcome. Raises as `work`."""
        run = self._run
        if self._steering is not None:
            await self._steering.take()
        standing = standing_of(await self._read(lambda: self._with.store.context(run.session_id)), run.run_id)
        if standing.final is not None:
            return finished(standing.final, run.request)
        return await self._work_from(standing)

    async def _work_from(self, standing: Standing) -> Outcome:
        run = self._run
        try:
            chain = self._with.candidates(run.request)
            budget = await self._budget(chain)
            schema_json = run.request.response_schema_json
            schema = await asyncio.to_thread(schema_of, schema_json) if schema_json else None
            loop = self._loop(chain, budget, schema)
        except LanewayError as error:
            return failed(RunError(error.code.value, error.message))
        try:
            await self._workplace.prepare()
        except OSError as error:
            return failed(RunError(ErrorCode.INTERNAL.value, f"the workspace cannot be made: {error}"))
        end = await loop.run(await self._loop_start(standing))
        if end.messages:
            self._with.contexts.keep(run.session_id, self._recorder.last_entry_id, self._context.grown(end.messages))
        return _outcome_of(end, run.request)

    def tool_limit_s(self, call: ToolCall) -> float:
        """After so long its tool ends the call by itself; 0 = it does not."""
        prepared = self._toolset.prepare(call)
        if not isinstance(prepared, PreparedCall) or not isinstance(prepared.tool, SelfLimited):
            return 0.0
        return prepared.tool.limit_s(prepared.arguments)

    async def close(self) -> None:
        """Give the session lock back. Idempotent."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            await self._with.locks.release(lock)

    async def _read(self, question: Callable[[], Awaitable[T]]) -> T:
        return await until_answered(question, self._with.clock)

    def _route(self, chain: tuple[Candidate, ...]) -> Route:
        collaborators = self._with
        parts = RouteParts(collaborators.provider, collaborators.profiles, collaborators.probes, collaborators.clock)
        return Route(chain, parts, session_id=self._run.session_id)

    def _attachments(self, chain: tuple[Candidate, ...]) -> Attachments:
        tenant, store = self._run.tenant, self._with.store
        return Attachments(
            self._with.blobs,
            owned=lambda hashes: self._read(lambda: store.blobs_of(tenant, hashes)),
            sees_images=any(candidate.facts.accepts_images for candidate in chain),
        )

    def _loop(self, chain: tuple[Candidate, ...], budget: Budget, schema: AnswerSchema | None) -> AgentLoop:
        run, recorder, clock, gate = self._run, self._recorder, self._with.clock, self._with.gate
        plan = LoopPlan(
            tools=self._toolset.specs,
            contents=self._attachments(chain),
            lacks_tools=self._toolset.is_emptied_by_policy,
            budget=budget,
            max_output_tokens=run.request.max_output_tokens,
            temperature=run.request.temperature,
            seed=run.request.seed,
            cache_key=run.session_id,
            answer_schema=schema,
            corrections=run.corrections,
            system=system_prompt(
                workspace=self._with.workshop.workspace(run.request.agent_id), extra=run.request.extra_system_prompt
            ),
            max_turns=run.request.max_turns,
            remaining_s=lambda: remaining_budget_s(run.request.timeout_s, recorder.used_s),
        )
        return AgentLoop(
            plan=plan,
            turn=ModelTurn(
                route=self._route(chain), recorder=recorder, clock=clock, gate=gate, trace=self._trace, budget=budget
            ),
            batch=ToolBatch(
                toolset=self._toolset,
                workplace=self._workplace,
                recorder=recorder,
                clock=clock,
                trace=self._trace,
                steering=self._steering,
            ),
            recorder=recorder,
            gate=gate,
            steering=self._steering,
        )

    async def _budget(self, chain: tuple[Candidate, ...]) -> Budget:
        """What this run may use, after what its session has used."""
        store, run, settings = self._with.store, self._run, self._with.settings
        used = self._session_usage
        if used is None:
            session = await self._read(lambda: store.session(run.tenant, run.session_key))
            used = session.usage if session is not None else Usage()
        budget = Budget(settings.run_allowance, settings.session_allowance, used)
        unpriced = [candidate.reference for candidate in chain if not candidate.facts.prices.is_known]
        if budget.has_cost_limit and unpriced:
            logger.warning(
                "the cost limit of a run does not count calls of models whose prices are not known",
                extra={"run_id": run.run_id, "model": ", ".join(unpriced)},
            )
        return budget

    async def _standing(self) -> Standing:
        """From the transcript, unless what this run goes on from is known: its first start knows where that ends."""
        store, run = self._with.store, self._run
        if self._leaf_entry_id is not None and self._said is not None:
            known = self._with.contexts.take(run.session_id, self._leaf_entry_id)
            if known is not None:
                self._context = known
                return Standing((*known.messages, self._said), turns=0, usage=Usage())
        return standing_of(await self._read(lambda: store.context(run.session_id)), run.run_id)

    async def _loop_start(self, standing: Standing) -> LoopStart:
        store, run_id = self._with.store, self._run.run_id
        rows = await self._read(lambda: store.tool_calls(run_id)) if standing.unsettled else []
        known = self._recorder.resume(
            _open_rows(standing, rows, self._toolset),
            last_text=standing.last_message.text if standing.last_message is not None else "",
            usage=standing.usage,
        )
        self._is_caught_up = True
        return LoopStart(standing.messages, standing.turns, standing.unsettled, tuple(known))


def _open_rows(standing: Standing, rows: list[ToolCallRow], toolset: Toolset) -> list[ToolCallRow]:
    """The rows of the unsettled message's calls; a launched idempotent call counts as only requested: it runs again."""
    return [
        requested_again(row) if row.state is ToolCallState.LAUNCHED and _is_idempotent(toolset, row) else row
        for row in rows
        if row.entry_id == standing.unsettled_entry_id
    ]


def _is_idempotent(toolset: Toolset, row: ToolCallRow) -> bool:
    prepared = toolset.prepare(call_of(row))
    return isinstance(prepared, PreparedCall) and prepared.tool.is_idempotent


def _outcome_of(end: LoopEnd, request: RunRequest) -> Outcome:
    if end.error is not None:
        return failed(end.error)
    if end.message is None:
        return failed(RunError(ErrorCode.INTERNAL.value, "the loop ended without a message"))
    return finished(end.message, request)
