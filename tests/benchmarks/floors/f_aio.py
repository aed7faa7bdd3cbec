"""Floor "F-aio": the smallest server that does the job at all. grpc.aio with uvloop, httpx over the aiohttp transport;
deltas that wait for a subscriber are merged. Nothing is durable, there are no lanes, spans, policies."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
import httpx_aiohttp
from tests.benchmarks.floors.chat import converse, delta_event, end_event, new_run_id, wait_answer
from tests.benchmarks.floors.serving import run_floor

from laneway.v1 import agent_pb2, agent_pb2_grpc, run_pb2


@dataclass(slots=True)
class _Run:
    waiting: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def add(self, text: str) -> None:
        self.waiting.append(text)
        self.changed.set()


async def _data(response: httpx.Response) -> AsyncIterator[str | bytes]:
    rest = b""
    async for chunk in response.aiter_bytes():
        *events, rest = (rest + chunk).split(b"\n\n")
        for event in events:
            data = event.removeprefix(b"data: ")
            if data != b"[DONE]":
                yield data


class _Agents(agent_pb2_grpc.AgentServiceServicer):  # type: ignore[misc]
    def __init__(self, base_url: str) -> None:
        limits = httpx.Limits(max_connections=0, max_keepalive_connections=256)
        transport = httpx_aiohttp.AiohttpTransport(limits=limits)
        self._client = httpx.AsyncClient(transport=transport, base_url=base_url, timeout=60.0)
        self._runs: dict[str, _Run] = {}

    async def Agent(self, request: agent_pb2.AgentRequest, _context: Any) -> run_pb2.AgentResponse:
        run_id = new_run_id()
        run = self._runs[run_id] = _Run()
        run.task = asyncio.create_task(self._execute(request, run))
        return run_pb2.AgentResponse(run_id=run_id)

    async def Subscribe(self, request: agent_pb2.SubscribeRequest, context: Any) -> None:
        run = self._runs[request.run_id]
        while True:
            has_ended = run.task is not None and run.task.done()
            if run.waiting:
                text = "".join(run.waiting)
                run.waiting.clear()
                await context.write(delta_event(request.run_id, text))
            elif has_ended:
                await context.write(end_event(request.run_id))
                return
            else:
                run.changed.clear()
                await run.changed.wait()

    async def Wait(self, request: agent_pb2.WaitRequest, _context: Any) -> agent_pb2.WaitResponse:
        run = self._runs[request.run_id]
        assert run.task is not None
        await run.task
        del self._runs[request.run_id]
        return wait_answer(request.run_id)

    async def _execute(self, request: agent_pb2.AgentRequest, run: _Run) -> None:
        try:
            await converse(self._client, _data, request, run.add)
        finally:
            asyncio.get_running_loop().call_soon(run.changed.set)


def _add(server: grpc.aio.Server, options: argparse.Namespace) -> None:
    agent_pb2_grpc.add_AgentServiceServicer_to_server(_Agents(options.base_url), server)


if __name__ == "__main__":
    run_floor(_add)
