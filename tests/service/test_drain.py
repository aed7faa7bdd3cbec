"""Leaving, phase by phase (D-18), in process: announce, refuse, park, cut, tell."""

import asyncio
from pathlib import Path

from tests.fakes.commit_gates import HoldingGate
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service
from tests.service.agreement import read_ended

from laneway.v1 import agent_pb2
from lanewayd.app import Seams
from lanewayd.store.interface import StartRun


async def test_a_run_that_is_cut_while_its_start_is_being_stored_goes_on_after_the_restart(
    tmp_path: Path, model: ModelServer
) -> None:
    gate = HoldingGate(lambda command: isinstance(command, StartRun), after=True)
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        accepted = await service.accept()
        await gate.reached()
        service.service.request_drain()
        service.service.request_drain()
        await asyncio.sleep(0)
        gate.release()
        await service.finished
    assert model.requests == []
    async with running_service(tmp_path / "home", model=model) as service:
        reading = await read_ended(service, accepted.run_id)
        assert reading.waited.status == agent_pb2.WAIT_STATUS_OK
        assert reading.run.attempt == 2
    assert len(model.requests) == 1
