"""A model service that speaks chat completions over real HTTP and misbehaves on request.

In a test: `async with ModelServer() as server`, give it answers, hold some of them with events. On its own, for kill
tests and benchmarks: `python -m tests.fakes.model_server --port 0` prints its base URL.

What a request gets: the answer queued for its model, else the next queued answer, else the answer that its model's name
asks for (`tokens-<n>-<delay_ms>[-tools-<rounds>]`), else the plain text `ok`.
"""

import argparse
import asyncio
import contextlib
import json
import re
import socket
import struct
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.fakes.model_answers import DONE, Answer, End, Step, calls_answer, delta, event, text_answer

_TOKENS = re.compile(r"(?:.*/)?tokens-(\d+)-(\d+(?:\.\d+)?)(?:-tools-(\d+))?")

ToolArguments = Callable[[str, str], dict[str, Any]]
"""Tool name and a fresh token -> the arguments of a call."""


def token_arguments(name: str, token: str) -> dict[str, Any]:
    """Arguments for the tools that tests use: the token where the tool can put it down."""
    return {"command": f"echo {token}"} if name == "exec" else {"token": token}


@dataclass
class RecordedRequest:
    """A request as it came in. Times are of the monotonic clock; `ended_at` is 0 while it is being answered."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    began_at: float
    ended_at: float = 0.0
    connection: Any = None
    """The socket it came on."""

    @property
    def is_over(self) -> bool:
        """It was answered, or its client has hung up, whether or not the server has read that yet."""
        return bool(self.ended_at) or self.connection is None or _has_hung_up(self.connection)

    @property
    def json(self) -> dict[str, Any]:
        """The body."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.json.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation sent."""
        messages: list[dict[str, Any]] = self.json["messages"]
        return messages


