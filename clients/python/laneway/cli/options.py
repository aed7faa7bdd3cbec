"""What several commands have in common: options, how their text is read, and how a command runs."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer
from google.protobuf.duration_pb2 import Duration

from laneway.cli.exits import CliError, ExitCode, call_failed
from laneway.cli.text import parse_duration
from laneway.errors import LanewayError

Result = TypeVar("Result")

PIPE_WIDTH = 10_000
"""Without a terminal nothing is shortened to a width."""


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine to its end; Ctrl-C and failed calls end the command with an exit code of ours."""
    try:
        return asyncio.run(work)
    except LanewayError as error:
        raise call_failed(error) from error
    except KeyboardInterrupt:
        raise CliError("interrupted", ExitCode.NOT_FINISHED) from None


def read_duration(text: str | None) -> Duration | None:
    """The value of a duration option. Raises typer.BadParameter."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no duration: write 90, 1.5s, 10m, 2h or 1d") from None


AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="The server: HOST:PORT or unix:PATH. Else LANEWAY_ADDRESS, the socket in home, 127.0.0.1:50551.",
    ),
]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The session: demo, or whole: agent:main:demo.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Abort what runs or waits in the session first.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
