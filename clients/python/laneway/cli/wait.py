"""`laneway wait`: block until a run has ended and print its result."""

import asyncio
import os
import sys
from functools import partial
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration

from laneway.cli.connection import Connection
from laneway.cli.exits import ExitCode, exit_code_of
from laneway.cli.follow import Persistence
from laneway.cli.options import AddressOption, JsonOption, read_duration, run_async
from laneway.cli.text import error_text, json_line, safe, state_text, usage_text
from laneway.v1 import agent_pb2

_ONE_WAIT_S = 3600
"""The longest wait the server serves at once."""
_DRAINING_PAUSE_S = 1.0


def wait(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID")],
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long to wait: 90, 10m, 2h; else until it ends.")
    ] = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Wait until a run has ended and print its answer; the exit code says how it ended.

    Examples: laneway wait run_0198... --timeout 10m

    laneway wait run_0198... --timeout 0 --json
    """
    answer = run_async(_wait(run_id, read_duration(timeout), address))
    has_ended = answer.HasField("ended_at")
    if json:
        print(json_line(answer, all_fields=True))
    else:
        _print_answer(answer, has_ended=has_ended)
    raise typer.Exit(int(exit_code_of(answer.state) if has_ended else ExitCode.NOT_FINISHED))


async def _wait(run_id: str, patience: Duration | None, address: str | None) -> agent_pb2.WaitResponse:
    """The result; one without an end only when `patience` is over."""
    now = asyncio.get_running_loop().time
    end = None if patience is None else now() + patience.seconds + patience.nanos / 1e9
    async with Connection(address, os.environ) as connection:
        persistence = Persistence(connection, notice=lambda text: print(f"laneway: {text}", file=sys.stderr))
        while True:
            rest_s = float(_ONE_WAIT_S) if end is None else min(max(0.0, end - now()), _ONE_WAIT_S)
            request = agent_pb2.WaitRequest(run_id=run_id)
            request.timeout.FromNanoseconds(int(rest_s * 1e9))
            answer = await persistence.call(partial(_wait_once, connection, request))
            if answer.HasField("ended_at") or (end is not None and now() >= end):
                return answer
            if answer.timeout_kind == agent_pb2.TIMEOUT_KIND_DRAINING:
                await asyncio.sleep(_DRAINING_PAUSE_S)


async def _wait_once(connection: Connection, request: agent_pb2.WaitRequest) -> agent_pb2.WaitResponse:
    answer: agent_pb2.WaitResponse = await connection.agent.Wait(request)
    return answer


def _print_answer(answer: agent_pb2.WaitResponse, *, has_ended: bool) -> None:
    for payload in answer.payloads:
        if payload.text and not payload.is_error:
            print(safe(payload.text))
    words = [f"{answer.run_id} {state_text(answer.state)}" + ("" if has_ended else ", not ended")]
    if answer.HasField("usage"):
        words.append(usage_text(answer.usage))
    print(" | ".join(words), file=sys.stderr)
    if answer.HasField("error"):
        print(error_text(answer.error), file=sys.stderr)
