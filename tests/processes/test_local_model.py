"""The process of the embedded model and the end of its server, however that ends."""

import os
import signal
from pathlib import Path

import pytest
from tests.fakes.local_engine import death_of, engine_of
from tests.fakes.server_process import ServerProcess
from tests.processes.conftest import MakeServer

from laneway.v1 import run_pb2

pytestmark = pytest.mark.timeout(180)

QUESTION = "What is the capital of France?"


async def start_and_ask(server: ServerProcess) -> int:
    """Start it and have the model answer; the number of the model's process."""
    await server.start()
    answer = await server.wait((await server.accept(QUESTION, model="")).run_id)
    assert answer.state == run_pb2.RUN_STATE_SUCCEEDED, answer.error.message
    return engine_of(server.pid)


async def test_one_that_cannot_notice_is_ended_by_the_next_start(make_server: MakeServer) -> None:
    server = make_server(is_plain=True)
    pid = await start_and_ask(server)
    pidfd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGSTOP)
    await server.kill()
    assert Path(f"/proc/{pid}").exists()
    await server.start()
    await death_of(pidfd)


async def test_it_gets_nothing_secret_and_dies_with_a_server_that_is_killed(make_server: MakeServer) -> None:
    server = make_server(is_plain=True)
    server.variables = {"ACME_KEY": "hidden-in-the-server", "PYTHONSTARTUP": "/nowhere", "LC_ALL": "C.UTF-8"}
    pid = await start_and_ask(server)
    entries = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    variables = dict(entry.split("=", 1) for entry in entries)
    assert set(variables) <= {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "LC_ALL", "PYTHONPATH", "LANEWAY_OWNER"}
    assert "/" in variables["LANEWAY_OWNER"]
    # The key of its endpoint is not where other users could read it.
    assert len(Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")) == 4
    pidfd = os.pidfd_open(pid)
    await server.kill()
    await death_of(pidfd)
