"""The soak `client`: the Python client's promises while its server is killed, drained, stopped and cut off; see
tests/client/faults.py."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.client.faults import FaultEngine
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure


class ClientFaults:
    """Implements Soak. Each unit has a home of its own, over whose faults watchers stay attached."""

    name = "client"
    rounds_are = "faults"
    default_rounds = 300

    def __init__(self, *, unit_rounds: int = 20) -> None:
        self.unit_rounds = unit_rounds

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async def play_unit(unit: Unit) -> UnitResult:
            folder = place.folder / f"unit-{unit.number}"
            folder.mkdir()
            report = await FaultEngine(folder, seed=unit.seed).run(unit.rounds)
            if not report.violations:
                shutil.rmtree(folder)
            return UnitResult(
                rounds=unit.rounds,
                counts={
                    **{f"faults: {fault}": count for fault, count in sorted(report.faults.items())},
                    **{f"cuts: {harm}": count for harm, count in sorted(report.harms.items())},
                    **{f"losses: {reason}": count for reason, count in sorted(report.losses.items())},
                    "runs": report.runs,
                    **{f"runs {name.removeprefix('RUN_STATE_')}": n for name, n in sorted(report.states.items())},
                    "events": report.events,
                    "messages answered as repeated": report.duplicates,
                },
                peaks={"longest call [s]": report.longest_call_s},
                violations=report.violations,
            )

        yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        return []
