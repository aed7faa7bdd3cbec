"""The load driver as a process of its own: a job comes as a JSON line on stdin, its result leaves as one on stdout."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from tests.benchmarks.driver import closed_loop, idle_calls, model_ceiling, readers

JOBS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "accept": idle_calls.accept,
    "ceiling": model_ceiling.ceiling,
    "direct": idle_calls.direct,
    "echo": idle_calls.echo,
    "first_delta": idle_calls.first_delta,
    "fsync": idle_calls.fsync,
    "long_run": readers.long_run,
    "replay": readers.replay,
    "runs": closed_loop.runs,
    "slow_reader": readers.slow_reader,
    "stream": readers.stream,
    "turns": closed_loop.turns,
    "watched_runs": readers.watched_runs,
}


async def _work() -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        job = json.loads(line)
        result = await JOBS[job["name"]](**job["fields"])
        print(json.dumps(result), flush=True)


def main() -> None:
    """Work until stdin ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work())


if __name__ == "__main__":
    main()
