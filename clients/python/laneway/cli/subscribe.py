"""`laneway subscribe`: read the log of a run, of a session, or of everything."""

import os
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, cast

import typer
from rich.console import Console

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode, call_failed, exit_code_of
from laneway.cli.options import AddressOption, JsonOption, run_async
from laneway.cli.render import RunView
from laneway.cli.text import safe
from laneway.cli.views import EventView, JsonView, ManyRunsView
from laneway.client import LanewayClient
from laneway.errors import LanewayError, NotFound
from laneway.positions import is_terminal
from laneway.v1 import agent_pb2, event_pb2, run_pb2
from laneway.waits import ENDED_STATES

_STREAMS = {
    name.removeprefix("STREAM_KIND_").lower(): cast("event_pb2.StreamKind", number)
    for name, number in event_pb2.StreamKind.items()
    if number != event_pb2.STREAM_KIND_UNSPECIFIED
}


def subscribe(
    run_id: Annotated[str | None, typer.Argument(metavar="RUN_ID", help="The run.")] = None,
    *,
    session: Annotated[str | None, typer.Option(metavar="KEY", help="All runs of this session, without end.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All runs of all sessions, from now, without end.")] = False,
    after_seq: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="With RUN_ID: only the events after this one.")
    ] = None,
    cursor: Annotated[
        str, typer.Option(metavar="CURSOR", help="With --session or --all: only the events after this one.")
    ] = "",
    streams: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[,KIND]", help="Only these kinds of events: message, tool, lifecycle ..."),
    ] = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a run does or did; or the runs of a session, or all there are.

    Every event comes once and in order, over lost connections and restarts of the server. For a run the exit code says
    how it ended; the others end with Ctrl-C. Each event of --json has its `seq` and its `cursor`, from which another
    call goes on.

    Examples:
      laneway subscribe run_0198...
      laneway subscribe run_0198... --after-seq 17 --json
      laneway subscribe --session demo --streams message,tool
      laneway subscribe --all --json | jq -c 'select(.lifecycle)'
    """
    request = _request(run_id, session, everything=everything, cursor=cursor)
    if after_seq is not None:
        if run_id is None:
            raise typer.BadParameter("--after-seq goes with RUN_ID; sessions and --all are read on with --cursor")
        request.after_seq = after_seq
    request.streams.extend(_stream_kinds(streams or ()))
    console = Console(highlight=False)
    if run_id is not None:
        run_view = RunView(console, heads=True)
        reading = _Reading(request, JsonView() if json else run_view, None if json else run_view)
    else:
        reading = _Reading(request, JsonView() if json else ManyRunsView(console))
    try:
        code = run_async(reading.read(address))
    except CliError as ended:
        code = reading.left(ended)
    raise typer.Exit(int(code))


def _request(run_id: str | None, session: str | None, *, everything: bool, cursor: str) -> agent_pb2.SubscribeRequest:
    if (run_id is not None) + (session is not None) + everything != 1:
        raise typer.BadParameter("give one of RUN_ID, --session KEY and --all")
    if cursor and run_id is not None:
        raise typer.BadParameter("--cursor goes with --session and --all; a run is read on with --after-seq")
    request = agent_pb2.SubscribeRequest(cursor=cursor, verbose=agent_pb2.VERBOSITY_FULL)
    if run_id is not None:
        request.run_id = run_id
    elif session is not None:
        request.session_key = session
    else:
        request.all = True
    return request


def _stream_kinds(options: Sequence[str]) -> list[event_pb2.StreamKind]:
    kinds = []
    for name in (name.strip().lower() for option in options for name in option.split(",")):
        if name not in _STREAMS:
            raise typer.BadParameter(f"there is no kind {name!r}; there are {', '.join(sorted(_STREAMS))}")
        kinds.append(_STREAMS[name])
    return kinds


@dataclass(slots=True)
class _Reading:
    """One subscription, and where it stands."""

    request: agent_pb2.SubscribeRequest
    view: EventView
    run_view: RunView | None = None
    """The view, if it can show the result of a run whose events are gone."""
    _has_events: bool = False

    async def read(self, address: str | None) -> ExitCode:
        """Show events until the run has ended."""
        async with Connection(address, os.environ, say=self.view.notice) as connection:
            if self.request.session_key and not self.request.cursor:
                await self._say_if_empty(connection.client)
            async with aclosing(connection.client.subscribe(self.request)) as events:
                async for event in events:
                    self.view.show(event)
                    self._note(event)
                    if self.request.run_id and is_terminal(event):
                        return exit_code_of(event.lifecycle.state)
            return await self._result(connection.client)

    async def _say_if_empty(self, client: LanewayClient) -> None:
        """A session that has no events yet is no error, but its key may be a slip of the pen."""
        key = self.request.session_key
        try:
            if (await client.sessions.get(key)).last_run_id:
                return
            what = "has no events yet"
        except NotFound:
            what = "does not exist yet"
        print(f"laneway: session {safe(key)} {what}; waiting for its first message", file=sys.stderr)

    def left(self, ended: CliError) -> ExitCode:
        """The reader leaves before the end, or has to: say how to go on. Raises what is an error."""
        if isinstance(ended.__cause__, LanewayError):
            self._advise()
            raise ended
        if ended.exit_code is not ExitCode.NOT_FINISHED:
            raise ended
        self._advise()
        return ExitCode.NOT_FINISHED if self.request.run_id else ExitCode.OK

    def _note(self, event: event_pb2.Event) -> None:
        if event.seq:
            self._has_events = True
            if self.request.run_id:
                self.request.after_seq = event.seq
            else:
                self.request.cursor = event.cursor

    def _advise(self) -> None:
        if not self._has_events:
            return
        if self.request.run_id:
            place = f"{self.request.run_id} --after-seq {self.request.after_seq}"
        else:
            target = f"--session {self.request.session_key}" if self.request.session_key else "--all"
            place = f"{target} --cursor {self.request.cursor}"
        print(f"\nlaneway: to go on: laneway subscribe {place}", file=sys.stderr)

    async def _result(self, client: LanewayClient) -> ExitCode:
        """Of a run that had no event to show: they were seen before, or retention has removed them."""
        try:
            run: run_pb2.Run = await client.get_run(self.request.run_id)
        except LanewayError as error:
            raise call_failed(error) from error
        if run.state not in ENDED_STATES:
            raise CliError(f"the events of {run.run_id} ended without an end", ExitCode.RUN_FAILED)
        if self.run_view is not None:
            self.run_view.result(run)
        return exit_code_of(run.state)
