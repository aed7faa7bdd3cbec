"""Calls that end while the server stops (B-075), and what cancelled ones leave behind."""

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.rpc_service import FakeRuns
from tests.rpc.harness import Harness, refused

from laneway.v1 import agent_pb2, agent_pb2_grpc
from lanewayd.records import Run
from lanewayd.rpc.server import add_address


class _HeldRuns(FakeRuns):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def run(self, tenant: str, run_id: str) -> Run:
        self.was_asked.set()
        await self.let_go.wait()
        return await super().run(tenant, run_id)


async def test_b075_a_refusal_that_comes_while_the_server_stops_keeps_its_status(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = _HeldRuns()
    server = Harness(runs=runs).server()
    address = f"unix:{socket_folder}/s"
    add_address(server, address)
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        waiting = asyncio.ensure_future(
            refused(agent_pb2_grpc.AgentServiceStub(channel).Wait(agent_pb2.WaitRequest(run_id="unknown")))
        )
        await runs.was_asked.wait()
        stopping = asyncio.ensure_future(server.stop(30))
        await asyncio.sleep(0)
        runs.let_go.set()
        refusal = await waiting
        await asyncio.wait_for(stopping, 5)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def test_many_cancelled_subscriptions_leave_neither_handlers_nor_memory(harness: Harness, agent: Any) -> None:
    async def cancel_some(count: int) -> None:
        for _ in range(count):
            harness.logs.opened.clear()
            harness.logs.closed.clear()
            call = agent.Subscribe(agent_pb2.SubscribeRequest(all=True))
            await harness.logs.opened.wait()
            call.cancel()
            await harness.logs.closed.wait()
        gc.collect()

    await cancel_some(200)
    before_mib = _resident_mib()
    await cancel_some(1000)
    assert harness.logs.open_count == 0
    assert _resident_mib() - before_mib < 8
