"""A model service of every family that gives one long answer: `python -m tests.benchmarks.decoding.service DELTAS`.

What comes before the path of the family is the first part of the path: http://127.0.0.1:PORT/<api>. Each event is a
chunk of its own, as services send them, and all are sent at once: what a client does with them is all that takes time.
"""

import asyncio
import re
import sys
from typing import cast

import uvloop
from tests.benchmarks.decoding.answers import APIS, answer

_PATH = re.compile(rb"POST /(\w+)")
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)", re.IGNORECASE)


def _response(api: str, deltas: int) -> bytes:
    kind = "application/x-ndjson" if api == "ollama" else "text/event-stream"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    body = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in answer(api, deltas))
    return head + body + b"0\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One client's connection; its requests are answered one after the other."""

    def __init__(self, responses: dict[bytes, bytes]) -> None:
        self._responses = responses
        self._transport: asyncio.Transport | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not derive from it

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        length, path = _LENGTH.search(self._buffer, 0, head_end), _PATH.match(self._buffer)
        if head_end >= 0 and path and len(self._buffer) >= head_end + 4 + (int(length[1]) if length else 0):
            self._buffer = b""
            assert self._transport is not None
            self._transport.write(self._responses[path[1]])


async def _serve(deltas: int) -> None:
    responses = {api.encode(): _response(api, deltas) for api in APIS}
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(responses), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
