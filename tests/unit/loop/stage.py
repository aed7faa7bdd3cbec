"""What a loop needs around it in a test: a provider that plays, a recorder that remembers, tools, a gate."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fakes.fake_clock import FakeClock

from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.loop.agent_loop import AgentLoop, LoopPlan
from lanewayd.loop.answer_schema import AnswerSchema
from lanewayd.loop.interface import Parked
from lanewayd.loop.route import Route, RouteParts
from lanewayd.loop.tool_calls import ToolBatch
from lanewayd.loop.turn import ModelTurn
from lanewayd.messages import (
    AssistantMessage,
    ModelFacts,
    Prices,
    RunError,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.models.candidates import Candidate
from lanewayd.models.entering import ProbeThrottle
from lanewayd.models.interface import Profiles, SoleCredentials
from lanewayd.providers.interface import Done, Failed, ModelRequest, Provider, StreamEvent
from lanewayd.tools.interface import Tool, ToolContext, ToolResult
from lanewayd.tools.toolset import ToolShelf

USAGE = Usage(10, 5)


def answer(text: str = "done", stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage((Text(text),), "acme", "m", stop, USAGE)


def asks(*names: str, text: str = "", stop: StopReason = StopReason.TOOL_USE) -> AssistantMessage:
    """A message that calls tools; a call's id is the tool's name and the number of the call."""
    calls = tuple(ToolCall(f"{name}{number}", name, "{}") for number, name in enumerate(names))
    return AssistantMessage(((Text(text), *calls) if text else calls), "acme", "m", stop, USAGE)


def failure(reason: str = "PROVIDER_UNAVAILABLE", *, is_transient: bool = True, text: str = "") -> Failed:
    content = (Text(text),) if text else ()
    return Failed(
        RunError(reason, "no", provider="acme", model="m", http_status=503),
        AssistantMessage(content, "acme", "m", StopReason.ERROR),
        is_transient=is_transient,
    )


class PlayingProvider:
    """Implements Provider: plays one list of events after the other; a bare message or failure is a list of one."""

    name = "acme"

    def __init__(self, *turns: AssistantMessage | Failed | Sequence[StreamEvent]) -> None:
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.has_schemas = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        try:
            for event in _events(self._turns.pop(0)):
                yield event
        finally:
            self.closed += 1

    def has_native_schema(self, request: ModelRequest) -> bool:
        return self.has_schemas

    async def close(self) -> None:
        return


def _events(turn: AssistantMessage | Failed | Sequence[StreamEvent]) -> Sequence[StreamEvent]:
    if isinstance(turn, AssistantMessage):
        return [Done(turn)]
    return [turn] if isinstance(turn, Failed) else turn


class RememberingRecorder:
    """Implements Recorder: remembers what it was told, as (what, ...) in `told`."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self._heard = asyncio.Event()

    def calling(self, candidate: Candidate, *, instead_of: RunError | None, attempt: int) -> None:
        if instead_of is not None:
            self.told.append(("takes over", candidate.reference, instead_of.reason, attempt))

    def text(self, content_index: int, text: str) -> None:
        self.told.append(("text", content_index, text))

    def reasoning(self, content_index: int, text: str) -> None:
        self.told.append(("reasoning", content_index, text))

    def block_ended(self) -> None:
        self.told.append(("block ended",))

    @property
    def usage(self) -> Usage:
        told = [entry[1] if entry[0] == "failed" else entry[1].usage for entry in self.of("message", "failed")]
        return sum(told, Usage())

    def call_failed(self, usage: Usage) -> None:
        self.told.append(("failed", usage))

    def message_ended(self, message: AssistantMessage) -> None:
        self.told.append(("message", message))

    def retry(self, error: RunError, *, attempt: int, delay_s: float, corrections: int | None = None) -> None:
        self.told.append(("retry", error.reason, attempt, delay_s))

    async def launch(self, calls: Sequence[ToolCall], *, durable: bool) -> None:
        self.told.append(("launch", [call.call_id for call in calls], durable))

    def tool_update(self, call: ToolCall, text: str) -> None:
        self.told.append(("update", call.call_id, text))

    def tool_finished(self, call: ToolCall, result: ToolResult, *, duration_s: float, really_ran: bool) -> None:
        self.told.append(("finished", call.call_id, result.is_error, really_ran))
        self._heard.set()

    def batch_settled(self, results: Sequence[ToolResultMessage]) -> None:
        self.told.append(("settled", [result.call_id for result in results]))

    async def finished(self, count: int) -> None:
        """Return when `count` calls have finished."""
        while len(self.of("finished")) < count:
            self._heard.clear()
            await self._heard.wait()

    def of(self, *whats: str) -> list[tuple[Any, ...]]:
        return [entry for entry in self.told if entry[0] in whats]


