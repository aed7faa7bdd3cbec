"""Jobs with one call at a time: echo, accept, first delta, direct. Each call finds a server that is idle."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import grpc
import httpx
from tests.benchmarks.driver.agent_client import AgentClient
from tests.benchmarks.floors.direct import call_directly

PAUSE_S = 0.01
"""Between two calls, for everybody alike, so that none profits from what the one before has kept awake."""

Result = dict[str, Any]


async def echo(*, target: str, calls: int) -> Result:
    """Latencies of the floor "echo" in ms."""
    latencies = []
    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = channel.unary_unary("/floor.Echo/Echo")
        for _ in range(calls):
            await asyncio.sleep(PAUSE_S)
            began = time.perf_counter()
            await call(b"x" * 100)
            latencies.append((time.perf_counter() - began) * 1000)
    return {"ms": latencies}


async def accept(*, target: str, model: str, calls: int) -> Result:
    """Latencies of Agent in ms; the next call comes when the run of the last one has ended."""
    client = AgentClient(target)
    latencies = []
    for _ in range(calls):
        await asyncio.sleep(PAUSE_S)
        began = time.perf_counter()
        run_id = await client.accept(model)
        latencies.append((time.perf_counter() - began) * 1000)
        await client.wait(run_id)
    await client.close()
    return {"ms": latencies}


async def first_delta(*, target: str, model: str, calls: int) -> Result:
    """From the call of Agent to the first delta of the subscription that follows it, in ms."""
    client = AgentClient(target)
    latencies = []
    for _ in range(calls):
        await asyncio.sleep(PAUSE_S)
        began = time.perf_counter()
        run_id = await client.accept(model)
        seen = await client.follow(run_id)
        latencies.append((seen.first_delta_at - began) * 1000)
        await client.wait(run_id)
    await client.close()
    return {"ms": latencies}


async def direct(*, base_url: str, model: str, calls: int) -> Result:
    """From the request to the first token of the floor "direct", in ms."""
    latencies = []
    async with httpx.AsyncClient() as client:
        for _ in range(calls):
            await asyncio.sleep(PAUSE_S)
            latencies.append((await call_directly(client, base_url, model)).first_s * 1000)
    return {"ms": latencies}


async def fsync(*, folder: str, calls: int) -> Result:
    """Appending one page to a file and syncing it, in ms."""
    latencies = []
    path = Path(folder) / "synced-pages"
    with path.open("ab", buffering=0) as file:
        for _ in range(calls):
            await asyncio.sleep(PAUSE_S)
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            latencies.append((time.perf_counter() - began) * 1000)
    path.unlink()
    return {"ms": latencies}
