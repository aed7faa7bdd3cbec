"""`laneway wait`: block until a run has ended and print its result."""

import os
import sys
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration

from laneway.cli.connection import Connection
from laneway.cli.exits import ExitCode, exit_code_of
from laneway.cli.options import AddressOption, JsonOption, read_duration, run_async
from laneway.cli.text import error_text, json_line, safe, state_text, usage_text
from laneway.v1 import agent_pb2
from laneway.waits import ENDED_STATES


def wait(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="The run.")],
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long to wait: 90, 10m, 2h; else until it ends.")
    ] = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Wait until a run has ended and print its answer.

    The answer goes to stdout, the outcome to stderr; the exit code says how the run ended.

    Examples:
      laneway wait run_0198... --timeout 10m
      laneway wait run_0198... --timeout 0 --json
    """
    answer = run_async(_wait(run_id, read_duration(timeout), address))
    has_ended = answer.state in ENDED_STATES
    if json:
        print(json_line(answer, all_fields=True))
    else:
        _print_answer(answer, has_ended=has_ended)
    raise typer.Exit(int(exit_code_of(answer.state) if has_ended else ExitCode.NOT_FINISHED))


async def _wait(run_id: str, patience: Duration | None, address: str | None) -> agent_pb2.WaitResponse:
    """The result; one without an end only when `patience` is over."""
    timeout_s = None if patience is None else patience.seconds + patience.nanos / 1e9
    async with Connection(address, os.environ, say=_notice) as connection:
        return await connection.client.wait(run_id, timeout_s=timeout_s)


def _notice(text: str) -> None:
    print(f"laneway: {text}", file=sys.stderr)


def _print_answer(answer: agent_pb2.WaitResponse, *, has_ended: bool) -> None:
    for payload in answer.payloads:
        if payload.text and not payload.is_error:
            print(safe(payload.text), file=sys.stderr if payload.is_reasoning else sys.stdout)
    words = [f"{answer.run_id} {state_text(answer.state)}" + ("" if has_ended else ", not ended")]
    if answer.HasField("usage"):
        words.append(usage_text(answer.usage))
    print(" | ".join(words), file=sys.stderr)
    if answer.HasField("error"):
        print(error_text(answer.error), file=sys.stderr)
