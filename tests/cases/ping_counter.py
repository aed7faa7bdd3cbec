"""Stands between a client and a server and counts the HTTP/2 pings of the client, so that a test can wait for them."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

_PREFACE_BYTES = 24
_HEADER_BYTES = 9
_PING, _GOAWAY = 0x06, 0x07
_ACK = 0x01


class PingCounter:
    """A relay on a port of 127.0.0.1 to a unix socket."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()
        self.pings = 0
        """Sent by clients; answers to pings do not count."""
        self.goaways: list[bytes] = []
        """The debug data of the server's GOAWAY frames."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._relays)

    @property
    def target(self) -> str:
        """Where clients connect."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def pinged(self, count: int) -> None:
        """Return when clients have sent so many pings."""
        while self.pings < count:
            self._changed.clear()
            await self._changed.wait()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        upstream_reader, upstream_writer = await asyncio.open_unix_connection(self._socket_path)
        self._writers |= {writer, upstream_writer}
        ways = [
            asyncio.ensure_future(self._pass_on(reader, upstream_writer, _PREFACE_BYTES)),
            asyncio.ensure_future(self._pass_on(upstream_reader, writer, 0)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, upstream_writer):
                end.close()
                self._writers.discard(end)
            self._relays.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, preface_bytes: int) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            if preface_bytes:
                writer.write(await reader.readexactly(preface_bytes))
            while True:
                header = await reader.readexactly(_HEADER_BYTES)
                payload = await reader.readexactly(int.from_bytes(header[:3], "big"))
                writer.write(header + payload)
                await writer.drain()
                self._note(header, payload, is_clients=preface_bytes > 0)

    def _note(self, header: bytes, payload: bytes, *, is_clients: bool) -> None:
        if header[3] == _PING and not header[4] & _ACK and is_clients:
            self.pings += 1
        elif header[3] == _GOAWAY and not is_clients:
            self.goaways.append(payload[8:])
        self._changed.set()
