"""What the tests of the HTTP provider share: a request, a key that must show nowhere, and readers of the events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import delta

from lanewayd.clock import TimerHandle
from lanewayd.messages import UserMessage
from lanewayd.providers.http_provider import HttpProvider
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent, TextDelta

KEY = "sk-canary-0123456789abcdef"
REQUEST = ModelRequest("m1", "be brief", (UserMessage("hello"),))
PARTIAL_CALL = delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "rec", "arguments": '{"a":1,"b":"unf'}}])
MakeProvider = Callable[..., HttpProvider]


class CountingClock(FakeClock):
    """Also tells how often a timer was set."""

    def __init__(self) -> None:
        super().__init__()
        self._armed: asyncio.Queue[None] = asyncio.Queue()
        self._seen = 0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        self._armed.put_nowait(None)
        return super().call_later(delay_s, callback)

    async def armed(self, count: int) -> None:
        """Return when a timer was set for the `count`th time."""
        while self._seen < count:
            await self._armed.get()
            self._seen += 1


async def events_of(provider: HttpProvider, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def failure_of(provider: HttpProvider, request: ModelRequest = REQUEST) -> Failed:
    events = await events_of(provider, request)
    assert [event for event in events if isinstance(event, Done | Failed)] == events[-1:]
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.provider, failed.error.model) == ("acme", "m1")
    assert "acme" in failed.error.message
    assert "m1" in failed.error.message
    assert KEY not in repr(failed)
    assert not failed.partial.tool_calls
    return failed


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def collect(events: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    """The events that are left."""
    return [event async for event in events]
