"""A connection to a server: found, started if need be, and started again when it is lost."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from laneway.calls import Loss
from laneway.cli.address import Target, find_target, home_of, is_live, socket_path
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.server_process import ServerProcess
from laneway.client import LanewayClient

_IDLE_EXIT_S = 60


@dataclass(slots=True)
class Connection:
    """An async context manager with a client that is connected; the client finds a lost server again by itself.

    `may_start`: without a server, also when it is lost later, start one on the socket in home, unless the address was
    chosen by a person.
    """

    option: str | None
    environ: Mapping[str, str]
    may_start: bool = False
    say: Callable[[str], None] = lambda _text: None
    """Hears of losses and starts, for people."""
    _target: Target = field(default_factory=lambda: Target("", is_chosen=False))
    _client: LanewayClient | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __aenter__(self) -> Self:
        """Raises CliError NO_SERVER when there is nobody."""
        self._target = find_target(self.option, self.environ)
        if self.may_start and not self._target.is_chosen and not await asyncio.to_thread(is_live, self.address):
            self._target = Target(f"unix:{await start_server(self.environ, self.say)}", is_chosen=False)
        client = LanewayClient(self.address, on_loss=self._lost)
        if not await _becomes_ready(client.channel):
            await client.close()
            raise CliError(
                f"no server listens on {self.address}: start one with `laneway serve` or name another with --address",
                ExitCode.NO_SERVER,
            )
        self._client = client
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.client.close()

    @property
    def client(self) -> LanewayClient:
        """Inside the context only."""
        if self._client is None:
            raise RuntimeError("the connection was not entered")
        return self._client

    @property
    def address(self) -> str:
        """Of the server."""
        return self._target.address

    async def _lost(self, loss: Loss) -> None:
        """Before the client tries again. Raises CliError when a server must be started and cannot."""
        if loss.number == 1:
            self.say("connection lost, trying again")
        if not self.may_start or self._target.is_chosen or not self.address.startswith("unix:"):
            return
        async with self._starting:  # several calls may have lost it at once
            if not await asyncio.to_thread(is_live, self.address):
                await start_server(self.environ, self.say)


async def _becomes_ready(channel: grpc.aio.Channel) -> bool:
    """True once connected, False after the first failed attempt."""
    state = channel.get_state(try_to_connect=True)
    while state not in (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE):
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
    return state is grpc.ChannelConnectivity.READY


async def start_server(environ: Mapping[str, str], say: Callable[[str], None]) -> Path:
    """Start `laneway serve` on the socket in home and wait until it answers; returns the socket's path.

    The server lives on after this command and leaves when it was idle for a minute. When another process starts one at
    the same time, the home's lock decides, and both use the winner's socket. Raises CliError NO_SERVER.
    """
    home = home_of(environ)
    path = socket_path(home)
    process = ServerProcess.start(home, [f"--listen=unix:{path}", f"--idle-exit={_IDLE_EXIT_S}"], environ)
    say(f"no server was running: starting one on unix:{path}")
    try:
        await process.answers(f"unix:{path}")
    finally:
        process.forget()
    return path
