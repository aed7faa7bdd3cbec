"""Calls of clients whose server is killed, drained and started again under them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
from tests.fakes.service import refusal_of
from tests.processes.observers import LOST

Answer = TypeVar("Answer")

DRAINING = "DRAINING"


class Restarts:
    """Counts the starts of a server. `began` is called by whoever starts it."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def began(self) -> None:
        """It was started once more."""
        self.count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def beyond(self, count: int) -> None:
        """Return when there were more than `count` starts."""
        while self.count <= count:
            await self._changed.wait()

    async def repeated(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a call that is made again as long as the server goes under it. What a leaving server refuses is
        asked again of the next one."""
        while True:
            count = self.count
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() not in LOST:
                    raise
                if refusal_of(error).reason == DRAINING:
                    await self.beyond(count)