class CountingGate:
    """Implements StepGate: lets `steps` steps begin, then parks."""

    def __init__(self, steps: int = 1_000) -> None:
        self._steps = steps

    def check(self) -> None:
        if self._steps == 0:
            raise Parked
        self._steps -= 1


class HereWorkplace:
    """Implements Workplace in the current folder."""

    async def prepare(self) -> None:
        return

    def context(self, call_id: str, report: Callable[[str], None]) -> ToolContext:
        return ToolContext("run_1", call_id, "main", "agent:main:main", Path.cwd(), report)


def route_of(
    chain: Sequence[Candidate],
    providers: Mapping[str, Provider],
    *,
    clock: FakeClock,
    profiles: Profiles | None = None,
    probes: ProbeThrottle | None = None,
) -> Route:
    """The route of a run over these models; a provider that is not there has lost its settings."""

    def provider(name: str) -> Provider:
        if name not in providers:
            raise LanewayError(ErrorCode.MODEL_NOT_CONFIGURED, f"no {name}")
        return providers[name]

    parts = RouteParts(provider, profiles or SoleCredentials(), probes or ProbeThrottle(), clock)
    return Route(chain, parts, session_id="s")


class PlayedSteering:
    """A message that waits to go into the run once `after_calls` model calls were made."""

    def __init__(self, provider: PlayingProvider, after_calls: int, text: str) -> None:
        self._provider = provider
        self._after_calls = after_calls
        self._waiting: tuple[UserMessage, ...] = (UserMessage(text),)

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting) and len(self._provider.requests) >= self._after_calls

    async def take(self) -> tuple[UserMessage, ...]:
        taken, self._waiting = self._waiting, ()
        return taken


class Stage:
    """One loop with everything around it."""

    def __init__(
        self,
        *turns: AssistantMessage | Failed | Sequence[StreamEvent],
        tools: Sequence[Tool] = (),
        allow: Sequence[str] = (),
        max_turns: int = 0,
        prices: Prices | None = None,
        schema: dict[str, Any] | None = None,
        gate: CountingGate | None = None,
        steered: tuple[int, str] | None = None,
    ) -> None:
        """`steered`: a message that comes after so many model calls."""
        self.clock = FakeClock()
        self.provider = PlayingProvider(*turns)
        self.steering = PlayedSteering(self.provider, *steered) if steered is not None else None
        self.recorder = RememberingRecorder()
        toolset = ToolShelf(tools).select(allow)
        gate = gate or CountingGate()
        self.batch = ToolBatch(
            toolset=toolset,
            workplace=HereWorkplace(),
            recorder=self.recorder,
            clock=self.clock,
            steering=self.steering,
        )
        candidate = Candidate("acme", "m", ModelFacts(prices=prices or Prices()))
        route = route_of([candidate], {"acme": self.provider}, clock=self.clock)
        self.loop = AgentLoop(
            plan=LoopPlan(
                "system",
                max_turns,
                lambda: 60.0,
                toolset.specs,
                toolset.is_emptied_by_policy,
                answer_schema=AnswerSchema(schema) if schema else None,
            ),
            turn=ModelTurn(route=route, recorder=self.recorder, clock=self.clock, gate=gate),
            batch=self.batch,
            recorder=self.recorder,
            gate=gate,
            steering=self.steering,
        )
