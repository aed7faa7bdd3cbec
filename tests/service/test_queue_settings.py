"""Where the mode of a message, its debounce, its cap and what is dropped come from (D-7; spec 02, R-2.36 to R-2.38)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.busy_session import FINISHED, at_work, end_of, held_tool
from tests.service.refusals import refused

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams

COLLECT, INTERRUPT = agent_pb2.QUEUE_MODE_COLLECT, agent_pb2.QUEUE_MODE_INTERRUPT
SETTINGS = """[queue]
mode = "followup"
[queue.by_channel]
SMS = "interrupt"
mail = "collect"
[queue.debounce_ms_by_channel]
mail = 2000
"""


@dataclass
class Busy:
    """A service whose session s is at work."""

    service: RunningService
    clock: FakeClock
    tool: RecordingTool
    run_id: str

    async def finish_first(self) -> None:
        self.tool.calls[0].answer.set_result(DONE)
        assert await end_of(self.service, self.run_id) == FINISHED

    async def state_of(self, run_id: str) -> int:
        return (await get_run(self.service, run_id)).state


@asynccontextmanager
async def busy(home: Path, model: ModelServer, toml: str = SETTINGS) -> AsyncGenerator[Busy]:
    tool, clock = held_tool(), FakeClock()
    async with running_service(home, model=model, tools=[tool], toml=toml, seams=Seams(clock=clock)) as service:
        yield Busy(service, clock, tool, await at_work(service, model, tool))


async def set_for_session(service: RunningService, **fields: Any) -> None:
    request = session_pb2.UpdateSessionRequest(session=session_pb2.Session(session_key="s", **fields))
    request.update_mask.paths.extend(fields)
    await service.sessions.UpdateSession(request)


@pytest.mark.parametrize(
    ("channel", "of_session", "asked", "disposition"),
    [
        ("", 0, 0, "QUEUED"),
        ("mail", 0, 0, "QUEUED"),
        ("web", 0, 0, "QUEUED"),
        ("sms", 0, 0, "INTERRUPTED_PREVIOUS"),
        ("sms", COLLECT, 0, "QUEUED"),
        ("web", INTERRUPT, 0, "INTERRUPTED_PREVIOUS"),
        ("sms", INTERRUPT, COLLECT, "QUEUED"),
        ("web", COLLECT, INTERRUPT, "INTERRUPTED_PREVIOUS"),
    ],
)
async def test_the_mode_is_that_of_the_message_else_of_its_session_else_of_its_channel(
    tmp_path: Path,
    model: ModelServer,
    channel: str,
    of_session: agent_pb2.QueueMode,
    asked: agent_pb2.QueueMode,
    disposition: str,
) -> None:
    async with busy(tmp_path / "home", model) as stage:
        if of_session:
            await set_for_session(stage.service, queue_mode=of_session)
        new = await stage.service.accept("second", session_key="s", channel=channel, queue_mode=asked)
        assert run_pb2.Disposition.Name(new.disposition) == f"DISPOSITION_{disposition}"


@pytest.mark.parametrize(
    ("channel", "of_session", "debounce_s"),
    [("mail", None, 2.0), ("", None, 0.5), ("mail", Duration(seconds=4), 4.0), ("", Duration(seconds=4), 4.0)],
)
async def test_the_debounce_is_that_of_the_session_else_of_the_channel_else_of_the_service(
    tmp_path: Path, model: ModelServer, channel: str, of_session: Duration | None, debounce_s: float
) -> None:
    async with busy(tmp_path / "home", model) as stage:
        if of_session is not None:
            await set_for_session(stage.service, queue_debounce=of_session)
        new = await stage.service.accept("second", session_key="s", channel=channel, queue_mode=COLLECT)
        await stage.finish_first()
        await stage.clock.advance(debounce_s - 0.125)
        assert await stage.state_of(new.run_id) == run_pb2.RUN_STATE_QUEUED
        await stage.clock.advance(0.125)
        assert await end_of(stage.service, new.run_id) == FINISHED


async def test_cap_and_drop_of_the_session_come_before_those_of_the_service(tmp_path: Path, model: ModelServer) -> None:
    async with busy(tmp_path / "home", model) as stage:
        await set_for_session(stage.service, queue_cap=1, queue_drop=session_pb2.QUEUE_DROP_NEW)
        kept = await stage.service.accept("second", session_key="s", queue_mode=COLLECT)
        refusal = await refused(stage.service.accept("third", session_key="s", queue_mode=COLLECT))
        assert refusal.reason == "QUEUE_FULL"
        await set_for_session(stage.service, queue_drop=session_pb2.QUEUE_DROP_OLD)
        last = await stage.service.accept("fourth", session_key="s", queue_mode=COLLECT)
        assert await end_of(stage.service, kept.run_id) == (run_pb2.RUN_STATE_CANCELLED, "dropped")
        await stage.finish_first()
        await stage.clock.advance(0.5)
        assert await end_of(stage.service, last.run_id) == FINISHED
