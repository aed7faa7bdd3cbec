"""The soak `histories`: generated histories of messages and of lanes, each against its reference model.

No server: the model checkers of tests/store/message_histories.py (the store's transactions, the lanes and the decisions
on queued messages, with crashes), tests/unit/runs/test_lanes_model.py (the lanes alone) and
tests/unit/diagnostics/test_monitor_model.py (the look-out for silent sessions), with far more histories than in
`make test`.
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure
from tests.store.message_histories import MessageHistories
from tests.unit.diagnostics.test_monitor_model import MonitorRules
from tests.unit.runs.test_lanes_model import LaneRules

STEPS = 40
CHECKERS: tuple[type[RuleBasedStateMachine], ...] = (MessageHistories, LaneRules, MonitorRules)


class Histories:
    """Implements Soak. A round is one history of each model checker."""

    name = "histories"
    rounds_are = "histories of messages, and as many of lanes and of the look-out"
    default_rounds = 10_000

    def __init__(self, *, unit_rounds: int = 250) -> None:
        self.unit_rounds = unit_rounds

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async def play_unit(unit: Unit) -> UnitResult:
            return await asyncio.to_thread(_explore, unit)

        yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        return []


def _explore(unit: Unit) -> UnitResult:
    before = Counter(MessageHistories.happened)
    violations = [f"{checker.__name__}: {text}" for checker in CHECKERS for text in _violations(checker, unit)]
    return UnitResult(
        rounds=unit.rounds, counts=dict(Counter(MessageHistories.happened) - before), violations=violations
    )


def _violations(checker: type[RuleBasedStateMachine], unit: Unit) -> list[str]:
    """What the first history that breaks a rule says. The same seed finds it again."""
    rules = settings(
        max_examples=unit.rounds,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seed(unit.seed)(checker), settings=rules)
    except Exception as broken:  # noqa: BLE001 - whatever a history raises is the finding
        return ["".join(traceback.format_exception(broken))]
    return []
