"""Kills a server again and again under load, and proves afterwards that nothing was lost, doubled or shown wrongly.

Clients keep eight sessions busy with runs that call tools; observers stay attached over all kills. Each life of the
server ends by SIGKILL: after a number of observed events, or by its own hand at a chosen COMMIT. Each restart is on the
home as it is, or on the image of what was synced, as after a power cut.

A run that is killed three times without getting on is given up, and rightly so. Hence every third life lasts until all
interrupted runs have got on: with it, no run may end RECOVERY_EXHAUSTED.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import grpc
from tests.fakes.server_process import ServerExited, ServerProcess
from tests.fakes.service import toml_for
from tests.processes.failpoints import KILL_KINDS, Failpoint
from tests.processes.kill_model import KillModel, Script
from tests.processes.ledger_tools import read_ledger
from tests.processes.observers import Observer, Sightings, is_terminal
from tests.processes.oracle import Oracle
from tests.processes.server_entry import Extras

from laneway.v1 import agent_pb2, event_pb2, run_pb2, session_pb2

Answer = TypeVar("Answer")

SESSIONS = 8
FEW_EVENTS, MANY_EVENTS = 5, 90
"""A life without failpoint ends after so many observed events."""
FAILPOINT_LIMIT_EVENTS = 150
"""A failpoint that is not reached by then gives way to a kill from outside."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One life of the server."""

    failpoint: Failpoint | None
    limit_events: int
    is_patient: bool
    """It is not ended from outside before all interrupted runs have got on."""
    is_power_cut: bool
    delta_interval_ms: int


@dataclass(frozen=True, slots=True)
class Life:
    """How one went."""

    number: int
    plan: Plan
    ended_by: str
    events: int
    seconds: float


@dataclass
class Report:
    """What came out."""

    seed: int
    kills: int = 0
    power_cuts: int = 0
    runs: int = 0
    events: int = 0
    effects: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    most_attempts: int = 0
    exit_code: int = 0
    seconds: float = 0.0
    lives: list[Life] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def plans(seed: int, kills: int, synced_share: float) -> list[Plan]:
    """`kills` lives; of three one ends at a failpoint (all come before any comes again), one at any time, one late."""
    chance = random.Random(seed)
    places: list[tuple[str, str]] = []
    cuts = [number < round(kills * synced_share) for number in range(kills)]
    chance.shuffle(cuts)
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
    return lives


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


