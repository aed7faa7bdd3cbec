"""The lives of a server that a seed asks for: when each ends, how, and what the next one finds."""

import random
from dataclasses import dataclass

from tests.processes.failpoints import KILL_KINDS, Failpoint
from tests.processes.observers import is_terminal

from laneway.v1 import event_pb2

FEW_EVENTS, MANY_EVENTS = 5, 90
"""A life without failpoint ends after so many observed events."""
FAILPOINT_LIMIT_EVENTS = 150
"""A failpoint that is not reached by then gives way to a kill from outside."""
KILLS_A_DRAIN = 5
DRAINS = ("signal", "call", "signal twice")
"""SIGTERM; AdminService.Drain; SIGTERM and another one, after which what runs is cut."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One life of the server."""

    failpoint: Failpoint | None
    limit_events: int
    is_patient: bool
    """It is not ended from outside before all interrupted runs have got on."""
    is_power_cut: bool
    delta_interval_ms: int
    drain: str = ""
    """How it is told to leave; empty = it is killed."""
    park_s: float = 0.0
    """Of a drain: for so long at its end no run takes another step."""


@dataclass(frozen=True, slots=True)
class Life:
    """How one went."""

    number: int
    plan: Plan
    ended_by: str
    events: int
    seconds: float


def plans(seed: int, kills: int, synced_share: float) -> list[Plan]:
    """`kills` lives that end by a kill: of three one at a failpoint (all come before any comes again), one at any time,
    one late. Behind every fifth of them, and at least once, a life that ends by a drain."""
    chance = random.Random(seed)
    places: list[tuple[str, str]] = []
    cuts = [number < round(kills * synced_share) for number in range(kills)]
    chance.shuffle(cuts)
    ways: list[str] = []
    lives = []
    for number in range(kills):
        failpoint, limit_events = None, chance.randint(FEW_EVENTS, MANY_EVENTS)
        if number % 3 == 1:
            if not places:
                places = [(side, kind) for side in ("before", "after") for kind in KILL_KINDS]
                chance.shuffle(places)
            side, kind = places.pop()
            failpoint, limit_events = Failpoint(side, kind, chance.randint(1, 3)), FAILPOINT_LIMIT_EVENTS
        lives.append(Plan(failpoint, limit_events, number % 3 == 0, cuts[number], chance.choice((0, 25))))
        if number % KILLS_A_DRAIN == min(KILLS_A_DRAIN, kills) - 1:
            ways = ways or chance.sample(DRAINS, len(DRAINS))
            lives.append(_drained(ways.pop(), chance, is_power_cut=chance.random() < synced_share))
    return lives


def _drained(way: str, chance: random.Random, *, is_power_cut: bool) -> Plan:
    limit_events, interval_ms = chance.randint(FEW_EVENTS, MANY_EVENTS), chance.choice((0, 25))
    return Plan(None, limit_events, False, is_power_cut, interval_ms, way, chance.choice((0.2, 2.0)))


class Stalled:
    """The runs that a kill interrupted and that have not got on since, as observers see it."""

    def __init__(self) -> None:
        self._at_work: set[str] = set()
        self._interrupted: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._interrupted)

    def killed(self) -> None:
        """What was at work is interrupted."""
        self._interrupted = set(self._at_work)

    def see(self, event: event_pb2.Event) -> None:
        """An event that nobody has seen before."""
        kind = event.WhichOneof("payload")
        if is_terminal(event):
            self._at_work.discard(event.run_id)
            self._interrupted.discard(event.run_id)
        elif kind == "lifecycle":
            self._at_work.add(event.run_id)
            if event.lifecycle.phase == event_pb2.LIFECYCLE_PHASE_RECOVERED:
                self._interrupted.add(event.run_id)
        elif kind == "tool" and event.tool.outcome == event_pb2.TOOL_OUTCOME_OK:
            self._interrupted.discard(event.run_id)
