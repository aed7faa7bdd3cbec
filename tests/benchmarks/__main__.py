"""Measures the targets P1 to P12 against their floors, what faulty telemetry collectors cost (T1), and what reading a
model's answer costs (D1 to D5), and prints them: `python -m tests.benchmarks [P1 P3 ...]`.

Every target is a ratio of two things measured in turns on the same machine. A missed target is a line that says FAIL;
the exit code is 0 whatever the figures are.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.bench import Bench, Options, ceiling
from tests.benchmarks.figures import Row
from tests.benchmarks.measures import (
    accepting,
    collectors,
    cpu,
    decoding,
    first_delta,
    long_session,
    memory,
    readers,
    start,
    throughput,
)
from tests.benchmarks.profiling import Profiling
from tests.benchmarks.table import as_json, table

MEASURES: dict[str, Callable[[Bench], Awaitable[list[Row]]]] = {
    "P1": accepting.idle,
    "P2": accepting.saturated,
    "P3": first_delta.first_delta,
    "P4": cpu.per_run,
    "P5": throughput.saturated,
    "P6": throughput.paced,
    "P7": cpu.per_tool_round,
    "P8": memory.memory,
    "P9": long_session.long_session,
    "P10": start.start,
    "P11": readers.one_stopped,
    "P12": readers.resume,
    "T1": collectors.faulty_collectors,
    **{name: decoding.of(name) for name in decoding.MEASURES},
}
PROFILES = Path("build") / "profiles"


async def measure(names: list[str], options: Options, profiling: Profiling) -> dict[str, Any]:
    """Measure and print row by row; the result as JSON values."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="lb-") as folder:
        async with Bench(options, Path(folder), profiling).open() as bench:
            can_do = await ceiling(bench)
            print(
                f"mock model: {can_do['answers_per_s']:,.0f} answers of 200 tokens per second,"
                f" {can_do['cpu_ms_per_answer']:.2f} ms CPU each",
                flush=True,
            )
            for name in names:
                profiling.measure = name
                began = time.monotonic()
                found = await MEASURES[name](bench)
                rows += found
                print(f"\n{name}, {time.monotonic() - began:.0f} s\n{table(found)}", flush=True)
    print(f"\n{table(rows)}")
    return {
        "machine": {"cpus": os.cpu_count(), "load": os.getloadavg(), "python": sys.version.split()[0]},
        "repetitions": options.repetitions,
        "is_quick": options.is_quick,
        "model": can_do,
        "rows": [as_json(row) for row in rows],
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="P1", help="which of P1 to P12, T1 and D1 to D5; default: all")
    parser.add_argument("--repetitions", type=int, default=3, help="of floor and product in turns")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--profile", choices=["py-spy", "memray"], help=f"profile the product into {PROFILES}")
    parser.add_argument("--quick", action="store_true", help="just see that it works; the figures mean little")
    parser.add_argument("--sessions", type=int, default=3000, help="finished sessions of P8")
    given = parser.parse_args()
    names = given.measures or list(MEASURES)
    if unknown := [name for name in names if name not in MEASURES]:
        parser.error(f"no such measure: {', '.join(unknown)}")
    options = Options(given.repetitions, given.quick, given.sessions)
    report = asyncio.run(measure(names, options, Profiling(given.profile, PROFILES)))
    if given.json:
        given.json.write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
