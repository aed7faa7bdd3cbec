"""One model call: a stream of events becomes one assistant message, with retries before it (D-15)."""

from contextlib import aclosing

from lanewayd.clock import Clock
from lanewayd.errors import ErrorCode
from lanewayd.loop.captured import captured_answer, captured_request
from lanewayd.loop.costs import with_cost
from lanewayd.loop.interface import Recorder, StepGate
from lanewayd.loop.retry import retry_delay_s
from lanewayd.loop.structured import asking_for_schema
from lanewayd.messages import AssistantMessage, RunError, StopReason
from lanewayd.providers.interface import BlockEnded, Done, Failed, ModelRequest, Provider, ReasoningDelta, TextDelta
from lanewayd.telemetry.traces import ModelCallTrace, RunTrace

_TERMINAL = (Done, Failed)


class ModelTurn:
    """Calls one provider, showing what it says through the recorder."""

    def __init__(
        self,
        *,
        provider: Provider,
        recorder: Recorder,
        clock: Clock,
        gate: StepGate,
        trace: RunTrace | None = None,
    ) -> None:
        """`trace`: None tells nobody."""
        self._provider = provider
        self._recorder = recorder
        self._clock = clock
        self._gate = gate
        self._trace = trace or RunTrace.off()

    async def call(self, request: ModelRequest) -> Done | Failed:
        """The model's message, or the failure that no retry may follow. Raises Parked between tries."""
        tries = 0
        while True:
            self._gate.check()
            outcome = await self._try(request)
            if isinstance(outcome, Done):
                return outcome
            tries += 1
            delay_s = retry_delay_s(outcome, tries=tries)
            if delay_s is None:
                return outcome
            self._recorder.retry(outcome.error, attempt=tries + 1, delay_s=delay_s)
            self._trace.retrying(error_type=outcome.error.reason, attempt=tries + 1, delay_s=delay_s)
            await self._clock.sleep(delay_s)

    async def _try(self, request: ModelRequest) -> Done | Failed:
        request = asking_for_schema(request, self._provider)
        with self._trace.model_call(self._provider.name, request.model) as call:
            if call.captures_content:
                call.sent(captured_request(request))
            outcome, chunks = await self._stream(request, call)
            outcome = with_cost(outcome, request.facts.prices)
            if isinstance(outcome, Failed):
                used = outcome.partial.usage
                self._recorder.call_failed(used)
                call.failed(error_type=outcome.error.reason, tokens=used if used.total_tokens else None, chunks=chunks)
                return outcome
            message = outcome.message
            call.succeeded(
                model=message.model,
                finish_reason=message.stop_reason.value,
                tokens=message.usage,
                chunks=chunks,
                output=captured_answer(message) if call.captures_content else None,
            )
            return outcome

    async def _stream(self, request: ModelRequest, call: ModelCallTrace) -> tuple[Done | Failed, int]:
        """The outcome, and how many events came before it."""
        chunks = 0
        async with aclosing(self._provider.stream(request)) as events:
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
        return self._without_outcome(request), chunks

    def _without_outcome(self, request: ModelRequest) -> Failed:
        return Failed(
            RunError(
                ErrorCode.PROVIDER_BAD_RESPONSE.value,
                "the provider's stream ended without an outcome",
                provider=self._provider.name,
                model=request.model,
            ),
            AssistantMessage((), self._provider.name, request.model, StopReason.ERROR),
        )
