"""A service whose clock stands still, for suites that read its logs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import Refusal, refused_stream

from laneway.v1 import agent_pb2, event_pb2
from lanewayd.app import Seams


@dataclass
class Stage:
    """A service whose clock stands still, with a tool that waits for the test."""

    service: RunningService
    model: ModelServer
    tool: RecordingTool
    clock: FakeClock

    async def ended(self, *pieces: str, session_key: str = "s") -> str:
        """A run that has ended, having said `pieces`."""
        self.model.answer(text_answer(*(pieces or ("ok",))))
        accepted = await self.service.accept(session_key=session_key)
        await self.service.wait(accepted.run_id)
        return accepted.run_id

    async def at_work(self, session_key: str = "s") -> str:
        """A run that stands in a tool call."""
        self.model.answer(calls_answer(("rec", {}), text="Working. "))
        accepted = await self.service.accept(session_key=session_key)
        await self.tool.asked.get()
        return accepted.run_id

    async def let_go(self, run_id: str) -> None:
        """The tool call returns, and the run ends."""
        self.tool.calls[-1].answer.set_result(DONE)
        await self.service.wait(run_id)

    def subscribe(self, **fields: Any) -> Any:
        """A subscription."""
        return self.service.agent.Subscribe(agent_pb2.SubscribeRequest(**fields))

    def subscribe_bytes(self, **fields: Any) -> Any:
        """A subscription whose events are left as they come."""
        call: Any = self.service.channel.unary_stream(
            "/laneway.v1.AgentService/Subscribe", request_serializer=agent_pb2.SubscribeRequest.SerializeToString
        )
        return call(agent_pb2.SubscribeRequest(**fields))

    async def refused(self, **fields: Any) -> Refusal:
        """The refusal of a subscription."""
        return await refused_stream(self.subscribe(**fields))

    async def retention(self, after_s: float) -> None:
        """Time passes until retention has looked again."""
        await self.clock.wait_for_upkeep("retention")
        await self.clock.advance(after_s)
        # It has looked, but perhaps before all that time was over.
        await self.clock.wait_for_upkeep("retention")
        await self.clock.advance(60)
        await self.clock.wait_for_upkeep("retention")


@asynccontextmanager
async def staged(home: Path, model: ModelServer, toml: str = "") -> AsyncGenerator[Stage, None]:
    clock, tool = FakeClock(), RecordingTool("rec", hold=True)
    async with running_service(home, model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)) as service:
        yield Stage(service, model, tool, clock)


async def read(subscription: Any, count: int) -> list[event_pb2.Event]:
    """The next events of a subscription that goes on."""
    return [await subscription.read() for _ in range(count)]


async def first_behind(stage: Stage, refusal: Refusal) -> tuple[str, int]:
    """Where a reader comes in that takes the earliest cursor of a refusal."""
    subscription = stage.subscribe(all=True, cursor=refusal.metadata["earliest_cursor"])
    event = await subscription.read()
    subscription.cancel()
    return event.run_id, event.seq
