"""`python -m tests.soak [SOAK ...]`: long runs under faults, all of them or those that are named; see docs/soak.md.

A table on stdout and `<soak>.json` in the results folder for each; exit code 1 when something was harmed. Stopped, it
goes on with the same results folder: with the same seed, behind the last unit that was done.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import uvloop
from tests.soak.playing import Soak, play
from tests.soak.report import Report, table
from tests.soak.soaks import SOAKS

RESULTS = Path("build") / "soak"
INTERRUPTED = 130


def seed_for(results: Path, asked: int | None) -> int:
    """The seed that the results folder has; in a fresh one the seed asked for, or a new one. Raises ValueError when
    another one is asked for than it has."""
    file = results / "seed.json"
    if not file.exists():
        seed = random.SystemRandom().randrange(10**6) if asked is None else asked
        results.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seed": seed}))
        return seed
    seed = int(json.loads(file.read_text())["seed"])
    if asked not in (None, seed):
        raise ValueError(f"{results} has the seed {seed}; take another folder for the seed {asked}")
    return seed


async def soak(soaks: list[Soak], results: Path, *, seed: int, rounds: int | None) -> list[Report]:
    """One after the other; a table each."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    reports = []
    for one in soaks:
        report = await play(one, results, seed=seed, rounds=rounds, say=lambda line: print(line, flush=True))
        print(f"\n{table(report)}\n", flush=True)
        reports.append(report)
    return reports


def main() -> int:
    """Parse, soak, print."""
    parser = argparse.ArgumentParser(
        prog="tests.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("soaks", nargs="*", metavar="SOAK", help=f"of {', '.join(SOAKS)}; default: all")
    parser.add_argument("--rounds", type=int, help="of the one soak that is named; default: its own, see docs/soak.md")
    parser.add_argument("--seed", type=int, help="default: a random one, or that of the results folder")
    parser.add_argument("--results", type=Path, help=f"folder for state and reports; default: a new one in {RESULTS}")
    given = parser.parse_args()
    names = given.soaks or list(SOAKS)
    if unknown := [name for name in names if name not in SOAKS]:
        parser.error(f"no such soak: {', '.join(unknown)}")
    if given.rounds is not None and (len(names) != 1 or given.rounds < 1):
        parser.error("--rounds is a positive number and needs exactly one soak")
    results = given.results or RESULTS / time.strftime("%Y%m%d-%H%M%S")
    try:
        seed = seed_for(results, given.seed)
    except ValueError as error:
        parser.error(str(error))
    print(f"seed {seed}, results in {results}; to go on after a stop: --results {results}", flush=True)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            reports = runner.run(soak([SOAKS[name]() for name in names], results, seed=seed, rounds=given.rounds))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"stopped; to go on: --results {results}", file=sys.stderr)
        return INTERRUPTED
    return 0 if all(report.has_passed for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
