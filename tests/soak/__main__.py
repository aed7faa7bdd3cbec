"""`python -m tests.soak --rounds N --seed S`: kills the server N times under load and checks that nothing was harmed.

A table and JSON on stdout; exit code 1 when something was.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tests.fakes.server_process import compile_synced
from tests.soak.engine import KillEngine, Report, plans


def table(report: Report) -> str:
    """One line per life, then the sums."""
    lines = [f"{'life':>4}  {'ended by':<34} {'restarted on':<12} {'delta':>5} {'events':>6} {'seconds':>7}"]
    for life in report.lives:
        failpoint = life.plan.failpoint
        place = f"{failpoint.side} COMMIT {failpoint.nth} of {failpoint.kind}" if failpoint else "signal"
        ended_by = place if life.ended_by == "failpoint" else "signal"
        disk = "synced image" if life.plan.is_power_cut else "home"
        interval = f"{life.plan.delta_interval_ms} ms"
        lines.append(f"{life.number:>4}  {ended_by:<34} {disk:<12} {interval:>5} {life.events:>6} {life.seconds:>7.2f}")
    lines.append(
        f"\nseed {report.seed}: {report.kills} kills ({report.power_cuts} restarts on the synced image), {report.runs} "
        f"runs {report.states}, most dispatches of one run {report.most_attempts}, {report.events} events, "
        f"{report.effects} effects {report.outcomes}, exit code {report.exit_code}, {report.seconds:.0f} s, "
        f"{len(report.violations)} violations"
    )
    return "\n".join([*lines, *report.violations])


async def soak(rounds: int, seed: int, synced_share: float) -> Report:
    """One soak in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="laneway-soak-") as folder:
        library = compile_synced(Path(folder))
        engine = KillEngine(Path(folder), library, seed=seed)
        return await engine.run(plans(seed, rounds, synced_share))


def main() -> int:
    """Parse, soak, print."""
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--synced-share", type=float, default=0.5, help="restarts on the synced image")
    options = parser.parse_args()
    report = asyncio.run(soak(options.rounds, options.seed, options.synced_share))
    print(table(report))
    print(json.dumps(asdict(report), ensure_ascii=False))
    return 1 if report.violations or report.exit_code else 0


if __name__ == "__main__":
    sys.exit(main())
