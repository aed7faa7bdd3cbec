"""Cases of group h: clients that leave or freeze, leaving the service, pings. Sizes: test_h_sizes_and_text.py."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.cases.answers import held
from tests.cases.ping_counter import PingCounter
from tests.cases.refusals import refusal, stream_refusal
from tests.cases.stage import Stage
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import DONE, Answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import REPOSITORY, ServerProcess
from tests.fakes.service import RunningService, running_service, toml_for

from laneway.v1 import admin_pb2, agent_pb2, agent_pb2_grpc, event_pb2, run_pb2
from lanewayd.app import Seams
from lanewayd.rpc import server as rpc_server

Health = health_pb2.HealthCheckResponse


def health_of(service: RunningService) -> Any:
    """The stub, of which the annotations of grpcio-health-checking know nothing."""
    return service.health


async def subscribers_become(service: RunningService, count: int, within_s: float = 1.0) -> None:
    """Return when the status counts so many subscribers; it must within the time. Each look is a call."""
    async with asyncio.timeout(within_s):
        while (await service.admin.GetStatus(admin_pb2.GetStatusRequest())).subscribers != count:
            pass


@pytest.mark.parametrize("way", ["cancel", "deadline", "close the channel"])
async def test_b_074_a_reader_that_leaves_is_gone_and_the_run_goes_on(stage: Stage, way: str) -> None:
    service = stage.service
    release = asyncio.Event()
    stage.model.answer(held(release))
    run_id = (await service.accept("go", session_key="s")).run_id
    await stage.model.received(1)
    async with grpc.aio.insecure_channel(service.target) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        limit_s = 0.2 if way == "deadline" else None
        readers = [
            stub.Subscribe(agent_pb2.SubscribeRequest(session_key="idle"), timeout=limit_s),
            stub.Subscribe(agent_pb2.SubscribeRequest(run_id=run_id, after_seq=2), timeout=limit_s),
        ]
        waiter = stub.Wait(agent_pb2.WaitRequest(run_id=run_id))
        pending = [asyncio.ensure_future(stream_end(reader)) for reader in readers]
        if way != "deadline":
            await subscribers_become(service, 2)
        if way == "cancel":
            for call in (*readers, waiter):
                call.cancel()
        elif way == "close the channel":
            await channel.close()
        await asyncio.gather(*pending)
        await subscribers_become(service, 0)
        waiter.cancel()
    release.set()
    assert (await service.wait(run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def stream_end(call: AsyncIterator[Any]) -> None:
    """Read a stream until it ends, however it does."""
    with suppress(grpc.aio.AioRpcError, asyncio.CancelledError, grpc.aio.UsageError):
        async for _ in call:
            pass


@pytest.mark.parametrize("way", ["killed", "frozen"])
async def test_b_074_a_reader_whose_process_is_gone_or_frozen_is_dropped(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The frozen one after keepalive time and timeout, here 1 s and 0.5 s (at full length 30 s and 10 s), with 10 MiB
    that it does not take. Over TCP: on a unix socket gRPC does not drop a peer while a write to it is stuck; that costs
    one call and no memory."""
    monkeypatch.setattr(rpc_server, "_KEEPALIVE_TIME_MS", 1000)
    monkeypatch.setattr(rpc_server, "_PING_TIMEOUT_MS", 500)
    async with running_service(tmp_path / "home", model=model, listen="127.0.0.1:0") as service:
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.cases.client_process", service.target, "s"),
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
        )
        try:
            assert client.stdout is not None
            assert await client.stdout.readline() == b"subscribed\n"
            await subscribers_become(service, 1)
            if way == "killed":
                client.kill()
                await subscribers_become(service, 0)
            else:
                client.send_signal(signal.SIGSTOP)
                pieces = [delta(content="x" * 65_536) for _ in range(160)]
                model.answer(Answer([*pieces, delta("stop"), DONE]))
                assert (await service.finish("go", session_key="s")).state == run_pb2.RUN_STATE_SUCCEEDED
                await subscribers_become(service, 0, within_s=5)
        finally:
            with suppress(ProcessLookupError):
                client.kill()
            await client.wait()


