"""Memory and files are bounded by what runs now, not by history: nothing is left of sessions that were used once."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.processes.scale import scaled

from laneway.v1 import admin_pb2, agent_pb2, run_pb2

pytestmark = pytest.mark.timeout(scaled(600, 7200))

AT_ONCE = 25


async def _three_sessions(service: RunningService) -> None:
    """Two runs in sessions of their own that end, one that is aborted while it waits for its lane."""
    waiting = await service.accept("never", lane="taken")
    ended = await asyncio.gather(service.finish("one"), service.finish("two", tools_allow=["read"]))
    assert [answer.state for answer in ended] == [run_pb2.RUN_STATE_SUCCEEDED] * 2
    receipt = await service.agent.Abort(agent_pb2.AbortRequest(run_id=waiting.run_id))
    assert list(receipt.cancelled_run_ids) == [waiting.run_id]
    assert (await service.wait(waiting.run_id)).state == run_pb2.RUN_STATE_CANCELLED
    events = await service.events(waiting.run_id)
    assert events[-1].lifecycle.cancelled


async def test_nothing_is_left_of_sessions_that_were_used_once(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml="[lanes.taken]\nmax_concurrent = 0\n") as service:
        rounds = scaled(666, 33_000)
        for first in range(0, rounds, AT_ONCE):
            await asyncio.gather(*(_three_sessions(service) for _ in range(min(AT_ONCE, rounds - first))))

        inside = service.service.parts
        scheduler = service.service.runs.scheduler  # what only a look inside shows
        await scheduler.idle()
        assert scheduler.book.is_empty
        assert scheduler.executing == 0
        assert len(inside.watches) == 0
        assert service.service.runs.followers.count == 0
        assert service.service.runs.followers._topics == {}  # noqa: SLF001
        assert list((home / "locks").iterdir()) == []
        status = await service.admin.GetStatus(admin_pb2.GetStatusRequest())
        assert status.subscribers == 0
        assert {lane.name: (lane.active, lane.queued) for lane in status.lanes if lane.active or lane.queued} == {}
    assert sorted(path.name for path in home.iterdir()) == [
        "laneway.db",
        "laneway.toml",
        "locks",
        "run",
        "scripts",
        "server.lock",
        "workspaces",
    ]
