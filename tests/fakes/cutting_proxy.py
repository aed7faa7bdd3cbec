"""A TCP proxy on loopback that harms connections at seeded random points: resets, truncates, delays, stalls.

It passes bytes through unless it was told `harm(n)`: then the next n harms are done, each after a random number of
bytes, whichever connection and direction they pass in.
"""

import asyncio
import random
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 16 * 1024


class Harm(Enum):
    """What can be done to a connection."""

    RESET = "reset"
    """Both sides get RST."""
    TRUNCATE = "truncate"
    """What stands before the point is passed on, in the middle of a frame if need be; then both sides get FIN."""
    DELAY = "delay"
    """The bytes behind the point come late."""
    STALL = "stall"
    """Nothing is passed on any more, and nobody is told."""


ALL_HARMS = tuple(Harm)


@dataclass(eq=False)
class _Link:
    """One connection through the proxy."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    is_stalled: bool = False

    def close(self) -> None:
        """FIN to both."""
        for writer in (self.client, self.server):
            writer.close()

    def reset(self) -> None:
        """RST to both; a unix socket knows only the end."""
        for writer in (self.client, self.server):
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.family != socket.AF_UNIX:
                with suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class CuttingProxy:
    """Listens on 127.0.0.1 and passes on to `upstream` (`host:port` or `unix:/path`). `target` is its own address.

    Seeded: the choice of harms and points; where they fall depends on the traffic. `done` counts the harms.
    """

    def __init__(
        self,
        upstream: str,
        *,
        seed: int,
        kinds: tuple[Harm, ...] = ALL_HARMS,
        most_bytes: int = 6000,
        delay_s: float = 0.2,
    ) -> None:
        self._upstream = upstream
        self._random = random.Random(seed)
        self._kinds = kinds
        self._most_bytes = most_bytes
        self._delay_s = delay_s
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wanted = 0
        self._left_bytes = 0
        self._harmed = asyncio.Event()
        self.done: dict[Harm, int] = dict.fromkeys(Harm, 0)
        self.target = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.target = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def harm(self, count: int) -> None:
        """Do so many harms more."""
        self._wanted += count
        self._left_bytes = self._random.randint(0, self._most_bytes)

    async def harmed(self) -> None:
        """Return when all wanted harms are done."""
        while self._wanted:
            self._harmed.clear()
            await self._harmed.wait()

    def calm(self) -> None:
        """Do no harm any more, and end the connections that stall."""
        self._wanted = 0
        self._harmed.set()
        for link in self._links:
            if link.is_stalled:
                link.reset()

    @property
    def open_links(self) -> int:
        """Connections that go through now."""
        return len(self._links)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            upstream_reader, upstream_writer = await self._connect()
        except OSError:  # the server is away
            writer.transport.abort()
            self._tasks.discard(task)
            return
        link = _Link(writer, upstream_writer)
        self._links.add(link)
        pumps = [
            asyncio.ensure_future(self._pump(reader, upstream_writer, link)),
            asyncio.ensure_future(self._pump(upstream_reader, writer, link)),
        ]
        try:
            with suppress(asyncio.CancelledError):  # the proxy is closed; asyncio's own streams would log it
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            link.close()
            self._links.discard(link)
            await asyncio.gather(*pumps, return_exceptions=True)
            self._tasks.discard(task)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._upstream.startswith("unix:"):
            return await asyncio.open_unix_connection(self._upstream.removeprefix("unix:"))
        host, _, port = self._upstream.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link) -> None:
        """Pass bytes on until the connection ends."""
        with suppress(OSError, RuntimeError):  # RuntimeError: how uvloop says that the other side has closed
            while data := await reader.read(_CHUNK_BYTES):
                if link.is_stalled:
                    continue
                point = self._point(len(data))
                if point is None:
                    writer.write(data)
                else:
                    writer.write(data[:point])
                    await self._do(self._random.choice(self._kinds), link)
                    if not link.is_stalled:
                        writer.write(data[point:])
                await writer.drain()

    def _point(self, size: int) -> int | None:
        """Where in the next `size` bytes harm is due; None = not there."""
        if not self._wanted:
            return None
        if self._left_bytes > size:
            self._left_bytes -= size
            return None
        point = self._left_bytes
        self._left_bytes = self._random.randint(0, self._most_bytes)
        return point

    async def _do(self, kind: Harm, link: _Link) -> None:
        self._wanted -= 1
        self.done[kind] += 1
        if kind is Harm.STALL:
            link.is_stalled = True
        elif kind is Harm.RESET:
            link.reset()
        elif kind is Harm.TRUNCATE:
            link.close()
        self._harmed.set()
        if kind is Harm.DELAY:
            await asyncio.sleep(self._delay_s)
