"""`laneway abort`: end a run, or what runs in a session."""

import os
from typing import Annotated

import typer

from laneway.cli.connection import Connection
from laneway.cli.options import AddressOption, JsonOption, run_async
from laneway.cli.text import json_line
from laneway.v1 import agent_pb2


def abort(
    run_id: Annotated[str | None, typer.Argument(metavar="RUN_ID", help="The run.")] = None,
    session: Annotated[str | None, typer.Option(metavar="KEY", help="Abort what runs in this session.")] = None,
    clear_queued: Annotated[
        bool, typer.Option("--clear-queued", help="With --session: cancel its waiting runs too.")
    ] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with the run.")] = "",
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Abort a run, or the running run of a session.

    Answers when the runs have ended, after 5 seconds at most.

    Examples:
      laneway abort run_0198...
      laneway abort --session demo --clear-queued --reason "changed my mind"
    """
    if (run_id is None) == (session is None):
        raise typer.BadParameter("give either RUN_ID or --session KEY")
    if clear_queued and session is None:
        raise typer.BadParameter("--clear-queued goes with --session")
    answer = run_async(_abort(run_id, session, address, clear_queued=clear_queued, reason=reason))
    if json:
        print(json_line(answer, all_fields=True))
        return
    for word, run_ids in (
        ("cancelled while queued", answer.cancelled_run_ids),
        ("aborted", answer.aborted_run_ids),
        ("will end as cancelled, still at work", answer.pending_run_ids),
    ):
        for ended_id in run_ids:
            print(f"{ended_id} {word}")
    if not (answer.cancelled_run_ids or answer.aborted_run_ids or answer.pending_run_ids):
        print("nothing to abort")


async def _abort(
    run_id: str | None, session: str | None, address: str | None, *, clear_queued: bool, reason: str
) -> agent_pb2.AbortResponse:
    async with Connection(address, os.environ) as connection:
        if session is not None:
            return await connection.client.abort_session(session, clear_queued=clear_queued, reason=reason)
        return await connection.client.abort(run_id or "", reason=reason)
