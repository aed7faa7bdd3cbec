"""One model call: a stream of events becomes one assistant message, with everything that is tried before it fails."""

from contextlib import aclosing
from dataclasses import replace

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode
from lanewayd.loop.captured import captured_answer, captured_request
from lanewayd.loop.costs import with_cost
from lanewayd.loop.incomplete import (
    INSTRUCTIONS,
    Conduct,
    Lack,
    as_end,
    lack_of,
    may_nudge,
    no_answer,
    with_instruction,
)
from lanewayd.loop.interface import Recorder, StepGate
from lanewayd.loop.limits import NO_BUDGET, Budget, budget_error
from lanewayd.loop.route import Leg, Route
from lanewayd.loop.structured import asking_for_schema
from lanewayd.messages import AssistantMessage, FailureClass, RunError, StopReason
from lanewayd.models.failover import Move
from lanewayd.providers.interface import BlockEnded, Done, Failed, ModelRequest, ReasoningDelta, TextDelta
from lanewayd.telemetry.traces import ModelCallTrace, RunTrace

_TERMINAL = (Done, Failed)


class ModelTurn:
    """Calls the models of a route, showing what they say through the recorder."""

    def __init__(
        self,
        *,
        route: Route,
        recorder: Recorder,
        clock: Clock,
        gate: StepGate,
        trace: RunTrace | None = None,
        budget: Budget = NO_BUDGET,
    ) -> None:
        """`trace`: None tells nobody. `budget`: another try must be within it, as the first was."""
        self._route = route
        self._recorder = recorder
        self._clock = clock
        self._gate = gate
        self._trace = trace or RunTrace.off()
        self._budget = budget

    async def call(self, request: ModelRequest, conduct: Conduct) -> Done | Failed:
        """The model's message, or the failure that nothing may follow. Raises Parked between tries.

        What depends on the model is put into `request` here. `conduct`: what the run has done so far.
        """
        tries, nudges, asked = 0, 0, request
        while True:
            self._gate.check()
            if tries and (spent := budget_error(self._budget, self._recorder.usage)) is not None:
                return Failed(spent, AssistantMessage((), "", "", StopReason.ERROR))
            leg = await self._route.leg()
            if isinstance(leg, RunError):
                return Failed(leg, AssistantMessage((), leg.provider, leg.model, StopReason.ERROR))
            self._recorder.calling(leg.candidate, instead_of=leg.instead_of, attempt=tries + 1)
            outcome = await self._try(leg, leg.request(asked))
            tries += 1
            if isinstance(outcome, Failed):
                if not await self._goes_on(outcome, conduct, tries=tries):
                    return replace(outcome, error=self._route.error_of(outcome))
                continue
            lack = lack_of(outcome.message)
            is_nudged = lack is not None and may_nudge(lack, nudges=nudges, conduct=conduct)
            if lack is None or (not is_nudged and outcome.message.stop_reason is StopReason.LENGTH):
                await self._route.answered()
                return outcome
            failed = self._lacking(outcome, lack)
            if not is_nudged:
                return replace(failed, error=as_end(failed.error, request.messages, conduct))
            nudges += 1
            asked = replace(request, messages=with_instruction(request.messages, INSTRUCTIONS[lack]))
            self._retry(failed.error, attempt=tries + 1, delay_s=0.0)

    async def _goes_on(self, failed: Failed, conduct: Conduct, *, tries: int) -> bool:
        """Wait for, and tell, what is tried next; False when nothing is."""
        step = await self._route.failed(failed, conduct)
        if step.move is Move.SURFACE:
            return False
        if step.move is Move.NEXT_MODEL:
            self._trace.retrying(error_type=failed.error.reason, attempt=tries + 1, delay_s=0.0)
            return True  # told with the call of the next model
        self._retry(failed.error, attempt=tries + 1, delay_s=step.delay_s)
        if step.delay_s:
            await self._clock.sleep(step.delay_s)
        return True

    def _retry(self, error: RunError, *, attempt: int, delay_s: float) -> None:
        self._recorder.retry(error, attempt=attempt, delay_s=delay_s)
        self._trace.retrying(error_type=error.reason, attempt=attempt, delay_s=delay_s)

    def _lacking(self, outcome: Done, lack: Lack) -> Failed:
        """A message without an answer, as the failure that it is."""
        message = replace(outcome.message, stop_reason=StopReason.ERROR)
        self._recorder.call_failed(message.usage)
        return Failed(no_answer(lack, outcome.message), message, finer=FailureClass.EMPTY_RESPONSE)

    async def _try(self, leg: Leg, request: ModelRequest) -> Done | Failed:
        request = asking_for_schema(request, leg.provider)
        with self._trace.model_call(leg.provider.name, request.model) as call:
            if call.captures_content:
                call.sent(captured_request(request))
            outcome, chunks = await self._stream(leg, request, call)
            outcome = with_cost(outcome, request.facts.prices)
            if isinstance(outcome, Failed):
                used = outcome.partial.usage
                self._recorder.call_failed(used)
                call.failed(error_type=outcome.error.reason, tokens=used if used.total_tokens else None, chunks=chunks)
                return outcome
            message = outcome.message
            call.succeeded(
                model=message.response_model or message.model,
                finish_reason=message.stop_reason.value,
                tokens=message.usage,
                chunks=chunks,
                output=captured_answer(message) if call.captures_content else None,
            )
            return outcome

    async def _stream(self, leg: Leg, request: ModelRequest, call: ModelCallTrace) -> tuple[Done | Failed, int]:
        """The outcome, and how many events came before it."""
        chunks = 0
        async with aclosing(leg.provider.stream(request)) as events:
            async for event in events:
                if isinstance(event, _TERMINAL):
                    return event, chunks
                if not chunks:
                    call.first_chunk()
                chunks += 1
                if isinstance(event, TextDelta):
                    self._recorder.text(event.content_index, event.text)
                elif isinstance(event, ReasoningDelta):
                    self._recorder.reasoning(event.content_index, event.text)
                elif isinstance(event, BlockEnded):
                    self._recorder.block_ended()
        return _without_outcome(leg.provider.name, request.model), chunks


def _without_outcome(provider: str, model: str) -> Failed:
    error = RunError(
        ErrorCode.PROVIDER_BAD_RESPONSE.value,
        "the provider's stream ended without an outcome",
        provider=provider,
        model=model,
    )
    partial = AssistantMessage((), provider, model, StopReason.ERROR)
    return Failed(error, partial, finer=FailureClass.EMPTY_RESPONSE)
