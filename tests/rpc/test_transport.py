"""What gRPC itself decides: addresses, sizes (B-078), pings (B-077)."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.rpc_rows import make_event
from tests.rpc.harness import Harness, refused

from laneway.v1 import agent_pb2, agent_pb2_grpc
from lanewayd.errors import StartupError
from lanewayd.events import AssistantDelta
from lanewayd.rpc.server import add_address, server_options

_PINGING_CLIENT = (
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)


async def test_a_port_that_is_taken_is_refused_with_advice(harness: Harness) -> None:
    first, second = harness.server(), harness.server()
    port = add_address(first, "127.0.0.1:0")
    await first.start()
    try:
        with pytest.raises(StartupError, match=r"another process listens there.*--listen"):
            add_address(second, f"127.0.0.1:{port}")
    finally:
        await first.stop(None)
        await second.stop(None)


@pytest.mark.parametrize(
    "address", ["nonsense", ":1", "127.0.0.1:port", "127.0.0.1:99999", "256.0.0.1:50551", "192.0.2.1:0"]
)
async def test_an_address_that_is_none_is_refused(harness: Harness, address: str) -> None:
    server = harness.server()
    with pytest.raises(StartupError, match="Cannot listen on"):
        add_address(server, address)
    await server.stop(None)


async def test_a_name_of_which_one_address_is_taken_is_refused(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{number}", port)) for number in (1, 2)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
        server = harness.server()
        with pytest.raises(StartupError, match="another process listens there"):
            add_address(server, f"localhost:{port}")
        await server.stop(None)


async def test_a_socket_file_that_somebody_listens_on_is_left_alone(
    harness: Harness, channel: grpc.aio.Channel, agent: Any, socket_folder: Path
) -> None:
    server = harness.server()
    with pytest.raises(StartupError, match="another server listens there"):
        add_address(server, f"unix:{socket_folder}/s")
    await server.stop(None)
    assert (await agent.GetRun(agent_pb2.GetRunRequest(run_id="run_1"))).run_id == "run_1"


async def test_a_socket_file_that_a_killed_server_left_is_replaced(harness: Harness, socket_folder: Path) -> None:
    path = socket_folder / "left"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = harness.server()
    assert add_address(server, f"unix:{path}") == 1
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        await asyncio.wait_for(channel.channel_ready(), 5)
    await server.stop(None)


async def test_a_socket_path_that_cannot_be_used_is_refused_and_nothing_is_removed(
    harness: Harness, socket_folder: Path
) -> None:
    server = harness.server()
    file = socket_folder / "file"
    file.write_text("mine")
    for path, problem in (
        (file, "no socket"),
        (socket_folder / "missing" / "s", "create it first"),
        (socket_folder / ("x" * 120), "longer than 107 bytes"),
    ):
        with pytest.raises(StartupError, match=problem):
            add_address(server, f"unix:{path}")
    assert file.read_text() == "mine"
    await server.stop(None)


async def test_b078_a_request_of_6_mib_is_refused_by_us_and_the_channel_stays_usable(
    harness: Harness, agent: Any
) -> None:
    refusal = await refused(agent.Agent(agent_pb2.AgentRequest(message="x" * 6 * 1024 * 1024)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_TOO_LONG")
    assert "1,048,576" in refusal.text
    assert (await agent.Agent(agent_pb2.AgentRequest(message="x"))).run_id == "run_1"


async def test_b078_a_request_above_the_transport_limit_is_refused_by_grpc_and_the_channel_stays_usable(
    harness: Harness, agent: Any
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await agent.Agent(agent_pb2.AgentRequest(message="x" * 33 * 1024 * 1024))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await agent.Agent(agent_pb2.AgentRequest(message="x"))).run_id == "run_1"


async def test_b078_large_events_pass_a_client_with_default_limits(harness: Harness, agent: Any) -> None:
    harness.logs.put(*[make_event(AssistantDelta("m", 0, 0, "ü" * 5_000_000), seq=seq) for seq in (1, 2)], None)
    call = agent.Subscribe(agent_pb2.SubscribeRequest(run_id="run_1", after_seq=0))
    assert [event.seq async for event in call] == [1, 2]


async def _silent_subscription(
    harness: Harness, address: str, *, min_ping_interval_ms: int, ping_every_ms: int, silence_s: float
) -> tuple[Any, bool]:
    """A subscription of a pinging client after a silence, and whether the connection was ended meanwhile."""
    server = harness.server(server_options(min_ping_interval_ms=min_ping_interval_ms))
    add_address(server, address)
    await server.start()
    options = (*_PINGING_CLIENT, ("grpc.keepalive_time_ms", ping_every_ms))
    try:
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            call = agent_pb2_grpc.AgentServiceStub(channel).Subscribe(agent_pb2.SubscribeRequest(all=True))
            await harness.logs.opened.wait()
            reading = asyncio.ensure_future(call.read())
            done, _ = await asyncio.wait({reading}, timeout=silence_s)
            if not done:
                harness.logs.put(make_event(AssistantDelta("m", 0, 0, "Hi"), seq=1))
            return await asyncio.gather(reading, return_exceptions=True), bool(done)
    finally:
        await server.stop(None)


async def test_b077_pings_at_the_permitted_rate_on_a_quiet_stream_are_no_abuse(
    harness: Harness, socket_folder: Path
) -> None:
    [event], was_ended = await _silent_subscription(
        harness, f"unix:{socket_folder}/p", min_ping_interval_ms=180, ping_every_ms=200, silence_s=1.5
    )
    assert not was_ended
    assert event.seq == 1


async def test_b077_a_client_that_pings_far_too_often_is_rejected(harness: Harness, socket_folder: Path) -> None:
    [error], was_ended = await _silent_subscription(
        harness, f"unix:{socket_folder}/p", min_ping_interval_ms=9000, ping_every_ms=100, silence_s=10.0
    )
    assert was_ended
    assert isinstance(error, grpc.aio.AioRpcError)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "too many pings" in (error.details() or "").lower()


def test_the_options_are_those_that_were_measured() -> None:
    options = dict(server_options())
    assert options["grpc.so_reuseport"] == 0
    assert options["grpc.http2.min_ping_interval_without_data_ms"] == 9000
    assert options["grpc.max_receive_message_length"] == 32 * 1024 * 1024
    assert (options["grpc.keepalive_time_ms"], options["grpc.http2.ping_timeout_ms"]) == (30_000, 10_000)
