"""Single harms to a connection, and what the client makes of each; the proxy's own behaviour with it."""

import asyncio
from contextlib import aclosing

import pytest
from tests.client.conftest import QUICK
from tests.client.scripted_service import RUN_ID, ScriptedService, Silence, accepted, end, piece, serving
from tests.fakes.cutting_proxy import CuttingProxy, Harm

from laneway.calls import Loss
from laneway.client import LanewayClient
from laneway.v1 import agent_pb2, event_pb2

# Pings as often as a test needs them; a real server allows them every 9 s.
LENIENT = (("grpc.http2.min_ping_interval_without_data_ms", 10), ("grpc.http2.max_ping_strikes", 0))
PINGS = (
    ("grpc.keepalive_time_ms", 200),
    ("grpc.http2.ping_timeout_ms", 200),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.use_local_subchannel_pool", 1),
)
LOG = agent_pb2.SubscribeRequest(run_id=RUN_ID, after_seq=0)


@pytest.mark.parametrize("kind", [Harm.RESET, Harm.TRUNCATE])
async def test_a_broken_connection_is_taken_up_again(script: ScriptedService, kind: Harm) -> None:
    script.script["Subscribe"] = [[piece(1), Silence()], [piece(2), end(3)]]
    losses: list[Loss] = []

    async def on_loss(loss: Loss) -> None:
        losses.append(loss)

    async with (
        serving(script) as address,
        CuttingProxy(address, seed=1, kinds=(kind,), most_bytes=0) as proxy,
        LanewayClient(proxy.target, timeouts=QUICK, on_loss=on_loss, channel_options=PINGS) as client,
    ):
        events = client.subscribe(LOG)
        seen = [await anext(events)]
        proxy.harm(1)
        seen += [event async for event in events]
    assert seen == [piece(1), piece(2), end(3)]
    assert proxy.done[kind] == 1
    assert losses


async def test_a_delay_harms_nothing(script: ScriptedService) -> None:
    script.script["Agent"] = [[accepted()], [accepted()]]
    async with (
        serving(script) as address,
        CuttingProxy(address, seed=1, kinds=(Harm.DELAY,), most_bytes=0, delay_s=0.05) as proxy,
        LanewayClient(proxy.target) as client,
    ):
        await client.agent("hello")
        proxy.harm(1)
        await client.agent("hello")
        await proxy.harmed()
        assert proxy.open_links == 1
    assert proxy.done == {Harm.DELAY: 1, Harm.RESET: 0, Harm.TRUNCATE: 0, Harm.STALL: 0}


async def test_a_connection_that_stalls_is_given_up_by_keepalive_though_the_stream_may_be_silent(
    script: ScriptedService,
) -> None:
    script.script["Subscribe"] = [[piece(1), Silence()], [piece(2), end(3)]]
    request = agent_pb2.SubscribeRequest(
        run_id=RUN_ID, after_seq=0, streams=[event_pb2.STREAM_KIND_ASSISTANT, event_pb2.STREAM_KIND_TOOL]
    )
    async with (
        serving(script, options=LENIENT) as address,
        CuttingProxy(address, seed=1, kinds=(Harm.STALL,), most_bytes=0) as proxy,
        LanewayClient(proxy.target, timeouts=QUICK, channel_options=PINGS) as client,
    ):
        events = client.subscribe(request)
        seen = [await anext(events)]
        proxy.harm(1)
        async with asyncio.timeout(10):
            seen += [event async for event in events]
    assert seen == [piece(1), piece(2), end(3)]
    assert [asked.after_seq for asked in script.requests["Subscribe"]] == [0, 1]


async def test_a_call_on_a_stalled_connection_is_repeated_until_it_goes_through(script: ScriptedService) -> None:
    script.script["Agent"] = [[accepted()]] * 20
    async with (
        serving(script, options=LENIENT) as address,
        CuttingProxy(address, seed=1, kinds=(Harm.STALL,), most_bytes=0) as proxy,
        LanewayClient(proxy.target, timeouts=QUICK, channel_options=PINGS) as client,
    ):
        await client.agent("one")
        proxy.harm(1)
        async with asyncio.timeout(10):
            assert await client.agent("two", deadline_s=8) == accepted()
    keys = {request.idempotency_key for request in script.requests["Agent"] if request.message == "two"}
    assert len(keys) == 1


async def test_calm_ends_connections_that_stall(script: ScriptedService) -> None:
    script.script["Subscribe"], script.script["Agent"] = [[piece(1), Silence()], [end(2)]], [[accepted()]] * 2
    async with (
        serving(script) as address,
        CuttingProxy(address, seed=1, kinds=(Harm.STALL,), most_bytes=0) as proxy,
        LanewayClient(proxy.target) as client,
        aclosing(client.subscribe(LOG)) as events,
    ):
        assert await anext(events) == piece(1)
        proxy.harm(1)
        accepting = asyncio.create_task(client.agent("hello"))
        await proxy.harmed()
        proxy.calm()
        assert await anext(events) == end(2)
        assert await accepting == accepted()
