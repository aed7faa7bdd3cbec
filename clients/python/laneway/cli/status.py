"""`laneway status`: what a server is doing."""

import os
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from laneway.cli.connection import Connection
from laneway.cli.options import AddressOption, JsonOption, run_async
from laneway.cli.text import json_line, safe, seconds_text, size_text
from laneway.v1 import admin_pb2


def status(address: AddressOption = None, json: JsonOption = False) -> None:
    """Show lanes, runs, sessions and the store of a server.

    Examples:
      laneway status
      laneway status --address 127.0.0.1:50551 --json
    """
    answer, used_address = run_async(_status(address))
    if json:
        print(json_line(answer, all_fields=True))
    else:
        _print_status(answer, used_address, Console(highlight=False))


async def _status(address: str | None) -> tuple[admin_pb2.GetStatusResponse, str]:
    async with Connection(address, os.environ) as connection:
        return await connection.client.status(), connection.address


def _print_status(answer: admin_pb2.GetStatusResponse, address: str, console: Console) -> None:
    up_s = (datetime.now(UTC) - answer.started_at.ToDatetime(UTC)).total_seconds()
    state = "leaving" if answer.draining else "serving"
    lines = [
        f"Laneway {answer.version} on {address}, {state}, up {seconds_text(max(0.0, up_s))}",
        f"sessions {answer.sessions}, subscribers {answer.subscribers}",
        f"store {answer.store.path}, {size_text(answer.store.bytes)}, commits take {answer.store.commit_ms:.1f} ms",
    ]
    counts = {
        name.removeprefix("RUN_STATE_").lower().replace("_", " "): count
        for name, count in sorted(answer.runs_by_state.items())
        if count
    }
    lines.append("runs " + (", ".join(f"{count} {name}" for name, count in counts.items()) or "none yet"))
    for line in lines:
        console.print(safe(line), markup=False, soft_wrap=True)
    table = Table("lane", "active", "width", "queued", box=None, pad_edge=False)
    for lane in answer.lanes:
        table.add_row(safe(lane.name), str(lane.active), str(lane.width), str(lane.queued))
    if answer.lanes:
        console.print(table)
