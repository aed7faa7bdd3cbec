"""Sends a message and follows its run to the end, across lost connections: each event once, in order."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode, call_failed, reason_of
from laneway.v1 import agent_pb2, event_pb2

Answer = TypeVar("Answer")

PATIENCE_S = 60.0
"""How long a lost server is looked for before a command gives up."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0

_TRANSPORT_CODES = frozenset({grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL})
TERMINAL_PHASES = frozenset({event_pb2.LIFECYCLE_PHASE_END, event_pb2.LIFECYCLE_PHASE_ERROR})


def is_terminal(event: event_pb2.Event) -> bool:
    """Whether `event` is the last one of its run."""
    return event.WhichOneof("payload") == "lifecycle" and event.lifecycle.phase in TERMINAL_PHASES


def is_lost(error: grpc.aio.AioRpcError) -> bool:
    """Whether the connection or the server went away, so that the same call may succeed later."""
    return error.code() is grpc.StatusCode.UNAVAILABLE or (error.code() in _TRANSPORT_CODES and not reason_of(error))


@dataclass(slots=True)
class Persistence:
    """Repeats what a lost connection interrupted, until the server has been away for `patience_s`."""

    connection: Connection
    patience_s: float = PATIENCE_S
    notice: Callable[[str], None] = lambda _text: None
    """Hears of losses, for people."""
    _pause_s: float = _FIRST_PAUSE_S
    _lost_since: float | None = None

    def progressed(self) -> None:
        """The server answered: the next loss starts anew."""
        self._pause_s, self._lost_since = _FIRST_PAUSE_S, None

    async def reconnect(self, error: grpc.aio.AioRpcError | None) -> None:
        """Return when the call may be tried again. Raises CliError when the error is none of the connection's, or after
        `patience_s` without success. None: a stream ended before its time."""
        if error is not None and not is_lost(error):
            raise call_failed(error) from error
        now = asyncio.get_running_loop().time
        if self._lost_since is None:
            self._lost_since = now()
            self.notice("connection lost, trying again")
        while True:
            if now() - self._lost_since >= self.patience_s:
                raise call_failed(error) if error else CliError("the connection was lost", ExitCode.NO_SERVER)
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            try:
                await self.connection.renew()
            except CliError as still_away:
                if still_away.exit_code is not ExitCode.NO_SERVER:
                    raise
                continue
            return

    async def call(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a call that may be repeated."""
        while True:
            try:
                answer = await attempt()
            except grpc.aio.AioRpcError as error:
                await self.reconnect(error)
            else:
                self.progressed()
                return answer


async def events_of(persistence: Persistence, run_id: str, *, after_seq: int = 0) -> AsyncIterator[event_pb2.Event]:
    """The stored events of a run above `after_seq`, each once and in order; ends after the terminal one.

    Tool results are asked for. Raises CliError.
    """
    while True:
        request = agent_pb2.SubscribeRequest(
            run_id=run_id, after_seq=after_seq, verbose=agent_pb2.VERBOSITY_FULL, view=agent_pb2.VIEW_AGENT
        )
        call = persistence.connection.agent.Subscribe(request)
        try:
            async for event in call:
                persistence.progressed()
                if event.seq > after_seq:
                    after_seq = event.seq
                    yield event
                    if is_terminal(event):
                        return
            error = None
        except grpc.aio.AioRpcError as lost:
            error = lost
        finally:
            call.cancel()  # a stream that is only dropped lives on
        await persistence.reconnect(error)
