"""A model service for benchmarks: chat completions over HTTP, scripted by the model's name, answers encoded beforehand.

`tokens-<n>-<delay_ms>[-tools-<rounds>]`: n tokens (4.45 characters on average), delay_ms apart, 0 = all in one burst;
with rounds, so many answers behind the last user message end in a call of the first tool that the request offers.
On its own: `python -m tests.benchmarks.mock_model` prints its base URL.
"""

import asyncio
import functools
import json
import re
from typing import Any, cast

import uvloop

_WORDS = (
    *("the ", "run ", "of ", "a ", "agent ", "ends ", "with ", "its ", "last ", "event "),
    *("and ", "all ", "reader ", "read ", "it ", "see ", "the ", "same ", "log ", "once "),
)
_NAME = re.compile(r"(?:.*/)?tokens-(\d+)-(\d+(?:\.\d+)?)(?:-tools-(\d+))?")
_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_USER = re.compile(rb'"role": ?"user"')
_RESULT = re.compile(rb'"role": ?"tool"')
_TOOL = re.compile(rb'"tools": ?\[.*?"name": ?"([^"]+)"', re.DOTALL)
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_BODY_END = b"0\r\n\r\n"


def token(number: int) -> str:
    """The text of one token."""
    return _WORDS[number % len(_WORDS)]


@functools.cache
def text_of(count: int) -> str:
    """The text of a whole answer."""
    return "".join(token(number) for number in range(count))


def tokens_in(model: str) -> tuple[int, float, int]:
    """Tokens, seconds between them and tool rounds that a model's name asks for; 1, 0, 0 for any other name."""
    match = _NAME.fullmatch(model)
    return (int(match[1]), float(match[2]) / 1000, int(match[3] or 0)) if match else (1, 0.0, 0)


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunk(choice: dict[str, Any] | None, **more: Any) -> bytes:
    choices = [] if choice is None else [{"index": 0, "logprobs": None, "finish_reason": None, **choice}]
    chunk = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1760000000, "model": "bench"}
    return _framed(b"data: " + json.dumps({**chunk, "choices": choices, **more}).encode() + b"\n\n")


@functools.cache
def _tokens(count: int) -> tuple[bytes, ...]:
    return tuple(_chunk({"delta": {"content": token(number)}}) for number in range(count))


@functools.cache
def _end(count: int, tool: str) -> bytes:
    """What follows the tokens, to the end of the body."""
    finish = "stop"
    call = b""
    if tool:
        finish = "tool_calls"
        function = {"name": tool, "arguments": "{}"}
        call = _chunk(
            {"delta": {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}}
        )
    usage = {"prompt_tokens": 100, "completion_tokens": count, "total_tokens": 100 + count}
    last = _chunk({"delta": {}, "finish_reason": finish}) + _chunk(None, usage=usage)
    return call + last + _framed(b"data: [DONE]\n\n") + _BODY_END


@functools.cache
def _burst(count: int, tool: str) -> bytes:
    return _HEAD + b"".join(_tokens(count)) + _end(count, tool)


class _Connection(asyncio.Protocol):
    """One client's connection; its requests are answered one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not derive from it

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, head_end)
        body_end = head_end + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) >= body_end:
            body = bytes(self._buffer[head_end + 4 : body_end])
            del self._buffer[:body_end]
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        assert self._transport is not None
        named = _MODEL.search(body)
        count, delay_s, rounds = tokens_in(named[1].decode() if named else "")
        tool = _tool_to_call(body, rounds) if rounds else ""
        if not delay_s:
            self._transport.write(_burst(count, tool))
            return
        self._transport.write(_HEAD)
        self._pace(0, count, delay_s, tool, self._loop.time())

    def _pace(self, sent: int, count: int, delay_s: float, tool: str, began_s: float) -> None:
        """Send what is due by now; a tick that comes late does not delay the later ones."""
        if self._transport is None:
            return
        due = min(count, int((self._loop.time() - began_s) / delay_s + 1e-6))
        if due > sent:
            self._transport.write(b"".join(_tokens(count)[sent:due]))
        if due == count:
            self._transport.write(_end(count, tool))
            return
        self._loop.call_at(began_s + (due + 1) * delay_s, self._pace, due, count, delay_s, tool, began_s)


def _tool_to_call(body: bytes, rounds: int) -> str:
    """The first tool offered, while fewer than `rounds` results stand behind the last user message."""
    users = list(_USER.finditer(body))
    results = len(_RESULT.findall(body, users[-1].end() if users else 0))
    tool = _TOOL.search(body)
    return tool[1].decode() if tool and results < rounds else ""


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())


if __name__ == "__main__":
    main()
