"""Subscribe at its edges, through the whole service (CONTRACT, Subscribe)."""

from pathlib import Path

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

from laneway.v1 import agent_pb2
from lanewayd.app import Seams


async def test_retention_does_not_disturb_who_is_reading(tmp_path: Path, model: ModelServer) -> None:
    clock = FakeClock()
    async with running_service(tmp_path / "home", model=model, seams=Seams(clock=clock)) as service:
        subscription = service.agent.Subscribe(agent_pb2.SubscribeRequest(all=True))
        first = await service.accept()
        assert (await subscription.read()).run_id == first.run_id
        await service.wait(first.run_id)
        await clock.wait_for_sleepers(1)
        await clock.advance(60)
        await clock.wait_for_sleepers(1)
        second = await service.accept()
        while (await subscription.read()).run_id != second.run_id:
            pass
        subscription.cancel()
