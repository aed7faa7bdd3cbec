"""`laneway agent`: send a message and show its run while it happens."""

import asyncio
import os
import signal
import sys
import uuid
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from laneway.cli.attached import read_attachment
from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode, call_failed, exit_code_of
from laneway.cli.options import AddressOption, JsonOption, read_duration, run_async
from laneway.cli.render import RunView
from laneway.cli.structured import print_output, read_schema
from laneway.cli.views import JsonView, View
from laneway.client import LanewayClient
from laneway.errors import LanewayError
from laneway.positions import is_terminal
from laneway.v1 import agent_pb2


class Thinking(StrEnum):
    """The levels of thinking."""

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"
    ADAPTIVE = "adaptive"
    ULTRA = "ultra"


def agent(
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The text, or - to read it from stdin.")],
    *,
    session: Annotated[str, typer.Option(metavar="KEY", help="The conversation; else a new one.")] = "",
    agent_id: Annotated[str, typer.Option("--agent", metavar="ID", help="The agent; else that of the session.")] = "",
    model: Annotated[str, typer.Option(metavar="PROVIDER/MODEL", help="The model; else that of the agent.")] = "",
    thinking: Annotated[
        Thinking | None, typer.Option(metavar="LEVEL", help="How hard it thinks: off, minimal, low, medium, high ...")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long the run may execute: 90, 10m, 2h; 0 = no limit.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A JSON Schema for the answer, which is then printed as JSON on stdout."),
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A file that goes with the message; may be repeated.")
    ] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="Added to the system prompt of this run.")] = "",
    idempotency_key: Annotated[
        str, typer.Option(metavar="KEY", help="Repeating the command with the same key shows the same run.")
    ] = "",
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Send MESSAGE to an agent and show what it does until it ends.

    Starts a server if none listens. A lost connection does not harm the run: the command goes on where it was.

    Ctrl-C aborts the run; a second one leaves it to the server.

    Examples:
      laneway agent "What is in this folder?" --session demo
      git diff | laneway agent - --system "Review this change."
      laneway agent "Count to three" --json | jq -r .assistant.delta
      laneway agent "The largest city of Italy" --schema city.json | jq .name
      laneway agent "What is on this picture?" --attach cat.png
    """
    request = agent_pb2.AgentRequest(
        message=sys.stdin.read() if message == "-" else message,
        session_key=session,
        agent_id=agent_id,
        model=model,
        thinking=f"THINKING_LEVEL_{thinking.name}" if thinking else None,
        extra_system_prompt=system,
        # Always with a key: then a call whose answer was lost can be repeated.
        idempotency_key=idempotency_key or f"cli-{uuid.uuid4()}",
        parent_run_id=os.environ.get("LANEWAY_RUN_ID", ""),
        attachments=[read_attachment(file) for file in attach or []],
    )
    duration = read_duration(timeout)
    if duration is not None:
        request.timeout.CopyFrom(duration)
    if schema is not None:
        request.response_schema.CopyFrom(read_schema(schema))
    view: View = JsonView() if json else RunView(Console(highlight=False, stderr=schema is not None))
    raise typer.Exit(
        int(run_async(send_and_follow(request, view, address, prints_output=schema is not None and not json)))
    )


async def send_and_follow(
    request: agent_pb2.AgentRequest, view: View, address: str | None, *, prints_output: bool = False
) -> ExitCode:
    """Send `request` and feed `view` until the run has ended, or Ctrl-C was pressed twice.

    `prints_output`: the structured answer of a run that succeeded goes to stdout.
    """
    async with Connection(address, os.environ, may_start=True, say=view.notice) as connection:
        response = await connection.client.agent(request)
        view.accepted(response)
        if not response.run_id:  # a command, which is answered
            return ExitCode.OK
        following = asyncio.ensure_future(_follow(connection.client, response.run_id, view))
        interrupts = _Interrupts(connection.client, response.run_id, view, following)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, interrupts.interrupt)
        try:
            code = await following
            if prints_output and code is ExitCode.OK:
                await print_output(connection.client, response.run_id)
            return code
        except asyncio.CancelledError:
            if not interrupts.has_left:
                raise
            return ExitCode.NOT_FINISHED
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            await interrupts.settle()


async def _follow(client: LanewayClient, run_id: str, view: View) -> ExitCode:
    log = agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0, verbose=agent_pb2.VERBOSITY_FULL)
    async with aclosing(client.subscribe(log)) as events:
        async for event in events:
            view.show(event)
            if is_terminal(event):
                return exit_code_of(event.lifecycle.state)
    raise CliError(f"the events of {run_id} ended without an end", ExitCode.RUN_FAILED)


@dataclass(slots=True)
class _Interrupts:
    """What Ctrl-C does: the first aborts the run, the second leaves it to the server."""

    client: LanewayClient
    run_id: str
    view: View
    following: asyncio.Future[ExitCode]
    has_left: bool = False
    _aborting: asyncio.Task[None] | None = None

    def interrupt(self) -> None:
        """One Ctrl-C."""
        if self._aborting is None:
            self.view.notice("aborting the run; Ctrl-C again leaves it to the server")
            self._aborting = asyncio.create_task(self._abort(), name="abort")
        elif not self.has_left:
            self.has_left = True
            self.view.notice(f"the server goes on without this command: laneway wait {self.run_id}")
            self.following.cancel()

    async def settle(self) -> None:
        """End what Ctrl-C began."""
        if self._aborting is not None:
            self._aborting.cancel()
            await asyncio.gather(self._aborting, return_exceptions=True)

    async def _abort(self) -> None:
        try:
            await self.client.abort(self.run_id, reason="Ctrl-C in laneway agent")
        except LanewayError as error:
            self.view.notice(f"the run could not be aborted: {call_failed(error)}")
