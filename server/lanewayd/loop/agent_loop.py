"""Turns until the model stops or a limit is met (spec 05, section 2).

message -> model -> tool calls -> results -> model ... The loop decides what comes next; what happened is written down
by the recorder it is given, and a run can begin again at any point that was written down.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewayd.loop.answer_schema import AnswerSchema
from lanewayd.loop.incomplete import Conduct
from lanewayd.loop.interface import Contents, LoopEnd, LoopStart, Recorder, Steering, StepGate
from lanewayd.loop.limits import NO_BUDGET, Budget, budget_error, no_tools_error, turn_cap_error
from lanewayd.loop.structured import AnswerJudge
from lanewayd.loop.tool_calls import ToolBatch
from lanewayd.loop.turn import ModelTurn
from lanewayd.messages import AssistantMessage, Message, RunError, StopReason, ToolCall, ToolSpec, UserMessage
from lanewayd.providers.interface import Failed, ModelRequest


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """What stays the same over all turns of a run."""

    system: str
    max_turns: int
    remaining_s: Callable[[], float | None]
    """What is left of the run's budget now; None = there is no deadline."""
    tools: tuple[ToolSpec, ...] = ()
    lacks_tools: bool = False
    """The run's own policy has left it none."""
    contents: Contents | None = None
    """Reads what attachments hold; None = their names are all that there is."""
    budget: Budget = NO_BUDGET
    max_output_tokens: int = 0
    temperature: float | None = None
    seed: int | None = None
    cache_key: str = ""
    """The same in all runs of a session, for services that find a prompt in their cache by a key."""
    answer_schema: AnswerSchema | None = None
    """What the final answer must fit; None = nothing."""
    corrections: int = 0
    """How often earlier dispatches asked for it again."""


class AgentLoop:
    """One run's loop. Raises nothing of a model's or tool's making; Parked and CancelledError pass through."""

    def __init__(
        self,
        *,
        plan: LoopPlan,
        turn: ModelTurn,
        batch: ToolBatch,
        recorder: Recorder,
        gate: StepGate,
        steering: Steering | None = None,
    ) -> None:
        """`steering`: None = no message ever comes in between."""
        self._steering = steering
        self._plan = plan
        self._turn = turn
        self._batch = batch
        self._recorder = recorder
        self._gate = gate
        self._judge = AnswerJudge(plan.answer_schema, corrections=plan.corrections)

    async def run(self, start: LoopStart) -> LoopEnd:
        """Work until the model gives an answer without calls, fails for good, or the turn cap is met."""
        messages: list[Message] = list(start.messages)
        turns = start.turns
        if self._plan.lacks_tools:
            return LoopEnd(error=no_tools_error())
        self._batch.ran_before(_calls_of(messages, turns))
        if start.unsettled:
            self._gate.check()
            messages.extend(await self._batch.run(start.unsettled, known=start.known))
        while True:
            error = turn_cap_error(turns, self._plan.max_turns) or budget_error(self._plan.budget, self._recorder.usage)
            if error is not None:
                return LoopEnd(error=error)
            messages.extend(await self._steered())
            outcome = await self._turn.call(await self._request(messages), self._conduct(turns))
            turns += 1
            if isinstance(outcome, Failed):
                return LoopEnd(outcome.partial, outcome.error)
            message = _with_calls_to_run(outcome.message)
            error = await self._problem(message)
            if error is not None:
                if not self._corrects(message, error):
                    return LoopEnd(message, error)
                continue
            messages.append(message)
            self._recorder.message_ended(message)
            if not message.tool_calls:
                if steered := await self._steered():
                    messages.extend(steered)
                    continue
                return LoopEnd(message, messages=tuple(messages))
            self._gate.check()
            messages.extend(await self._batch.run(message.tool_calls))

    async def _problem(self, message: AssistantMessage) -> RunError | None:
        """Why `message` is not the answer that was asked for; None if it may stay."""
        try:
            return await self._judge.problem(message)
        except asyncio.CancelledError:
            self._recorder.call_failed(message.usage)
            raise

    async def _steered(self) -> tuple[UserMessage, ...]:
        """Messages that waited to go into the run, which are part of it now."""
        if self._steering is None or not self._steering.is_waiting:
            return ()
        return await self._steering.take()

    def _corrects(self, message: AssistantMessage, error: RunError) -> bool:
        """Whether another call is made for an answer that does not fit. The answer is void then, as after a retry."""
        self._recorder.call_failed(message.usage)
        is_corrected = self._judge.may_correct()
        if is_corrected:
            tries = self._judge.tries
            self._recorder.retry(error, attempt=tries + 1, delay_s=0.0, corrections=tries)
        return is_corrected

    def _conduct(self, turns: int) -> Conduct:
        return Conduct(is_replay_safe=not self._batch.has_side_effects, has_output=turns > 0)

    async def _request(self, messages: list[Message]) -> ModelRequest:
        """What the model is asked; the turn puts into it what depends on the model."""
        return ModelRequest(
            model="",
            system=self._plan.system,
            messages=(*messages, *self._judge.aside),
            contents=await self._plan.contents.of(messages) if self._plan.contents is not None else {},
            tools=self._plan.tools,
            idle_timeout_cap_s=self._plan.remaining_s(),
            max_output_tokens=self._plan.max_output_tokens,
            temperature=self._plan.temperature,
            seed=self._plan.seed,
            cache_key=self._plan.cache_key,
            response_schema=self._plan.answer_schema.schema if self._plan.answer_schema else None,
        )


def _calls_of(messages: list[Message], turns: int) -> list[ToolCall]:
    """The calls of the last `turns` assistant messages: those of this run before this dispatch."""
    if not turns:
        return []
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    return [call for message in answers[-turns:] for call in message.tool_calls]


def _with_calls_to_run(message: AssistantMessage) -> AssistantMessage:
    """The message; without its calls, which may be incomplete, unless it stopped for them (R-5.9, R-5.10)."""
    if message.stop_reason is StopReason.TOOL_USE or not message.tool_calls:
        return message
    return replace(message, content=tuple(block for block in message.content if not isinstance(block, ToolCall)))