async def test_b_075_a_call_that_is_being_refused_while_the_server_stops_gets_its_answer(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path / "home", model=model) as service:
        store = service.service.parts.store
        asked, release = asyncio.Event(), asyncio.Event()
        read_run = store.run

        async def read_later(tenant: str, run_id: str) -> Any:
            asked.set()
            await release.wait()
            return await read_run(tenant, run_id)

        monkeypatch.setattr(store, "run", read_later)
        waiting = asyncio.ensure_future(refusal(service.wait("no-such-run", 10)))
        await asked.wait()
        watch = health_of(service).Watch(health_pb2.HealthCheckRequest(service=""))
        assert (await watch.read()).status == Health.SERVING
        service.service.request_drain()
        # The watch ends when the server is about to stop.
        assert (await watch.read()).status == Health.NOT_SERVING
        assert await watch.read() is grpc.aio.EOF
        assert not service.finished.done()
        release.set()
        refused = await waiting
        assert (refused.status, refused.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
        async with asyncio.timeout(1):
            assert await service.finished == 0


@pytest.fixture
async def server(tmp_path: Path, model: ModelServer) -> AsyncGenerator[ServerProcess, None]:
    """A real server process, not started."""
    process = ServerProcess(tmp_path, toml=toml_for(model))
    yield process
    await process.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_b_075_a_signal_amid_refusals_leaves_a_clean_log(server: ServerProcess, number: signal.Signals) -> None:
    await server.start()
    waits = [asyncio.ensure_future(server.wait("no-such-run", 10)) for _ in range(50)]
    await refusal(server.wait("no-such-run", 0))
    server.signal(number)
    answers = await asyncio.gather(*waits, return_exceptions=True)
    assert await server.exited() == 0
    # What gRPC had not handed over yet it ends by itself; the test above holds those that were handed over.
    codes = {error.code() for error in answers if isinstance(error, grpc.aio.AioRpcError)}
    assert codes <= {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert len(answers) == 50
    assert "Traceback" not in server.log
    assert "Event loop is closed" not in server.log
    assert all(json.loads(line)["level"] in ("INFO", "info") for line in server.log.splitlines())


@pytest.mark.parametrize("has_second_signal", [False, True])
async def test_b_076_open_streams_do_not_hold_the_server_and_its_work_has_its_time(
    server: ServerProcess, model: ModelServer, has_second_signal: bool
) -> None:
    """2 s instead of 5, or a minute that a second signal makes short. The run that ends does so when the drain is seen;
    the endless one is not recorded as aborted, but goes on in the next server (D-18)."""
    limit_s = 60 if has_second_signal else 2
    server.toml += f"\n[drain]\ntimeout_s = {limit_s}\npark_s = 0\n"
    await server.start()
    release = asyncio.Event()
    model.answer(held(release, "in time"), model="short")
    model.answer(Answer([delta(content="half"), asyncio.Event()]), model="endless")
    short = await server.accept("short", model="mock/short")
    endless = await server.accept("endless", session_key="s", model="mock/endless")
    await model.received(2)
    idle = [
        asyncio.ensure_future(stream_refusal(server.agent.Subscribe(agent_pb2.SubscribeRequest(session_key=key))))
        for key in ("x", "y", "z")
    ]
    waits = [asyncio.ensure_future(server.wait(run.run_id, 60)) for run in (short, endless)]
    await server.agent.ListRuns(agent_pb2.ListRunsRequest())  # on the same connection: all have arrived
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    server.terminate()
    await server.reaches(Health.NOT_SERVING)
    refused = await refusal(server.accept("too late"))
    assert (refused.status, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert "RetryInfo" in refused.details
    release.set()
    ended = await waits[0]
    assert (ended.status, ended.payloads[0].text) == (agent_pb2.WAIT_STATUS_OK, "in time")
    if has_second_signal:
        server.terminate()
    left = await waits[1]
    assert (left.timeout_kind, left.state) == (agent_pb2.TIMEOUT_KIND_DRAINING, run_pb2.RUN_STATE_RUNNING)
    for stream in idle:
        told = await stream
        assert (told.status, told.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert await server.exited() == 0
    took_s = loop.time() - began_s
    assert took_s < (10 if has_second_signal else limit_s + 2)

    model.answer(text_answer("whole"), model="endless")
    await server.start()
    gone_on = await server.wait(endless.run_id)
    assert (gone_on.state, gone_on.payloads[0].text) == (run_pb2.RUN_STATE_SUCCEEDED, "whole")


def pinging(interval_ms: int) -> list[tuple[str, int]]:
    """Options of a client that pings a quiet connection."""
    return [
        ("grpc.keepalive_time_ms", interval_ms),
        ("grpc.keepalive_timeout_ms", interval_ms // 2),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_time_between_pings_ms", interval_ms),
    ]


@asynccontextmanager
async def quiet_subscription(service: RunningService, ping_ms: int) -> AsyncGenerator[tuple[PingCounter, Any], None]:
    """A subscription to session `s` of a client that pings, and what counts the pings."""
    async with (
        PingCounter(service.target.removeprefix("unix:")) as relay,
        grpc.aio.insecure_channel(relay.target, options=pinging(ping_ms)) as channel,
    ):
        stream = agent_pb2_grpc.AgentServiceStub(channel).Subscribe(agent_pb2.SubscribeRequest(session_key="s"))
        try:
            yield relay, stream
        finally:
            stream.cancel()


async def test_b_077_pings_on_a_quiet_stream_are_welcome(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ping each second where the server allows one each 0.7 s; at full length 10 s and 9 s. gRPC ends a connection at
    the fifth ping that comes too early, so the test waits for six; the case's 90 s are nine."""
    options = partial(rpc_server.server_options, min_ping_interval_ms=700)
    monkeypatch.setattr("lanewayd.wiring.rpc_server.server_options", options)
    async with (
        running_service(tmp_path / "home", model=model) as service,
        quiet_subscription(service, 1000) as (relay, stream),
    ):
        first = asyncio.ensure_future(stream.read())
        pinged = asyncio.ensure_future(relay.pinged(6))
        await asyncio.wait({first, pinged}, return_when=asyncio.FIRST_COMPLETED)
        assert not first.done()
        await service.accept("go", session_key="s")
        assert (await first).lifecycle.phase == event_pb2.LIFECYCLE_PHASE_START
        assert relay.goaways == []


async def test_b_077_a_client_that_pings_all_the_time_is_rejected(service: RunningService) -> None:
    """As often as gRPC lets a client, with the service's own options: one ping in 9 s is allowed."""
    async with quiet_subscription(service, 100) as (relay, stream):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert relay.goaways == [b"too_many_pings"]
        assert relay.pings < 10


async def test_b_081_readiness_falls_at_once_and_calls_succeed_until_the_announcement_is_over(
    tmp_path: Path, model: ModelServer
) -> None:
    """The listener stays open to the end (D-18), so that who comes late is told DRAINING instead of being cut off."""
    clock = FakeClock()
    toml = "\n[drain]\nannounce_s = 3\ntimeout_s = 13\npark_s = 0\n"
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        release = asyncio.Event()
        model.answer(held(release))
        running = await service.accept("running")
        await model.received(1)
        names = ("", "laneway.v1.AgentService", "laneway.liveness")
        seen: dict[str, list[int]] = {name: [] for name in names}
        told = asyncio.Event()

        async def watch(name: str) -> None:
            async for answer in health_of(service).Watch(health_pb2.HealthCheckRequest(service=name)):
                seen[name].append(answer.status)
                told.set()

        watches = [asyncio.ensure_future(watch(name)) for name in names]
        while not all(seen.values()):
            told.clear()
            await told.wait()
        service.service.request_drain()
        while len(seen[""]) < 2 or len(seen[names[1]]) < 2:
            told.clear()
            await told.wait()
        # Still at the time of the signal.
        expected = {"": Health.NOT_SERVING, names[1]: Health.NOT_SERVING, "laneway.liveness": Health.SERVING}
        assert await checked(service, names) == expected
        await clock.wait_for_timers(1)
        accepted = await on_new_connection(service, "in time")
        await clock.advance(2.9)
        await on_new_connection(service, "just in time")
        await clock.advance(0.1)
        refused = await refusal(on_new_connection(service, "too late"))
        assert (refused.status, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert await checked(service, names) == expected
        unknown = health_pb2.HealthCheckRequest(service="laneway.v1.NoSuchService")
        assert (await refusal(health_of(service).Check(unknown))).status is grpc.StatusCode.NOT_FOUND
        unknown_watch = health_of(service).Watch(unknown)
        assert (await unknown_watch.read()).status == Health.SERVICE_UNKNOWN
        unknown_watch.cancel()
        release.set()
        assert (await service.wait(running.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED
        assert await service.finished == 0
        await asyncio.gather(*watches, return_exceptions=True)
        # Never back, and alive to the end.
        assert seen == {
            "": [Health.SERVING, Health.NOT_SERVING],
            names[1]: [Health.SERVING, Health.NOT_SERVING],
            "laneway.liveness": [Health.SERVING],
        }
    # What was accepted in the window is not lost: the next server runs it.
    async with running_service(tmp_path / "home", model=model) as service:
        assert (await service.wait(accepted.run_id)).state == run_pb2.RUN_STATE_SUCCEEDED


async def test_b_081_a_watcher_hears_not_serving_however_fast_the_server_leaves(service: RunningService) -> None:
    """Both changes in one step of the loop, as when nothing runs that a drain would wait for."""
    watch = health_of(service).Watch(health_pb2.HealthCheckRequest(service=""))
    assert (await watch.read()).status == Health.SERVING
    health = service.service._health  # noqa: SLF001 - to hold both in one step
    health.set_ready(False)
    health.close()
    assert (await watch.read()).status == Health.NOT_SERVING
    assert await watch.read() is grpc.aio.EOF


async def checked(service: RunningService, names: tuple[str, ...]) -> dict[str, int]:
    """What Check says of each name."""
    return {
        name: (await health_of(service).Check(health_pb2.HealthCheckRequest(service=name))).status for name in names
    }


async def on_new_connection(service: RunningService, message: str) -> run_pb2.AgentResponse:
    """`Agent` on a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(service.target, options=options) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        return await stub.Agent(agent_pb2.AgentRequest(message=message, model="mock/any"))
