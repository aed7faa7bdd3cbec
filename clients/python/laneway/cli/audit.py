"""`laneway audit`: what was done in a service, and never what was said."""

import os
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.table import Table
from rich.text import Text

from laneway.cli.connection import Connection
from laneway.cli.moments import moment_text
from laneway.cli.options import PIPE_WIDTH, AddressOption, JsonOption, run_async
from laneway.cli.text import json_line, parse_duration, safe
from laneway.v1 import admin_pb2

_STYLES = {
    admin_pb2.AUDIT_STATUS_SUCCEEDED: "green",
    admin_pb2.AUDIT_STATUS_FAILED: "red",
    admin_pb2.AUDIT_STATUS_BLOCKED: "red",
    admin_pb2.AUDIT_STATUS_TIMED_OUT: "red",
    admin_pb2.AUDIT_STATUS_UNKNOWN: "red",
    admin_pb2.AUDIT_STATUS_CANCELLED: "yellow",
}


def _words(enum: Any, prefix: str) -> Any:
    """The values of an enum as people write them: `timed_out`."""
    make: Any = StrEnum
    names = [key.removeprefix(prefix) for key in enum.keys()[1:]]
    return make(prefix, [(name, name.lower()) for name in names])


_Kind: Any = _words(admin_pb2.AuditKind, "AUDIT_KIND_")
_Status: Any = _words(admin_pb2.AuditStatus, "AUDIT_STATUS_")
_Direction: Any = _words(admin_pb2.AuditDirection, "AUDIT_DIRECTION_")
_MOMENT = "A time (2026-07-01T08:00, in the zone of this machine, or with one), or how long ago: 30m, 2h, 7d."


def audit(
    *,
    session: Annotated[str, typer.Option(metavar="KEY", help="Only of this session.")] = "",
    run: Annotated[str, typer.Option(metavar="RUN_ID", help="Only of this run.")] = "",
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Only of this agent.")] = "",
    kind: Annotated[_Kind | None, typer.Option(help="Only runs, tools or messages.")] = None,
    status: Annotated[_Status | None, typer.Option(help="Only what went so.")] = None,
    direction: Annotated[_Direction | None, typer.Option(help="Only messages that went so.")] = None,
    channel: Annotated[str, typer.Option(metavar="CHANNEL", help="Only messages of this channel.")] = "",
    after: Annotated[str | None, typer.Option(metavar="TIME", help=f"From then on. {_MOMENT}")] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Until then.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="How many at most; 0 = all.")] = 50,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Show which runs and tools went on, the newest first.

    The ledger has no texts: no prompts, answers, arguments or results. It is written behind the runs, so after a crash
    some of it may be missing.

    Examples:
      laneway audit
      laneway audit --status failed --after 1d
      laneway audit --run RUN_ID --limit 0 --json
    """
    now = datetime.now(UTC)
    filters = admin_pb2.ListAuditRecordsRequest(
        agent_id=agent,
        session_key=session,
        run_id=run,
        channel=channel,
        kind=f"AUDIT_KIND_{kind.name}" if kind is not None else None,
        status=f"AUDIT_STATUS_{status.name}" if status is not None else None,
        direction=f"AUDIT_DIRECTION_{direction.name}" if direction is not None else None,
        after=_moment(after, "--after", now),
        before=_moment(before, "--before", now),
        page_size=min(limit, 500) or 500,
    )
    found, has_more = run_async(_list(filters, limit, address))
    if json:
        for record in found:
            print(json_line(record, all_fields=True))
    elif found:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        console.print(_table(found))
    else:
        typer.echo("no records", err=True)
    if has_more:
        typer.echo(f"laneway: these are the newest {limit}; --limit N shows more, --limit 0 all", err=True)


async def _list(
    filters: admin_pb2.ListAuditRecordsRequest, limit: int, address: str | None
) -> tuple[list[admin_pb2.AuditRecord], bool]:
    """The newest ones, and whether there are more."""
    found: list[admin_pb2.AuditRecord] = []
    async with Connection(address, os.environ) as connection:
        async for record in connection.client.list_audit_records(filters):
            if limit and len(found) == limit:
                return found, True
            found.append(record)
    return found, False


def _moment(text: str | None, option: str, now: datetime) -> Timestamp | None:
    """The value of an option. Raises typer.BadParameter."""
    if text is None:
        return None
    stamp = Timestamp()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = now - timedelta(seconds=parse_duration(text).ToTimedelta().total_seconds())
        except (ValueError, OverflowError):
            raise typer.BadParameter(f"{text!r} is no time", param_hint=option) from None
    try:
        stamp.FromDatetime(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no time", param_hint=option) from None
    return stamp


def _table(found: list[admin_pb2.AuditRecord]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("time", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("by", no_wrap=True)
    table.add_column("where", overflow="fold")
    for record in found:
        status = admin_pb2.AuditStatus.Name(record.status).removeprefix("AUDIT_STATUS_").lower().replace("_", " ")
        status = f"{status} {record.code}" if record.code else status
        actor = admin_pb2.AuditActor.Name(record.actor).removeprefix("AUDIT_ACTOR_").lower()
        table.add_row(
            Text(moment_text(record.time), style="dim"),
            Text(_what(record)),
            Text(safe(status), style=_STYLES.get(record.status, "")),
            Text(actor, style="dim"),
            Text(safe(_where(record))),
        )
    return table


def _what(record: admin_pb2.AuditRecord) -> str:
    """`run started`, `exec finished`, `message in, mail`."""
    if record.kind == admin_pb2.AUDIT_KIND_MESSAGE:
        way = "in" if record.direction == admin_pb2.AUDIT_DIRECTION_INBOUND else "out"
        return f"message {way}, {safe(record.channel)}" if record.channel else f"message {way}"
    words = admin_pb2.AuditAction.Name(record.action).removeprefix("AUDIT_ACTION_").lower().split("_")
    return " ".join([safe(record.tool_name) or words[0], *words[1:]])


def _where(record: admin_pb2.AuditRecord) -> str:
    return " ".join(part for part in (record.session_key, record.run_id) if part)
