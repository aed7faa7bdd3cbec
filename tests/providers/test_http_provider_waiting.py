"""How long the HTTP provider waits, and for what, with both transports."""

import asyncio
from contextlib import aclosing

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import DONE, Answer, delta
from tests.fakes.model_server import ModelServer
from tests.providers.calling import (
    REQUEST,
    CountingClock,
    MakeProvider,
    collect,
    events_of,
    failure_of,
    text_of,
)

from lanewayd.messages import ToolSpec, UserMessage
from lanewayd.providers.interface import Done, Failed, ModelRequest, TextDelta


async def test_a_stalled_stream_ends_at_the_idle_limit_and_comments_do_not_keep_it_alive(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    comments = [asyncio.Event() for _ in range(3)]
    steps: list[bytes | asyncio.Event | float] = [delta(content="Half")]
    for comment in comments:
        steps += [comment, b": keepalive\n\n"]
    server.answer(Answer([*steps, asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    async with aclosing(provider.stream(REQUEST)) as events:
        assert isinstance(await anext(events), TextDelta)
        rest = asyncio.ensure_future(collect(events))
        for comment in comments:
            await clock.wait_for_timers(1)
            await clock.advance(0.5)
            comment.set()
        await clock.wait_for_timers(1)
        while not rest.done():
            await clock.advance(0.1)
        failed = (await rest)[-1]
    assert isinstance(failed, Failed)
    assert failed.error.reason == "PROVIDER_STALLED"
    assert failed.partial.text == "Half"
    assert clock.monotonic() <= 2.5
    await server.connections_at_most(0)


async def test_a_slow_but_live_stream_is_never_cut(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = CountingClock()
    gates = [asyncio.Event() for _ in range(6)]
    steps: list[bytes | asyncio.Event | float] = []
    for number, gate in enumerate(gates):
        # Reasoning that is not shown and empty content are progress too.
        steps += [gate, delta(content=f"{number} ") if number % 2 else delta(content="")]
    server.answer(Answer([*steps, delta("stop"), DONE]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    collecting = asyncio.ensure_future(events_of(provider))
    # The first timer is for the headers, the second for the first bytes, the others for those behind each gate.
    await clock.armed(2)
    for number, gate in enumerate(gates):
        await clock.advance(1.5)
        gate.set()
        await clock.armed(3 + number)
    events = await collecting
    assert isinstance(events[-1], Done)
    assert text_of(events) == "1 3 5 "


async def test_the_time_the_consumer_takes_is_not_idle_time(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = FakeClock()
    gate = asyncio.Event()
    server.answer(Answer([delta(content="a"), gate, delta(content="b"), delta("stop"), DONE]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=2)
    async with aclosing(provider.stream(REQUEST)) as events:
        await anext(events)
        await clock.advance(3600)
        gate.set()
        rest = await collect(events)
    assert isinstance(rest[-1], Done)
    assert rest[-1].message.text == "ab"


async def test_no_first_event_in_time_names_large_requests_as_a_cause(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    server.answer(Answer(before=asyncio.Event()), Answer([asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=60, first_event_timeout_s=5)
    request = ModelRequest("m1", "", (UserMessage("x"),), (ToolSpec("big", "d" * 200_000),))
    for count in (1, 2):
        failing = asyncio.ensure_future(failure_of(provider, request))
        await server.received(count)
        await clock.wait_for_timers(1)
        await clock.advance(5)
        failed = await failing
        assert failed.error.reason == "PROVIDER_STALLED"
        assert "oversized tool schemas" in failed.error.message
    await server.connections_at_most(0)


async def test_a_finite_run_budget_caps_the_idle_limit(server: ModelServer, make_provider: MakeProvider) -> None:
    clock = FakeClock()
    server.answer(Answer(before=asyncio.Event()))
    provider = make_provider(server.base_url, clock=clock, timeout_s=600)
    request = ModelRequest("m1", "", (UserMessage("x"),), idle_timeout_cap_s=3)
    failing = asyncio.ensure_future(failure_of(provider, request))
    await server.received(1)
    await clock.advance(3)
    assert (await failing).error.reason == "PROVIDER_STALLED"


async def test_the_end_mark_ends_the_answer_although_the_socket_stays_open(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    held = asyncio.Event()
    server.answer(Answer([delta(content="fine"), delta("stop"), DONE, held]))
    provider = make_provider(server.base_url)
    async with asyncio.timeout(1):
        events = await events_of(provider)
    assert isinstance(events[-1], Done)
    await server.connections_at_most(0)
    assert text_of(await events_of(provider)) == "ok"


async def test_a_finished_answer_without_end_mark_counts_when_the_stream_stands_still(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    clock = FakeClock()
    server.answer(Answer([delta(content="fine"), delta("stop"), asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=120)
    collecting = asyncio.ensure_future(events_of(provider))
    await server.received(1)
    while not collecting.done():
        await clock.advance(1)
    events = await collecting
    assert isinstance(events[-1], Done)
    assert text_of(events) == "fine"


async def test_a_finished_answer_without_end_mark_counts_before_the_run_is_out_of_time(
    server: ModelServer, make_provider: MakeProvider
) -> None:
    """It waits for half of what the run has left (R-5.125): the answer would be lost at its deadline."""
    clock = CountingClock()
    server.answer(Answer([delta(content="fine") + delta("stop"), asyncio.Event()]))
    provider = make_provider(server.base_url, clock=clock, timeout_s=120)
    request = ModelRequest("m1", "", (UserMessage("x"),), idle_timeout_cap_s=6)
    async with aclosing(provider.stream(request)) as events:
        assert await anext(events) == TextDelta(0, "fine")
        ending = asyncio.ensure_future(collect(events))
        # For the headers, the first bytes, and what may come behind the finish reason.
        await clock.armed(3)
        await clock.advance(3)
        async with asyncio.timeout(5):
            assert isinstance((await ending)[-1], Done)
