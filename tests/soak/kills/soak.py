"""The soak `kills`: lives of servers that end by kills and drains, under load; see `engine`."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict

from tests.fakes.server_process import compile_synced
from tests.soak.kills.engine import SESSIONS, KillEngine, Report
from tests.soak.kills.plans import plans
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure

SYNCED_SHARE = 0.5


class Kills:
    """Implements Soak. Each unit has a home of its own, over whose kills observers stay attached."""

    name = "kills"
    rounds_are = "kills"
    default_rounds = 500

    def __init__(self, *, unit_rounds: int = 20, sessions: int = SESSIONS) -> None:
        self.unit_rounds = unit_rounds
        self._sessions = sessions

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        library = compile_synced(place.folder)

        async def play_unit(unit: Unit) -> UnitResult:
            folder = place.folder / f"unit-{unit.number}"
            folder.mkdir()
            engine = KillEngine(folder, library, seed=unit.seed, sessions=self._sessions)
            report = await engine.run(plans(unit.seed, unit.rounds, SYNCED_SHARE))
            if not report.violations:
                shutil.rmtree(folder)
            return _result_of(report)

        yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        return []


def _result_of(report: Report) -> UnitResult:
    violations = list(report.violations)
    if report.exit_code:
        violations.append(f"the last server left with {report.exit_code}")
    counts = {
        "restarts on the synced image": report.power_cuts,
        **{f"drains by {way}": count for way, count in sorted(report.drains.items())},
        **dict(sorted(report.aborts.items())),
        **{f"messages {name.lower()}": count for name, count in sorted(report.dispositions.items())},
        "runs": report.runs,
        **{f"runs {name.removeprefix('RUN_STATE_')}": count for name, count in sorted(report.states.items())},
        "events": report.events,
        "effects of tools": report.effects,
        **{f"calls {name.removeprefix('TOOL_OUTCOME_')}": count for name, count in sorted(report.outcomes.items())},
    }
    return UnitResult(
        rounds=report.kills,
        counts=counts,
        peaks={"most dispatches of one run": report.most_attempts},
        details=[asdict(life) for life in report.lives],
        violations=violations,
    )