class ModelServer:
    """Serves one port of 127.0.0.1. `requests` are all that came; `sent_tokens` what the tool calls carried.

    `listing` is what each GET gets, until it is set to another one.
    """

    def __init__(self, *, port: int = 0, tool_arguments: ToolArguments = token_arguments) -> None:
        self._port = port
        self._tool_arguments = tool_arguments
        self._server: asyncio.Server | None = None
        self._answers: deque[Answer] = deque()
        self._by_model: dict[str, deque[Answer]] = {}
        self._changed = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[None]] = set()
        self.requests: list[RecordedRequest] = []
        self.sent_tokens: list[str] = []
        self.connections_made = 0
        self.listing = Answer([b'{"object":"list","data":[]}'], headers={"content-type": "application/json"})

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def base_url(self) -> str:
        """What a provider is configured with."""
        return f"http://127.0.0.1:{self._port}/v1"

    def answer(self, *answers: Answer, model: str | None = None) -> None:
        """Queue answers: for requests of `model`, or for whatever comes next."""
        queue = self._answers if model is None else self._by_model.setdefault(model, deque())
        queue.extend(answers)

    async def received(self, count: int) -> None:
        """Return when `count` requests have come in."""
        await self._until(lambda: len(self.requests) >= count)

    async def connections_at_most(self, count: int) -> None:
        """Return when clients hold no more than `count` connections."""
        await self._until(lambda: len(self._connections) <= count)

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self._changed.clear()
            await self._changed.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self._connections.add(writer)
        self.connections_made += 1
        incoming: asyncio.Queue[RecordedRequest | None] = asyncio.Queue()
        gone = asyncio.Event()
        reading = asyncio.ensure_future(_read_requests(reader, incoming, gone))
        try:
            while (request := await incoming.get()) is not None:
                request.connection = writer.get_extra_info("socket")
                self.requests.append(request)
                self._changed.set()
                is_kept = await self._respond(request, writer, gone)
                request.ended_at = time.monotonic()
                if not is_kept:
                    break
        except (ConnectionError, RuntimeError, asyncio.CancelledError):
            pass  # the client left (RuntimeError: uvloop's word for a closed transport), or the test ends
        finally:
            # First what needs no waiting: the end of the test may cancel this as well.
            writer.close()
            reading.cancel()
            self._connections.discard(writer)
            self._changed.set()
            await asyncio.gather(reading, writer.wait_closed(), return_exceptions=True)
            self._handlers.discard(task)

    async def _respond(self, request: RecordedRequest, writer: asyncio.StreamWriter, gone: asyncio.Event) -> bool:
        """Answer one request; False when the connection is done. A client that hangs up ends the answer."""
        answer = self.listing if request.method == "GET" else self._answer_for(request)
        sending = asyncio.ensure_future(_send(answer, writer))
        leaving = asyncio.ensure_future(gone.wait())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return sending.done() and sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    def _answer_for(self, request: RecordedRequest) -> Answer:
        queue = self._by_model.get(request.model) or self._answers
        if queue:
            return queue.popleft()
        tokens = _TOKENS.fullmatch(request.model)
        if tokens is None:
            return text_answer("ok")
        count, delay_ms, rounds = int(tokens[1]), float(tokens[2]), int(tokens[3] or 0)
        return self._tokens_answer(request, count, delay_ms / 1000, rounds)

    def _tokens_answer(self, request: RecordedRequest, count: int, delay_s: float, rounds: int) -> Answer:
        """`rounds` answers with one call each, then only text; each has `count` tokens of text."""
        steps: list[Step] = []
        for number in range(count):
            if delay_s:
                steps.append(delay_s)
            steps.append(delta(content=f"token{number} "))
        tools = [tool["function"]["name"] for tool in request.json.get("tools", ())]
        if tools and _answers_behind_user(request.messages) < rounds:
            token = uuid.uuid4().hex
            self.sent_tokens.append(token)
            name = next((name for name in ("ledger", "rec", "exec") if name in tools), tools[0])
            call = calls_answer((name, self._tool_arguments(name, token)))
            return Answer([*steps, *call.steps])
        usage = {"prompt_tokens": len(request.body) // 4, "completion_tokens": count}
        return Answer([*steps, delta("stop"), event(id="c", choices=[], usage=usage), DONE])


def _has_hung_up(connection: Any) -> bool:
    """Whether the peer has closed or reset the connection, as the kernel knows it."""
    if connection.fileno() < 0:
        return True
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as peek:
        try:
            return peek.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except OSError as error:
            return not isinstance(error, BlockingIOError)


def _answers_behind_user(messages: list[dict[str, Any]]) -> int:
    count = 0
    for message in messages:
        count = 0 if message["role"] == "user" else count + (message["role"] == "assistant")
    return count


async def _read_request(reader: asyncio.StreamReader) -> RecordedRequest | None:
    """The next request of a connection; None when there is none."""
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ")
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return RecordedRequest(method, path, headers, body, time.monotonic())


async def _read_requests(
    reader: asyncio.StreamReader, incoming: "asyncio.Queue[RecordedRequest | None]", gone: asyncio.Event
) -> None:
    """Pass on a connection's requests; at its end say that the client is gone."""
    try:
        while (request := await _read_request(reader)) is not None:
            incoming.put_nowait(request)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # gone in the middle of a request
    finally:
        incoming.put_nowait(None)
        gone.set()


async def _send(answer: Answer, writer: asyncio.StreamWriter) -> bool:
    """Carry out an answer; True when the connection can take another request."""
    if answer.before is not None:
        await answer.before.wait()
    is_chunked = answer.sends_head and answer.end is not End.CLOSE
    if answer.sends_head:
        head = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in answer.headers.items())]
        head.append("transfer-encoding: chunked" if is_chunked else "connection: close")
        writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
        await writer.drain()
    for step in answer.steps:
        if isinstance(step, asyncio.Event):
            await step.wait()
        elif isinstance(step, bytes):
            writer.write(b"%x\r\n%b\r\n" % (len(step), step) if is_chunked and step else step)
            await writer.drain()
        else:
            await asyncio.sleep(step)
    if answer.end is End.RESET:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    elif answer.end is End.COMPLETE:
        if is_chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
    return answer.end is End.COMPLETE and answer.sends_head


async def _run(port: int, command: str | None) -> None:
    def arguments(name: str, token: str) -> dict[str, Any]:
        if name == "exec" and command is not None:
            return {"command": command.replace("{token}", token)}
        return token_arguments(name, token)

    async with ModelServer(port=port, tool_arguments=arguments) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="A model service for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--exec-command", help="command of the calls of `exec`; {token} is replaced by a fresh token")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(options.port, options.exec_command))


if __name__ == "__main__":
    main()
