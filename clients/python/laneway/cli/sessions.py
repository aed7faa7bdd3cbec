"""`laneway sessions`: list, show, set, fork, export, import, reset and delete conversations."""

import os
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from laneway.cli.connection import Connection
from laneway.cli.conversation import show
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.help_text import help_of
from laneway.cli.moments import ago_text
from laneway.cli.options import (
    PIPE_WIDTH,
    AddressOption,
    ForceOption,
    JsonOption,
    KeyArgument,
    YesOption,
    run_async,
)
from laneway.cli.session_files import export, import_
from laneway.cli.session_fork import fork
from laneway.cli.session_settings import set_
from laneway.cli.text import json_line, safe, state_style, state_text
from laneway.v1 import session_pb2

sessions = typer.Typer(
    name="sessions",
    help="List, show, set, fork, export, import, reset and delete conversations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def list_(
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="How many at most; 0 = all.")] = 50,
    archived: Annotated[
        bool | None, typer.Option("--archived/--not-archived", help="Only these. Else both.", show_default=False)
    ] = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """List sessions, those with the newest message first.

    Examples:
      laneway sessions list
      laneway sessions list --not-archived
      laneway sessions list --limit 0 --json | jq -r .session_key
    """
    found, has_more = run_async(_list(limit, archived, address))
    if json:
        for session in found:
            print(json_line(session, all_fields=True))
    elif found:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        console.print(_table(found, datetime.now(UTC)))
    else:
        print("no sessions yet: `laneway agent MESSAGE --session KEY` begins one", file=sys.stderr)
    if has_more:
        print(f"laneway: these are the newest {limit}; --limit N shows more, --limit 0 all", file=sys.stderr)


async def _list(limit: int, archived: bool | None, address: str | None) -> tuple[list[session_pb2.Session], bool]:
    """The newest ones, and whether there are more."""
    found: list[session_pb2.Session] = []
    async with Connection(address, os.environ) as connection:
        async for session in connection.client.sessions.list(archived=archived):
            if limit and len(found) == limit:
                return found, True
            found.append(session)
    return found, False


def _table(found: list[session_pb2.Session], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("session", overflow="fold")
    table.add_column("last message", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("tokens", no_wrap=True, justify="right")
    if any(session.label for session in found):
        table.add_column("label", overflow="ellipsis", no_wrap=True)
    for session in found:
        last = ago_text(session.last_interaction_at, now) if session.HasField("last_interaction_at") else ""
        row = [Text(safe(session.session_key)), Text(last, style="dim"), _state(session)]
        table.add_row(*row, Text(f"{session.usage.total_tokens:,}"), Text(safe(session.label)))
    return table


def _state(session: session_pb2.Session) -> Text:
    words = ["running"] if session.active_run_id else []
    if session.queued_runs:
        words.append(f"{session.queued_runs} queued")
    if words:
        return Text(", ".join(words), style="cyan")
    if session.archived:
        return Text("archived", style="dim")
    if not session.last_run_id:
        return Text("-", style="dim")
    return Text(state_text(session.last_state), style=state_style(session.last_state))


def reset(
    key: KeyArgument,
    yes: YesOption = False,
    force: ForceOption = False,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Begin a fresh conversation under the same key.

    The model no longer sees what came before; nothing is removed.

    Examples:
      laneway sessions reset demo
      laneway sessions reset demo --yes --force
    """
    answer = run_async(_change(key, "Reset", address, is_sure=yes, force=force))
    _print_change(answer, f"{safe(key)} begins anew", json=json)


def delete(
    key: KeyArgument,
    yes: YesOption = False,
    force: ForceOption = False,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Remove a session with everything that was said in it.

    There is no way back, but `laneway sessions export` before.

    Examples:
      laneway sessions delete demo
      laneway sessions delete demo --yes --force
    """
    answer = run_async(_change(key, "Delete", address, is_sure=yes, force=force))
    _print_change(answer, f"{safe(key)} deleted", json=json)


Changed = session_pb2.ResetSessionResponse | session_pb2.DeleteSessionResponse


async def _change(key: str, act: str, address: str | None, *, is_sure: bool, force: bool) -> Changed:
    async with Connection(address, os.environ) as connection:
        calls = connection.client.sessions
        session = await calls.get(key)
        unended = session.queued_runs + bool(session.active_run_id)
        # Without force the server refuses a session at work: then there is nothing to ask.
        if not is_sure and sys.stdin.isatty() and (force or not unended):
            _confirm(act, session, unended)
        if act == "Reset":
            return await calls.reset(key, force=force)
        return await calls.delete(key, force=force)


def _confirm(act: str, session: session_pb2.Session, unended: int) -> None:
    """Ask the person at the terminal. Raises CliError for a no."""
    aborts = f" and abort {unended} run{'s' if unended > 1 else ''}" if unended else ""
    if not typer.confirm(f"{act} {safe(session.session_key)}{aborts}?", err=True):
        raise CliError("nothing was changed", ExitCode.NOT_FINISHED)


def _print_change(answer: Changed, text: str, *, json: bool) -> None:
    if json:
        print(json_line(answer, all_fields=True))
        return
    for run_id in answer.aborted_run_ids:
        print(f"{run_id} aborted")
    print(text)


for _name, _command in (
    ("list", list_),
    ("show", show),
    ("set", set_),
    ("fork", fork),
    ("export", export),
    ("import", import_),
    ("reset", reset),
    ("delete", delete),
):
    sessions.command(name=_name, help=help_of(_command))(_command)
