"""Jobs that read logs: a finished run again and again, and one session by many at once."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from tests.benchmarks.driver.agent_client import AgentClient

from laneway.v1 import event_pb2

Result = dict[str, Any]

_LAST_PHASES = (event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR)


async def long_run(*, target: str, model: str, messages_file: str) -> Result:
    """One run; what its replay sends is written down, a hexadecimal line for each message."""
    client = AgentClient(target)
    run_id = await client.accept(model)
    await client.follow(run_id)
    messages = [message.hex() async for message in client.read_raw(run_id=run_id, after_seq=0)]
    Path(messages_file).write_text("\n".join(messages))
    await client.close()
    return {"run_id": run_id, "events": len(messages)}


async def replay(*, target: str, run_id: str, times: int) -> Result:
    """Read a finished run from its beginning, `times` times; each reader is new."""
    client = AgentClient(target)
    read = 0
    for _ in range(times):
        async for _ in client.read_raw(run_id=run_id, after_seq=0):
            read += 1
    await client.close()
    return {"messages": read}


async def stream(*, target: str, times: int) -> Result:
    """Read the floor "stream", `times` times."""
    read = 0
    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = channel.unary_stream("/floor.Stream/Stream")
        for _ in range(times):
            async for _ in call(b""):
                read += 1
    return {"messages": read}


class _SessionReader:
    """One subscription to a session: it counts the characters of `runs` runs, then ends."""

    def __init__(self, client: AgentClient, session_key: str, runs: int) -> None:
        self._client = client
        self._session_key = session_key
        self._runs = runs
        self.characters = 0

    async def read(self) -> None:
        ended = 0
        call = self._client.read_raw(session_key=self._session_key)
        try:
            async for encoded in call:
                event = event_pb2.Event.FromString(encoded)
                if event.HasField("assistant"):
                    self.characters += len(event.assistant.delta)
                elif event.HasField("lifecycle") and event.lifecycle.phase in _LAST_PHASES:
                    ended += 1
                    if ended == self._runs:
                        return
        finally:
            call.cancel()


async def watched_runs(*, target: str, model: str, session_key: str, count: int, readers: int) -> Result:
    """`count` runs of one session, one after the other, read by `readers` subscriptions to the session."""
    own = AgentClient(target)
    clients = [AgentClient(target) for _ in range(4)]
    watchers = [_SessionReader(clients[number % 4], session_key, count) for number in range(readers)]
    tasks = [asyncio.create_task(watcher.read(), name="reader") for watcher in watchers]
    run_ms = []
    for _ in range(count):
        began = time.perf_counter()
        run_id = await own.accept(model, session_key=session_key)
        await own.wait(run_id)
        run_ms.append((time.perf_counter() - began) * 1000)
    await asyncio.gather(*tasks)
    for client in (own, *clients):
        await client.close()
    return {"run_ms": run_ms, "characters": [watcher.characters for watcher in watchers]}


async def slow_reader(*, target: str, session_key: str, runs: int) -> Result:
    """One subscription to a session, to be stopped from outside; what it got when it has seen `runs` runs."""
    client = AgentClient(target)
    reader = _SessionReader(client, session_key, runs)
    with suppress(asyncio.CancelledError):
        await reader.read()
    await client.close()
    return {"characters": reader.characters}
