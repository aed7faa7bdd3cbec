"""The store can fail (D-19): a full disk stops the service, not a run; what cannot be opened is refused with advice."""

import asyncio
import resource
import shutil
import socket
import sqlite3
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.fakes.model_answers import Answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerExited, ServerProcess
from tests.fakes.service import refusal_of
from tests.processes.conftest import MakeServer

from laneway.v1 import agent_pb2, run_pb2

pytestmark = pytest.mark.timeout(180)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
REFUSED = 2
STALLED = 5


def _limit_files(server: ServerProcess, size_bytes: int) -> None:
    """No file of the server may grow beyond this: what a full disk does, and undoes, at any time."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def _size_of_log(server: ServerProcess) -> int:
    return (server.home / "laneway.db-wal").stat().st_size


async def _is_refused(server: ServerProcess) -> str:
    """What a start that must fail says, on one line without traceback."""
    with pytest.raises(ServerExited) as caught:
        await server.start()
    assert caught.value.exit_code == REFUSED
    last = caught.value.log.splitlines()[-1]
    assert last.startswith("laneway: ")
    assert "Traceback" not in caught.value.log
    return last


async def test_a_full_disk_stops_the_service_until_there_is_room(make_server: MakeServer, model: ModelServer) -> None:
    """A run at work halts, shows nothing that is not stored, and goes on; refused messages leave no trace."""
    server = make_server(is_plain=True, toml="[events]\ndelta_interval_ms = 0\n")
    await server.start()
    go_on, said = asyncio.Event(), [f"piece {number} " for number in range(50)]
    model.answer(Answer([delta(content="first "), go_on, *(delta(content=piece) for piece in said), delta("stop")]))
    at_work = await server.accept("long", session_key="s")
    await server.event(at_work.run_id, lambda event: event.assistant.delta == "first ")

    _limit_files(server, _size_of_log(server))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await server.accept("no room", idempotency_key="k", session_key="t")
    refusal = refusal_of(caught.value)
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    assert "RetryInfo" in str(refusal.details)
    await server.reaches(NOT_SERVING)
    await server.reaches(SERVING, "laneway.liveness")
    go_on.set()
    # Reading goes on, and shows nothing new.
    run = await server.agent.GetRun(agent_pb2.GetRunRequest(run_id=at_work.run_id))
    assert run.state == run_pb2.RUN_STATE_RUNNING
    assert not (await server.agent.ListRuns(agent_pb2.ListRunsRequest(session_key="t"))).runs

    _limit_files(server, resource.RLIM_INFINITY)
    await server.reaches(SERVING)
    waited = await server.wait(at_work.run_id)
    assert [payload.text for payload in waited.payloads] == ["first " + "".join(said)]
    log = await server.events(at_work.run_id)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    answer = await server.accept("no room", idempotency_key="k", session_key="t")
    assert not answer.duplicate
    assert (await server.wait(answer.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_a_full_database_is_no_end_of_the_runs_in_it(make_server: MakeServer, model: ModelServer) -> None:
    """SQLITE_FULL, which ends the transaction of a whole group; a restart with more room goes on."""
    server = make_server(max_pages=120)
    await server.start()
    model.answer(text_answer("x" * 300_000), text_answer("enough room"))
    accepted = await server.accept("fill it", session_key="s")
    await server.reaches(NOT_SERVING)
    assert server.extras is not None
    server.extras = replace(server.extras, max_pages=0)
    await server.restart()
    waited = await server.wait(accepted.run_id)
    assert [payload.text for payload in waited.payloads] == ["enough room"]


async def test_a_store_that_stays_down_ends_the_process(make_server: MakeServer) -> None:
    server = make_server(is_plain=True, toml="[store]\nstall_limit_s = 1\n")
    await server.start()
    _limit_files(server, _size_of_log(server))
    with pytest.raises(grpc.aio.AioRpcError):
        await server.accept("no room")
    assert await server.exited() == STALLED
    assert "store stalled" in server.log
    await server.start()
    assert (await server.wait((await server.accept("room again")).run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_a_second_server_on_the_same_home_is_refused_and_told_who_has_it(make_server: MakeServer) -> None:
    first, second = make_server(is_plain=True), make_server(is_plain=True)
    await first.start()
    second.home = first.home
    said = await _is_refused(second)
    assert f"pid {first.pid}" in said
    assert first.target in said
    assert (await first.wait((await first.accept("still here")).run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
    # A killed holder holds nothing.
    await first.kill()
    await second.start()


async def test_a_second_server_on_the_same_port_is_refused(make_server: MakeServer) -> None:
    """gRPC would share the port silently (SO_REUSEPORT)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    first, second = make_server(is_plain=True, listen=address), make_server(is_plain=True, listen=address)
    await first.start()
    await second.launch()
    assert await second.exited() == REFUSED
    assert address in second.log.splitlines()[-1]
    await first.accept("still here")


async def test_a_read_only_home_is_refused(make_server: MakeServer, tmp_path: Path) -> None:
    server = make_server(is_plain=True)
    await server.start()
    await server.kill()
    server.home.chmod(0o500)
    try:
        said = await _is_refused(server)
    finally:
        server.home.chmod(0o700)
    assert str(server.home) in said
    assert "LANEWAY_HOME" in said


async def _with_a_run(server: ServerProcess) -> str:
    """A home with one ended run, and no server."""
    await server.start()
    run_id = (await server.accept("before", session_key="s")).run_id
    await server.wait(run_id)
    server.terminate()
    assert await server.exited() == 0
    return run_id


def _content_of_store(server: ServerProcess) -> bytes:
    """The database and its log, which is empty here; SQLite makes an empty one and an index even to read."""
    log = server.home / "laneway.db-wal"
    return (server.home / "laneway.db").read_bytes() + (log.read_bytes() if log.exists() else b"")


@pytest.mark.parametrize("place", ["header", "middle"])
async def test_a_corrupt_database_is_refused_with_advice_and_left_as_it_is(
    make_server: MakeServer, tmp_path: Path, place: str
) -> None:
    server = make_server(is_plain=True)
    run_id = await _with_a_run(server)
    database = server.home / "laneway.db"
    good = tmp_path / "good.db"
    shutil.copy(database, good)
    spoilt = bytearray(database.read_bytes())
    start = 0 if place == "header" else len(spoilt) // 2
    spoilt[start : start + 8192] = b"\xa5" * min(8192, len(spoilt) - start)
    database.write_bytes(spoilt)
    before = _content_of_store(server)
    said = await _is_refused(server)
    assert str(database) in said
    assert "backup" in said
    assert _content_of_store(server) == before
    # The advice works: put a good copy back.
    shutil.copy(good, database)
    await server.start()
    assert (await server.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(make_server: MakeServer) -> None:
    server = make_server(is_plain=True)
    await _with_a_run(server)
    connection = sqlite3.connect(server.home / "laneway.db")
    names = [row[1] for row in connection.execute("PRAGMA table_info(migrations)")]
    newest = connection.execute("SELECT * FROM migrations ORDER BY 1 DESC").fetchone()
    row = [newest[0] + 1000 if isinstance(newest[0], int) else "9999_later", *newest[1:]]
    connection.execute(f"INSERT INTO migrations VALUES ({', '.join('?' * len(names))})", row)  # noqa: S608
    connection.commit()
    connection.close()
    before = _content_of_store(server)
    said = await _is_refused(server)
    assert "newer" in said
    assert _content_of_store(server) == before