class KillEngine:
    """One soak. `run` once."""

    def __init__(self, folder: Path, library: Path, *, seed: int, is_synced: bool = True) -> None:
        """Without `is_synced` the store does not sync, and a power cut must be noticed."""
        self._seed = seed
        self._is_synced = is_synced
        self._sightings = Sightings()
        self._model = KillModel(seed)
        self._folder = folder
        self._library = library
        self._runs: dict[str, tuple[str, agent_pb2.AgentRequest]] = {}
        self._answered: dict[str, int] = {}
        """Aborted runs -> lines in the ledger when the abort was answered."""
        self._stalled = Stalled()
        self._is_over = asyncio.Event()
        self._report = Report(seed)

    async def run(self, lives: list[Plan]) -> Report:
        """Live all `lives`, let everything end, check; violations are in the report."""
        began = time.monotonic()
        async with self._model:
            extras = Extras(ledger=str(self._folder / "ledger"), is_synced=self._is_synced)
            self._server = ServerProcess(self._folder, synced_library=self._library, extras=extras)
            self._oracle = Oracle(self._server, self._model, self._sightings)
            try:
                await self._live(lives)
                await self._check()
                self._server.terminate()
                self._report.exit_code = await self._server.exited()
            finally:
                await self._server.close()
        self._report.seconds = time.monotonic() - began
        return self._report

    async def _live(self, lives: list[Plan]) -> None:
        channels = [self._server.new_channel() for _ in range(2)]
        cursor = await self._first_cursor()
        async with asyncio.TaskGroup() as group:
            everything = Observer("observer of all", self._sightings, channels[0], cursor=cursor)
            observers = [group.create_task(everything.follow())]
            for number in range(SESSIONS):
                key = f"agent:main:s{number}"
                observer = Observer(
                    f"observer of s{number}", self._sightings, channels[1], session_key=key, cursor=cursor
                )
                observers.append(group.create_task(observer.follow()))
            clients = [group.create_task(self._client(group, f"s{number}")) for number in range(SESSIONS)]
            for number, plan in enumerate(lives):
                self._prepare(plan)
                # Not waiting for SERVING: a failpoint may be reached before. The clients wait.
                await self._server.launch()
                await self._one_life(number, plan)
                if plan.is_power_cut:
                    self._server.lose_power()
            self._prepare(None)
            await self._server.start()
            self._is_over.set()
            await asyncio.gather(*clients)
            for task in observers:
                task.cancel()
        for channel in channels:
            await channel.close()

    async def _first_cursor(self) -> str:
        """A place in the log before everything that counts: the end of a run that does not."""
        self._prepare(None)
        await self._server.start()
        self._model.scripts["warm up"] = Script(rounds=0)
        run_id = (await self._server.accept("warm up")).run_id
        events = await self._server.events(run_id)
        await self._server.kill()
        return events[-1].cursor

    def _prepare(self, plan: Plan | None) -> None:
        """What the next start gets."""
        self._model.generation += 1
        assert self._server.extras is not None
        self._server.extras = replace(self._server.extras, failpoint=plan.failpoint if plan else None)
        interval_ms = plan.delta_interval_ms if plan else 25
        self._server.toml = toml_for(self._model, f"[events]\ndelta_interval_ms = {interval_ms}\n")

    async def _one_life(self, number: int, plan: Plan) -> None:
        began, first = time.monotonic(), self._sightings.count
        enough = asyncio.Event()

        def count(event: event_pb2.Event) -> None:
            self._stalled.see(event)
            is_long = self._sightings.count - first >= plan.limit_events
            if is_long and not (plan.is_patient and self._stalled):
                enough.set()

        self._sightings.on_event = count
        exited = asyncio.ensure_future(self._server.exited())
        waiting = asyncio.ensure_future(enough.wait())
        await asyncio.wait({exited, waiting}, return_when=asyncio.FIRST_COMPLETED)
        ended_by = "failpoint" if exited.done() else "signal"
        await self._server.kill()
        exit_code = await exited
        if exit_code != -signal.SIGKILL:
            raise ServerExited(exit_code, self._server.log)
        waiting.cancel()
        self._stalled.killed()
        self._report.kills += 1
        self._report.power_cuts += plan.is_power_cut
        life = Life(number, plan, ended_by, self._sightings.count - first, time.monotonic() - began)
        self._report.lives.append(life)

    # --- clients -----------------------------------------------------------------------------------------------------

    async def _client(self, group: asyncio.TaskGroup, session: str) -> None:
        """Sends messages to one session, one to three at a time, and waits for their ends."""
        chance = random.Random(f"{self._seed} {session}")
        number = 0
        while not self._is_over.is_set():
            burst = []
            for _ in range(chance.randint(1, 3)):
                message = f"{session} {number}"
                number += 1
                self._model.scripts[message] = Script(
                    rounds=chance.randint(0, 2),
                    calls=chance.randint(1, 3),
                    tool=chance.choice(("ledger", "ledger", "again")),
                    pieces=chance.randint(1, 12),
                    pace_s=chance.choice((0.0, 0.002)),
                )
                burst.append(await self._accept(session, message))
            observers = [
                group.create_task(
                    Observer(f"observer of {run_id}", self._sightings, self._server.channel, run_id=run_id).follow()
                )
                for run_id in burst
            ]
            if chance.random() < 0.15:
                await self._abort(burst[-1])
            for run_id in burst:
                await self._end_of(run_id)
            await asyncio.gather(*observers)

    async def _accept(self, session: str, message: str) -> str:
        request = agent_pb2.AgentRequest(
            message=message,
            session_key=session,
            model="mock/any",
            idempotency_key=f"key {message}",
            tools_allow=["ledger", "again"],
        )
        answer: run_pb2.AgentResponse = await _repeated(lambda: self._server.agent.Agent(request, wait_for_ready=True))
        self._runs[answer.run_id] = (message, request)
        return answer.run_id

    async def _abort(self, run_id: str) -> None:
        request = agent_pb2.AbortRequest(run_id=run_id)
        receipt = await _repeated(lambda: self._server.agent.Abort(request, wait_for_ready=True))
        if not receipt.pending_run_ids:
            self._answered[run_id] = self._lines_of(run_id)

    async def _end_of(self, run_id: str) -> None:
        request = agent_pb2.WaitRequest(run_id=run_id)
        request.timeout.FromSeconds(600)
        while True:
            answer = await _repeated(lambda: self._server.agent.Wait(request, wait_for_ready=True))
            if answer.state not in (run_pb2.RUN_STATE_QUEUED, run_pb2.RUN_STATE_RUNNING):
                return

    def _lines_of(self, run_id: str) -> int:
        return sum(line.run_id == run_id and line.what == "effect" for line in read_ledger(self._server.ledger))

    # --- afterwards --------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        states: Counter[str] = Counter()
        for run_id, (message, request) in self._runs.items():
            late = Observer(f"late observer of {run_id}", self._sightings, self._server.channel, run_id=run_id)
            await late.follow()
            waited = await self._oracle.check_run(run_id, message)
            states[run_pb2.RunState.Name(waited.state)] += 1
            again = await self._server.agent.Agent(request)
            if again.run_id != run_id or not again.duplicate:
                self._oracle.violations.append(f"{run_id}: its key now answers {again}")
            run = await self._server.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
            self._report.most_attempts = max(self._report.most_attempts, run.attempt)
        for run_id, lines in self._answered.items():
            if self._lines_of(run_id) != lines:
                self._oracle.violations.append(f"{run_id} had effects after its abort was answered")
        entries = [entry async for entry in self._entries()]
        report = self._report
        report.outcomes = dict(self._oracle.check_ledger(entries, self._server.ledger))
        strangers = self._sightings.events.keys() - self._runs.keys()
        self._oracle.violations.extend(f"{run_id} was never acknowledged" for run_id in strangers)
        report.states, report.runs, report.events = dict(states), len(self._runs), self._sightings.count
        report.effects = sum(line.what == "effect" for line in read_ledger(self._server.ledger))
        report.violations = [*self._sightings.violations, *self._oracle.violations]

    async def _entries(self) -> AsyncIterator[session_pb2.Entry]:
        for number in range(SESSIONS):
            request = session_pb2.ListEntriesRequest(session_key=f"agent:main:s{number}", page_size=500)
            while True:
                page = await self._server.sessions.ListEntries(request)
                for entry in page.entries:
                    yield entry
                if not page.next_page_token:
                    break
                request.page_token = page.next_page_token


async def _repeated(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of a call that is made again as long as the server dies under it."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
