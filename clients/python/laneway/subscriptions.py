"""Reads a log over any number of connections: each event once and in order."""

from collections.abc import AsyncGenerator
from typing import Any

import grpc

from laneway.calls import Caller
from laneway.errors import LanewayError, make_error
from laneway.positions import Position
from laneway.retries import Losses
from laneway.v1 import agent_pb2, event_pb2

_CONTACT_S = 10.0
"""A quiet stream that stood so long before its connection broke had reached a server."""


async def follow(
    caller: Caller, subscribe: Any, request: agent_pb2.SubscribeRequest
) -> AsyncGenerator[event_pb2.Event, None]:
    """What LanewayClient.subscribe promises. `subscribe` is the method of the stub."""
    position = Position(request)
    losses = Losses(caller.timeouts.patience_s)
    # A filter may let nothing through for long while the run is busy; then only keepalive tells a lost server.
    silence_s = None if request.streams else caller.timeouts.silence_s
    while True:
        began = caller.now()
        stream = caller.stream(subscribe, position.request, silence_s=silence_s)
        try:
            while (event := await stream.next()) is not None:
                losses.contact()
                if position.take(event):
                    yield event
                if position.is_at_end:
                    return
            if position.may_end:
                return
            failure = make_error(grpc.StatusCode.UNAVAILABLE, "the stream ended before the run")
        except LanewayError as error:
            failure = error
        finally:
            await stream.close()
        position.lose(failure)
        if failure.status is grpc.StatusCode.UNAVAILABLE and caller.now() - began >= _CONTACT_S:
            losses.contact()
        await caller.pause(losses, failure)
