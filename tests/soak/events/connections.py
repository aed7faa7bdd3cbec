"""Connections that subscribers share, cut now and then: closed by the client, or reset on the way."""

import random
from contextlib import AsyncExitStack
from typing import Any

import grpc
from tests.fakes.cutting_proxy import CuttingProxy, Harm
from tests.fakes.server_process import CHANNEL_OPTIONS

from laneway.v1 import agent_pb2

_SUBSCRIBE = "/laneway.v1.AgentService/Subscribe"
PROXIED_SHARE = 0.34


class Connection:
    """One channel, replaced by a fresh one when it is cut."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._channel: grpc.aio.Channel | None = None

    def subscribe(self, request: agent_pb2.SubscribeRequest) -> Any:
        """A subscription whose events come as the bytes that they were sent as."""
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._target, options=CHANNEL_OPTIONS)
        method: Any = self._channel.unary_stream(
            _SUBSCRIBE, request_serializer=agent_pb2.SubscribeRequest.SerializeToString
        )
        return method(request, wait_for_ready=True)

    async def cut(self) -> None:
        """Close it under its calls; the next call makes a new one."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


class Connections:
    """Some connections, a third of them through a proxy that resets, truncates and delays."""

    def __init__(self, target: str, count: int, *, seed: int) -> None:
        self._target = target
        self._proxy = CuttingProxy(target, seed=seed, kinds=(Harm.RESET, Harm.TRUNCATE, Harm.DELAY), most_bytes=60_000)
        self._count = count
        self._stack = AsyncExitStack()
        self.connections: list[Connection] = []

    async def __aenter__(self) -> "Connections":
        await self._stack.enter_async_context(self._proxy)
        proxied = max(1, round(self._count * PROXIED_SHARE))
        for number in range(self._count):
            connection = Connection(self._proxy.target if number < proxied else self._target)
            self.connections.append(connection)
            self._stack.push_async_callback(connection.cut)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stack.aclose()

    @property
    def harms(self) -> dict[str, int]:
        """How often the proxy did what."""
        return {kind.value: count for kind, count in self._proxy.done.items() if count}

    async def disturb(self, chance: random.Random) -> str:
        """Cut one, or harm what goes through the proxy next; what was done."""
        if chance.random() < PROXIED_SHARE:
            self._proxy.harm(1)
            return "proxy harms"
        await chance.choice(self.connections).cut()
        return "connections closed"
