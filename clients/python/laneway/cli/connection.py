"""A connection to a server: found, started if need be, and found again after it was lost."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from laneway.cli.address import Target, find_target, home_of, is_live, socket_path
from laneway.cli.channel import becomes_ready, open_channel
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.server_process import ServerProcess
from laneway.v1 import admin_pb2_grpc, agent_pb2_grpc

_IDLE_EXIT_S = 60


@dataclass(slots=True)
class Connection:
    """An open channel with its stubs. `renew` replaces both; use it as an async context manager.

    `may_start`: without a server, start one on the socket in home, unless the address was chosen by a person.
    """

    option: str | None
    environ: Mapping[str, str]
    may_start: bool = False
    say: Callable[[str], None] = lambda _text: None
    """Hears that a server is started."""
    address: str = ""
    _channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        await self.renew()
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def renew(self) -> None:
        """Connect, anew if need be. Raises CliError NO_SERVER when there is nobody."""
        await self.close()
        target = find_target(self.option, self.environ)
        if self.may_start and not target.is_chosen and not await asyncio.to_thread(is_live, target.address):
            target = Target(f"unix:{await start_server(self.environ, self.say)}", is_chosen=False)
        self._channel, self.address = open_channel(target.address), target.address
        if not await becomes_ready(self._channel):
            await self.close()
            raise CliError(
                f"no server listens on {target.address}: start one with `laneway serve` or name another with --address",
                ExitCode.NO_SERVER,
            )

    async def close(self) -> None:
        """Close the channel. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    @property
    def agent(self) -> agent_pb2_grpc.AgentServiceStub:
        """The stub of AgentService on the present channel."""
        return agent_pb2_grpc.AgentServiceStub(self._channel)

    @property
    def admin(self) -> admin_pb2_grpc.AdminServiceStub:
        """The stub of AdminService on the present channel."""
        return admin_pb2_grpc.AdminServiceStub(self._channel)


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
