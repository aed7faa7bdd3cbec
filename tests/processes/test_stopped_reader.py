"""A client that stands still costs the server its own position and nothing else (D-3)."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.model_answers import Answer, delta
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import REPOSITORY
from tests.processes.conftest import MakeServer
from tests.processes.scale import scaled

from laneway.v1 import run_pb2

pytestmark = pytest.mark.timeout(600)

CHUNK = "x" * 32 * 1024
CHUNKS_OF_A_RUN = 32
ALLOWED_MIB = 8
"""What the server may grow by while the reader stands: caches of the store, its own buffers - not the log."""


def _rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) / 1024


async def test_a_stopped_reader_costs_no_memory_and_misses_nothing(make_server: MakeServer, model: ModelServer) -> None:
    server = make_server(toml="[events]\ndelta_interval_ms = 0\n", is_plain=True)
    await server.start()
    runs = scaled(40, 200)
    model.answer(*[Answer([delta(content=CHUNK)] * CHUNKS_OF_A_RUN + [delta("stop")])] * (runs + 20))

    async def run_once() -> str:
        accepted = await server.accept("go")
        assert (await server.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        return accepted.run_id

    for _ in range(15):
        await run_once()  # caches and buffers that grow once have grown (11 to 16 MiB; then under 3)
    cursor = (await server.events(await run_once()))[-1].cursor
    reader = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.processes.reader",
        server.target,
        cursor,
        str(runs + 1),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    assert reader.stdout is not None
    try:
        await run_once()
        assert await reader.stdout.readline() == b"reading\n"
        reader.send_signal(signal.SIGSTOP)
        before_mib = _rss_mib(server.pid)
        for _ in range(runs):
            await run_once()
        grown_mib = _rss_mib(server.pid) - before_mib
        reader.send_signal(signal.SIGCONT)
        came = json.loads(await reader.stdout.readline())
    finally:
        reader.kill()
        await reader.wait()
    assert grown_mib < ALLOWED_MIB
    assert came["disorder"] == []
    assert came["reason"] == "all ended"
    assert came["bytes"] > runs * len(CHUNK) * CHUNKS_OF_A_RUN
