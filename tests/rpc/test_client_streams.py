"""Streams of requests: what a handler hears of their end. gRPC's side is played, because only it knows the order."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from laneway.v1 import session_pb2
from lanewayd.rpc.methods import Call, Context, service_handler

SERVICE = session_pb2.DESCRIPTOR.services_by_name["SessionService"]
METHOD = f"/{SERVICE.full_name}/ImportSession"


class Handlers:
    """Answers with how many lines came; every other method of the service is nobody's."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.has_seen_the_end = False

    def __getattr__(self, name: str) -> None:
        return None

    async def ImportSession(
        self, requests: AsyncIterator[session_pb2.ImportSessionRequest], _call: Call
    ) -> session_pb2.ImportSessionResponse:
        async for request in requests:
            self.lines.append(request.line)
        self.has_seen_the_end = True
        return session_pb2.ImportSessionResponse(entries=len(self.lines))


class PlayedContext:
    """Of a call that is whole, or was cut: then nothing can be sent, and gRPC cancels the task that tries to."""

    def __init__(self, *, is_cut: bool) -> None:
        self._is_cut = is_cut

    def time_remaining(self) -> None:
        return None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    async def send_initial_metadata(self, _metadata: object) -> None:
        if self._is_cut:
            raise asyncio.CancelledError


async def two_lines() -> AsyncIterator[bytes]:
    for text in ("one", "two"):
        yield session_pb2.ImportSessionRequest(line=text).SerializeToString()


async def call(handlers: Handlers, *, is_cut: bool) -> session_pb2.ImportSessionResponse:
    details: Any = SimpleNamespace(method=METHOD, invocation_metadata=())
    handler: Any = service_handler(SERVICE, handlers, lambda _context: "tenant").service(details)
    encoded = await handler.stream_unary(two_lines(), cast(Context, PlayedContext(is_cut=is_cut)))
    return session_pb2.ImportSessionResponse.FromString(encoded)


async def test_a_stream_that_its_caller_ended_ends() -> None:
    handlers = Handlers()
    assert (await call(handlers, is_cut=False)).entries == 2
    assert handlers.has_seen_the_end


async def test_a_stream_that_was_cut_off_does_not_look_complete() -> None:
    handlers = Handlers()
    with pytest.raises(asyncio.CancelledError):
        await call(handlers, is_cut=True)
    assert handlers.lines == ["one", "two"]
    assert not handlers.has_seen_the_end
