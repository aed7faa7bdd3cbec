"""A model that obeys the test: its calls wait for what the test says, or play what was planned."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from lanewayd.messages import AssistantMessage, RunError, StopReason, Text, ToolCall, Usage
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent, TextDelta

USAGE = Usage(10, 5)


def answer(text: str = "done", stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage((Text(text),), "acme", "m", stop, USAGE)


def asks(*calls: tuple[str, str], text: str = "") -> AssistantMessage:
    """A message that calls tools: (call id, name)."""
    blocks = tuple(ToolCall(call_id, name, "{}") for call_id, name in calls)
    return AssistantMessage(((Text(text), *blocks) if text else blocks), "acme", "m", StopReason.TOOL_USE, USAGE)


def failure(reason: str = "PROVIDER_UNAVAILABLE", *, is_transient: bool = True, text: str = "") -> Failed:
    content = (Text(text),) if text else ()
    error = RunError(reason, "the model service said no", provider="acme", model="m", http_status=503)
    return Failed(error, AssistantMessage(content, "acme", "m", StopReason.ERROR), is_transient=is_transient)


@dataclass(eq=False)
class ModelCall:
    """One call that has reached the model; it goes on as the test says."""

    request: ModelRequest
    events: "asyncio.Queue[StreamEvent | BaseException]" = field(default_factory=asyncio.Queue)
    was_closed: bool = False

    def say(self, *texts: str) -> None:
        """Text deltas of block 0."""
        self.give(*(TextDelta(0, text) for text in texts))

    def give(self, *events: StreamEvent | BaseException) -> None:
        """Stream events, or an exception to raise."""
        for event in events:
            self.events.put_nowait(event)

    def end(self, message: AssistantMessage | Failed) -> None:
        """The terminal event."""
        self.give(message if isinstance(message, Failed) else Done(message))


class StagedProvider:
    """Implements Provider. Plays what was planned; without a plan each call waits in `asked` for the test."""

    name = "acme"

    def __init__(self) -> None:
        self.asked: asyncio.Queue[ModelCall] = asyncio.Queue()
        self.calls: list[ModelCall] = []
        self._planned: list[AssistantMessage | Failed] = []

    def plan(self, *turns: AssistantMessage | Failed) -> None:
        """The next calls are answered with these at once."""
        self._planned.extend(turns)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        call = ModelCall(request)
        self.calls.append(call)
        if self._planned:
            call.end(self._planned.pop(0))
        else:
            self.asked.put_nowait(call)
        try:
            while True:
                event = await call.events.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            call.was_closed = True

    def has_native_schema(self, request: ModelRequest) -> bool:
        return False

    async def close(self) -> None:
        return
