"""The soak `subscribers`: tens of thousands of Subscribe calls that their clients leave, in each way there is.

Nothing of them may stay in the server but what gRPC itself loses: 96 bytes for each call that ends while a message is
on the way to its client (https://github.com/grpc/grpc/issues/43360, open). With grpcio 1.85 that shows as about 100
bytes a call that is left in the middle, and nothing for one that waits. Where no message is on its way nothing may be
lost.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from tests.fakes.cutting_proxy import CuttingProxy, Harm
from tests.soak import filling
from tests.soak.flatness import behind_warm_up, growth, rise
from tests.soak.inspected_server import InspectedServer, grown_objects, inspected_server
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure

from laneway.v1 import admin_pb2, admin_pb2_grpc, agent_pb2, agent_pb2_grpc

SCRIPTS = {"ticking": "turns:\n  - text: tick\n    repeat: 1000000\n    delay_s: 0.02\n", **filling.SCRIPTS}
MODES = ("before the first event", "in the middle", "deadline", "dropped channel")
AT_ONCE = 25
CALLS_A_CHANNEL = 5
RESET_SHARE = 0.25
"""Of the dropped channels: reset on the way instead of closed."""
DEADLINE_S = (0.001, 0.06)
OBJECTS_ALLOWED = 12
HEAP_LIMIT_BYTES = 24.0
"""Per call: noise, and a quarter of what gRPC loses."""
LOSS_OF_GRPC_BYTES = 104.0
"""Of a batch of operations that fails or whose awaiter is cancelled: 96 bytes and what malloc adds to them."""
LOST_BATCHES = (0, 1, 1, 2)
"""Of a call in each of MODES: its message on the way; and where the connection is gone, the status that follows too."""
RSS_LIMIT_BYTES = HEAP_LIMIT_BYTES + LOSS_OF_GRPC_BYTES
BLOCKS_LIMIT = 0.05
DESCRIPTORS_LIMIT = 10
"""Connections that were reset are given back a while later; a turn of that mode has hundreds of them."""
ENOUGH_OF_A_MODE = 5
WARM_UP = 20_000
"""Calls. Pools of gRPC and malloc still fill before: over the first 16,000 calls heap and blocks were seen to rise by
more than gRPC loses, behind 20,000 no longer."""


class CancelledCalls:
    """Implements Soak. A round is one call; the modes take turns, for some units each."""

    name = "subscribers"
    rounds_are = "Subscribe calls left by their clients"
    default_rounds = 20_000 * len(MODES)

    def __init__(self, *, unit_rounds: int = 500, units_a_turn: int = 8, is_filled: bool = True) -> None:
        """`is_filled`: the server has filled its caches before anything is counted."""
        self.unit_rounds = unit_rounds
        self._units_a_turn = units_a_turn
        self._is_filled = is_filled

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async with inspected_server(place.folder / "server", scripts=SCRIPTS) as server:
            first: dict[str, Any] = {}
            if self._is_filled:
                await filling.fill_caches(server)

            async def play_unit(unit: Unit) -> UnitResult:
                before = await server.sample(unit.rounds_before)
                turn, place = divmod(unit.number, self._units_a_turn)
                mode = MODES[turn % len(MODES)]
                calls = _Calls(server, unit)
                await calls.play(mode)
                await server.idle()
                sample = await server.sample(unit.rounds_before + unit.rounds)
                objects = (await server.inspection())["objects"]
                first.setdefault("objects", objects)
                violations = grown_objects(first["objects"], objects, allowed=OBJECTS_ALLOWED)
                sample |= {
                    "mode": MODES.index(mode),
                    "place": place,
                    "heap_gain_bytes": sample["heap_bytes"] - before["heap_bytes"],
                    "calls": unit.rounds,
                }
                return UnitResult(
                    rounds=unit.rounds,
                    counts={mode: unit.rounds, **calls.counts},
                    samples=[sample],
                    violations=[*violations, *calls.violations],
                )

            yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        samples = progress.longest_segment()
        return [
            *growth(samples, "rss_bytes", "server RSS", unit="B/call", limit=RSS_LIMIT_BYTES, warm_up=WARM_UP),
            *growth(samples, "python_blocks", "Python blocks", unit="/call", limit=BLOCKS_LIMIT, warm_up=WARM_UP),
            *_gain_of_modes(samples),
            *rise(samples, "threads", "threads", limit=1),
            *rise(samples, "descriptors", "descriptors", limit=DESCRIPTORS_LIMIT),
        ]


def _gain_of_modes(samples: list[dict[str, float]]) -> list[Figure]:
    """What the server's heap gained over the units of each mode, per call. The first unit of a turn does not count: the
    server gives back what it still held for the mode before."""
    figures = []
    for number, mode in enumerate(MODES):
        counted = [
            sample for sample in behind_warm_up(samples, WARM_UP) if sample["mode"] == number and sample["place"]
        ]
        if len(counted) >= ENOUGH_OF_A_MODE:
            gain = sum(sample["heap_gain_bytes"] for sample in counted) / sum(sample["calls"] for sample in counted)
            limit = HEAP_LIMIT_BYTES + LOST_BATCHES[number] * LOSS_OF_GRPC_BYTES
            figures.append(Figure(f"heap in use, {mode}", gain, "B/call", limit))
    return figures


class _Calls:
    """One unit of one mode, while a run says something every 20 ms."""

    def __init__(self, server: InspectedServer, unit: Unit) -> None:
        self._server = server
        self._unit = unit
        self._chance = random.Random(unit.seed)
        self._run_id = ""
        self.counts: dict[str, int] = {}
        self.violations: list[str] = []

    async def play(self, mode: str) -> None:
        ways: dict[str, Callable[[int], Awaitable[None]]] = dict(
            zip(MODES, (self._before_first, self._in_the_middle, self._deadline, self._dropped), strict=True)
        )
        self._run_id = (await self._server.accept("go", model="scripted/ticking")).run_id
        await self._server.event(self._run_id, _is_text)
        left = self._unit.rounds
        while left:
            count = min(AT_ONCE, left)
            await ways[mode](count)
            left -= count
        await self._server.agent.Abort(agent_pb2.AbortRequest(run_id=self._run_id))
        await self._server.wait(self._run_id)

    # --- the ways to leave -------------------------------------------------------------------------------------------

    async def _before_first(self, count: int) -> None:
        """Of calls that wait: some left at once, the others when the server has them."""
        calls = [self._server.agent.Subscribe(self._quiet()) for _ in range(count)]
        if self._chance.random() < 0.8:
            # An answer on the same connection: the calls have arrived.
            await self._server.admin.GetStatus(admin_pb2.GetStatusRequest())
        for call in calls:
            call.cancel()
        await asyncio.gather(*(self._ends_as(call, grpc.StatusCode.CANCELLED) for call in calls))

    async def _in_the_middle(self, count: int) -> None:
        async def one() -> None:
            call = self._server.agent.Subscribe(self._lively())
            await self._some_events(call)
            call.cancel()
            await self._ends_as(call, grpc.StatusCode.CANCELLED)

        await asyncio.gather(*(one() for _ in range(count)))

    async def _deadline(self, count: int) -> None:
        async def one(request: agent_pb2.SubscribeRequest) -> None:
            call = self._server.agent.Subscribe(request, timeout=self._chance.uniform(*DEADLINE_S))
            await self._ends_as(call, grpc.StatusCode.DEADLINE_EXCEEDED)

        await asyncio.gather(*(one(self._chance.choice((self._quiet, self._lively))()) for _ in range(count)))

    async def _dropped(self, count: int) -> None:
        while count > 0:
            calls = min(CALLS_A_CHANNEL, count)
            if self._chance.random() < RESET_SHARE:
                await self._reset(calls)
                self._count("channels reset")
            else:
                await self._closed(calls)
                self._count("channels closed")
            count -= calls

    async def _closed(self, count: int) -> None:
        channel = self._server.new_channel()
        agent, admin = agent_pb2_grpc.AgentServiceStub(channel), admin_pb2_grpc.AdminServiceStub(channel)
        calls = [agent.Subscribe(self._chance.choice((self._quiet, self._lively))()) for _ in range(count)]
        await admin.GetStatus(admin_pb2.GetStatusRequest())
        await channel.close()
        for call in calls:
            if not call.cancelled():
                self.violations.append("a call outlived its channel")

    async def _reset(self, count: int) -> None:
        async with CuttingProxy(
            self._server.target, seed=self._unit.seed, kinds=(Harm.RESET,), most_bytes=100
        ) as proxy:
            options = (("grpc.use_local_subchannel_pool", 1),)
            async with grpc.aio.insecure_channel(proxy.target, options=options) as channel:
                agent = agent_pb2_grpc.AgentServiceStub(channel)
                calls = [agent.Subscribe(self._lively()) for _ in range(count)]
                for call in calls:
                    await self._some_events(call)
                proxy.harm(1)
                await asyncio.gather(*(self._ends_as(call, grpc.StatusCode.UNAVAILABLE) for call in calls))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _quiet(self) -> agent_pb2.SubscribeRequest:
        """Of a session in which nothing happens."""
        return agent_pb2.SubscribeRequest(session_key=f"quiet {self._chance.randrange(100)}")

    def _lively(self) -> agent_pb2.SubscribeRequest:
        """Of what is being said: by its run, from the beginning, or by everything, from now on."""
        if self._chance.random() < 0.5:
            return agent_pb2.SubscribeRequest(all=True)
        return agent_pb2.SubscribeRequest(run_id=self._run_id, after_seq=0)

    async def _some_events(self, call: Any) -> None:
        left = self._chance.randint(1, 3)
        async for event in call:
            left -= bool(event.seq)
            if left <= 0:
                return

    async def _ends_as(self, call: Any, expected: grpc.StatusCode) -> None:
        try:
            async for _ in call:
                pass
        except (grpc.aio.AioRpcError, asyncio.CancelledError):
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        if (code := await call.code()) is not expected:
            self.violations.append(f"a call ended as {code} instead of {expected}")

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


def _is_text(event: Any) -> bool:
    return event.WhichOneof("payload") == "assistant"
