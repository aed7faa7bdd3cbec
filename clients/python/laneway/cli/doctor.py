"""`laneway doctor`: what keeps this installation from working, and what to do about it."""

import asyncio
import json as json_text
import os
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from laneway.cli.connection import Connection
from laneway.cli.exits import CliError, ExitCode
from laneway.cli.options import AddressOption, JsonOption, run_async
from laneway.cli.server_parts import ConfigOption, InsecureOption, ListenOption, SetOption, server_package
from laneway.cli.text import safe
from laneway.errors import LanewayError

if TYPE_CHECKING:
    from lanewayd.wiring.checks import Finding, ServerReport

_ANSWER_S = 5.0
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_NAME_WIDTH = 9
_INDENT = " " * (4 + 2 + _NAME_WIDTH + 1)
_PLAIN_WIDTH = 100_000
"""Of lines that nobody looks at: a finding is a line, its advice another one."""


def doctor(
    *,
    address: AddressOption = None,
    config: ConfigOption = None,
    listen: ListenOption = None,
    insecure: InsecureOption = False,
    set_: SetOption = None,
    min_free_mb: Annotated[
        int, typer.Option("--min-free-mb", metavar="MIB", min=0, help="Less free disk space is a failure.")
    ] = 200,
    json: JsonOption = False,
) -> None:
    """Look at settings, home, disk, clock, store, models and the running server, and say what to do.

    Asks the configured model services for their list of models, to see whether they are there and take the key. Changes
    nothing. Exit code 1 if something fails.

    Examples:
      laneway doctor
      laneway doctor --json | jq -r '.findings[] | select(.level == "fail") | .text'
    """
    with server_package():
        from lanewayd.wiring.checks import Flags, Question, StartupError, diagnose
    try:
        flags = Flags.of(listen=listen, is_insecure=insecure, assignments=set_ or ())
    except StartupError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    question = Question(
        environ=os.environ,
        flags=flags,
        config_path=config,
        address=address or os.environ.get("LANEWAY_ADDRESS") or None,
        min_free_bytes=min_free_mb * 2**20,
    )
    with _patience():
        findings = run_async(diagnose(question, _ask_server))
    has_failed = any(finding.level == "fail" for finding in findings)
    if json:
        rows = [_fields(finding) for finding in findings]
        print(json_text.dumps({"ok": not has_failed, "findings": rows}, ensure_ascii=False, separators=(",", ":")))
    else:
        _print_findings(findings)
    raise typer.Exit(int(ExitCode.RUN_FAILED if has_failed else ExitCode.OK))


def _patience() -> AbstractContextManager[Any]:
    """Something that moves on a terminal."""
    console = Console(stderr=True)
    return console.status("looking") if console.is_terminal else nullcontext()


async def _ask_server(address: str) -> "ServerReport":
    """What the server at `address` says of itself; one that says nothing is reported as such."""
    with server_package():
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        from lanewayd.wiring.checks import Lane, ServerReport
    try:
        async with asyncio.timeout(_ANSWER_S), Connection(address, {}) as connection:
            status = await connection.client.status()
            stub: Any = health_pb2_grpc.HealthStub(connection.client.channel)
            health = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_ANSWER_S)
    except TimeoutError:
        return ServerReport(address, problem=f"it does not answer within {_ANSWER_S:g} s")
    except CliError:
        return ServerReport(address, problem="nobody listens there")
    except LanewayError as error:
        return ServerReport(address, problem=f"the call failed: {error.message or error.status.name}")
    return ServerReport(
        address,
        version=status.version,
        is_draining=status.draining,
        is_ready=health.status == health_pb2.HealthCheckResponse.SERVING,
        store_path=status.store.path,
        commit_ms=status.store.commit_ms,
        lanes=[Lane(lane.name, lane.width, lane.active, lane.queued) for lane in status.lanes],
    )


def _fields(finding: "Finding") -> dict[str, str]:
    return {"check": finding.check, "level": finding.level.value, "text": finding.text, "advice": finding.advice}


def _print_findings(findings: Sequence["Finding"]) -> None:
    console = Console(highlight=False)
    width = console.width if console.is_terminal else _PLAIN_WIDTH
    for finding in findings:
        head = Text.assemble(
            (f"{finding.level.value.upper():4}", _STYLES[finding.level.value]),
            f"  {finding.check:{_NAME_WIDTH}} ",
        )
        first, *others = _wrapped(finding.text, width)
        console.print(head + Text(first), soft_wrap=True)
        for line in others:
            console.print(Text(_INDENT + line), soft_wrap=True)
        for number, line in enumerate(_wrapped(finding.advice, width - 3) if finding.advice else ()):
            console.print(Text(f"{_INDENT}{'->' if number == 0 else '  '} {line}", "cyan"), soft_wrap=True)
    counts = {level: sum(finding.level == level for finding in findings) for level in ("fail", "warn")}
    words = [
        f"{counts[level]} {word}{'' if counts[level] == 1 else 's'}"
        for level, word in (("fail", "failure"), ("warn", "warning"))
        if counts[level]
    ]
    console.print(" and ".join(words) or "all is well", soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    line = " ".join(safe(text).split())
    return textwrap.wrap(line, max(40, width - len(_INDENT)), break_on_hyphens=False) or [""]
