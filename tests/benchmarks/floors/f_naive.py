"""Floor "F-naive": as F-aio, with stock httpx and one gRPC message per delta."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
from tests.benchmarks.floors.chat import converse, delta_event, end_event, new_run_id, wait_answer
from tests.benchmarks.floors.serving import run_floor

from laneway.v1 import agent_pb2, agent_pb2_grpc, run_pb2


@dataclass(slots=True)
class _Run:
    deltas: "asyncio.Queue[str | None]" = field(default_factory=asyncio.Queue)
    task: asyncio.Task[None] | None = None


async def _data(response: httpx.Response) -> AsyncIterator[str | bytes]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield line.removeprefix("data: ")


class _Agents(agent_pb2_grpc.AgentServiceServicer):  # type: ignore[misc]
    def __init__(self, base_url: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
        self._client = httpx.AsyncClient(base_url=base_url, timeout=60.0, limits=limits)
        self._runs: dict[str, _Run] = {}

    async def Agent(self, request: agent_pb2.AgentRequest, _context: Any) -> run_pb2.AgentResponse:
        run_id = new_run_id()
        run = self._runs[run_id] = _Run()
        run.task = asyncio.create_task(self._execute(request, run))
        return run_pb2.AgentResponse(run_id=run_id)

    async def Subscribe(self, request: agent_pb2.SubscribeRequest, context: Any) -> None:
        run = self._runs[request.run_id]
        while (delta := await run.deltas.get()) is not None:
            await context.write(delta_event(request.run_id, delta))
        await context.write(end_event(request.run_id))

    async def Wait(self, request: agent_pb2.WaitRequest, _context: Any) -> agent_pb2.WaitResponse:
        run = self._runs[request.run_id]
        assert run.task is not None
        await run.task
        del self._runs[request.run_id]
        return wait_answer(request.run_id)

    async def _execute(self, request: agent_pb2.AgentRequest, run: _Run) -> None:
        try:
            await converse(self._client, _data, request, run.deltas.put_nowait)
        finally:
            run.deltas.put_nowait(None)


def _add(server: grpc.aio.Server, options: argparse.Namespace) -> None:
    agent_pb2_grpc.add_AgentServiceServicer_to_server(_Agents(options.base_url), server)


if __name__ == "__main__":
    run_floor(_add)
