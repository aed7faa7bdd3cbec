"""`laneway sessions fork`: a new session that goes on from a place in another one."""

import os
import uuid
from typing import Annotated

import typer

from laneway.cli.connection import Connection
from laneway.cli.options import AddressOption, JsonOption, KeyArgument, run_async
from laneway.cli.text import json_line, safe
from laneway.v1 import session_pb2


def fork(
    key: KeyArgument,
    session: Annotated[
        str | None, typer.Option("--session", metavar="KEY", help="Of the new session. Else one is made.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="ID", help="The last entry to take over. Else the newest.")
    ] = None,
    label: Annotated[str, typer.Option("--label", help="A name for people.")] = "",
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Make a new session that goes on from a place in another one.

    What was said up to there is copied; the other session stays as it is. `laneway sessions show` has the entries' ids.

    Examples:
      laneway sessions fork demo --session what-if
      laneway sessions fork demo --entry ent_019b0c5e7a3c7d10a3a1b7c2d4e5f607
    """
    answer = run_async(_fork(key, session or f"fork:{uuid.uuid4()}", entry or "", label, address))
    if json:
        print(json_line(answer, all_fields=True))
    elif answer.duplicate:
        print(f"{safe(answer.session.session_key)} is there already")
    else:
        entries = f"{answer.entries} entr{'y' if answer.entries == 1 else 'ies'}"
        print(f"{safe(answer.session.session_key)} with {entries} of {safe(answer.session.parent_session_key)}")


async def _fork(
    key: str, new_key: str, entry_id: str, label: str, address: str | None
) -> session_pb2.ForkSessionResponse:
    async with Connection(address, os.environ) as connection:
        return await connection.client.sessions.fork(key, new_session_key=new_key, entry_id=entry_id, label=label)
