"""Kills a server again and again under load, and proves afterwards that nothing was lost, doubled or shown wrongly.

Clients keep eight sessions busy with messages in all four queue modes, whose runs call tools; observers stay attached
over all lives. Each life of the server ends by SIGKILL - after a number of observed events, or by its own hand at a
chosen COMMIT - or, some of them, by a drain. Each restart is on the home as it is, or on the image of what was synced,
as after a power cut.

A run that is killed three times without getting on is given up, and rightly so. Hence every third life lasts until all
interrupted runs have got on: with it, no run may end RECOVERY_EXHAUSTED.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fakes.server_process import ServerExited, ServerProcess
from tests.fakes.service import toml_for
from tests.processes.kill_model import KillModel, Script
from tests.processes.ledger_tools import read_ledger
from tests.processes.observers import Observer, Sightings
from tests.processes.oracle import Oracle
from tests.processes.server_entry import Extras
from tests.soak.kills.clients import Clients
from tests.soak.kills.plans import Life, Plan, Stalled
from tests.soak.restarts import Restarts

from laneway.v1 import admin_pb2, agent_pb2, event_pb2, run_pb2, session_pb2

SESSIONS = 8
DRAIN_TIMEOUT_S = 2.0
DRAINED_S = 30.0
"""A server that was told to leave and is still there then hangs."""


@dataclass
class Report:
    """What came out."""

    seed: int
    kills: int = 0
    power_cuts: int = 0
    """Of the kills: restarts on the synced image."""
    drains: dict[str, int] = field(default_factory=dict)
    aborts: dict[str, int] = field(default_factory=dict)
    dispositions: dict[str, int] = field(default_factory=dict)
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


class KillEngine:
    """One soak. `run` once."""

    def __init__(
        self, folder: Path, library: Path, *, seed: int, is_synced: bool = True, sessions: int = SESSIONS
    ) -> None:
        """Without `is_synced` the store does not sync, and a power cut must be noticed."""
        self._seed = seed
        self._is_synced = is_synced
        self._sessions = [f"s{number}" for number in range(sessions)]
        self._sightings = Sightings()
        self._model = KillModel(seed)
        self._folder = folder
        self._library = library
        self._restarts = Restarts()
        self._chance = random.Random(f"{seed} drains")
        self._stalled = Stalled()
        self._report = Report(seed)

    async def run(self, lives: list[Plan]) -> Report:
        """Live all `lives`, let everything end, check; violations are in the report."""
        began = time.monotonic()
        async with self._model:
            extras = Extras(ledger=str(self._folder / "ledger"), is_synced=self._is_synced)
            self._server = ServerProcess(self._folder, synced_library=self._library, extras=extras)
            self._oracle = Oracle(self._server, self._model, self._sightings)
            self._clients = Clients(self._server, self._model, self._sightings, self._restarts, seed=self._seed)
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
            for session in self._sessions:
                key = f"agent:main:{session}"
                name = f"observer of {session}"
                observer = Observer(name, self._sightings, channels[1], session_key=key, cursor=cursor)
                observers.append(group.create_task(observer.follow()))
            clients = [group.create_task(self._clients.keep_busy(group, session)) for session in self._sessions]
            for number, plan in enumerate(lives):
                self._prepare(plan)
                # Not waiting for SERVING: a failpoint may be reached before. The clients wait.
                await self._server.launch()
                self._restarts.began()
                await self._one_life(number, plan)
                if plan.is_power_cut:
                    self._server.lose_power()
            self._prepare(None)
            await self._server.start()
            self._restarts.began()
            self._clients.finish()
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
        interval_ms, park_s = (plan.delta_interval_ms, plan.park_s) if plan else (25, 0.0)
        self._server.toml = toml_for(
            self._model,
            f"[events]\ndelta_interval_ms = {interval_ms}\n[drain]\ntimeout_s = {DRAIN_TIMEOUT_S}\npark_s = {park_s}\n",
        )

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
        waiting.cancel()
        if plan.drain and not exited.done():
            ended_by = plan.drain
            await self._drain(plan, exited)
        else:
            ended_by = "failpoint" if exited.done() else "kill"
            await self._kill(plan, exited)
        life = Life(number, plan, ended_by, self._sightings.count - first, time.monotonic() - began)
        self._report.lives.append(life)

    async def _kill(self, plan: Plan, exited: "asyncio.Future[int]") -> None:
        await self._server.kill()
        exit_code = await exited
        if exit_code != -signal.SIGKILL:
            raise ServerExited(exit_code, self._server.log)
        self._stalled.killed()
        self._report.kills += 1
        self._report.power_cuts += plan.is_power_cut

    async def _drain(self, plan: Plan, exited: "asyncio.Future[int]") -> None:
        """Runs that are parked or cut are not charged: they do not count as interrupted."""
        if plan.drain == "call":
            await self._server.admin.Drain(admin_pb2.DrainRequest(), wait_for_ready=True)
        else:
            self._server.terminate()
            if plan.drain == "signal twice":
                self._server.terminate()
        self._report.drains[plan.drain] = self._report.drains.get(plan.drain, 0) + 1
        done, _ = await asyncio.wait({exited}, timeout=DRAINED_S)
        if not done:
            self._oracle.violations.append(f"a drain ({plan.drain}) did not end within {DRAINED_S} s")
            await self._server.kill()
            self._stalled.killed()
        elif exited.result() != 0:
            self._oracle.violations.append(f"a drained server ({plan.drain}) left with {exited.result()}")

    # --- afterwards --------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        states: Counter[str] = Counter()
        ends: dict[str, run_pb2.RunState] = {}
        for run_id, (message, request) in self._clients.accepted.items():
            late = Observer(f"late observer of {run_id}", self._sightings, self._server.channel, run_id=run_id)
            await late.follow()
            waited = await self._oracle.check_run(run_id, message)
            states[run_pb2.RunState.Name(waited.state)] += 1
            ends[message] = waited.state
            again = await self._server.agent.Agent(request)
            if again.run_id != run_id or not again.duplicate:
                self._oracle.violations.append(f"{run_id}: its key now answers {again}")
            run = await self._server.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id))
            self._report.most_attempts = max(self._report.most_attempts, run.attempt)
        for run_id, lines in self._clients.answered.items():
            if self._clients.lines_of(run_id) != lines:
                self._oracle.violations.append(f"{run_id} had effects after its abort was answered")
        entries = [entry async for entry in self._entries()]
        self._oracle.check_said(entries, ends)
        report = self._report
        report.dispositions = dict(self._clients.dispositions)
        report.outcomes = dict(self._oracle.check_ledger(entries, self._server.ledger))
        strangers = self._sightings.events.keys() - self._clients.accepted.keys()
        self._oracle.violations.extend(f"{run_id} was never acknowledged" for run_id in strangers)
        report.states, report.runs, report.events = dict(states), len(self._clients.accepted), self._sightings.count
        report.effects = sum(line.what == "effect" for line in read_ledger(self._server.ledger))
        report.aborts = dict(self._clients.aborts)
        report.violations = [*self._sightings.violations, *self._oracle.violations]

    async def _entries(self) -> AsyncIterator[session_pb2.Entry]:
        for session in self._sessions:
            request = session_pb2.ListEntriesRequest(session_key=f"agent:main:{session}", page_size=500)
            while True:
                page = await self._server.sessions.ListEntries(request)
                for entry in page.entries:
                    yield entry
                if not page.next_page_token:
                    break
                request.page_token = page.next_page_token
