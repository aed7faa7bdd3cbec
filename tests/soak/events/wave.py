"""One unit of the soak `events`: sessions at work, subscribers that come and go, a server that is restarted.

Each run is followed by subscribers of its own, of its session and of everything. A run counts as done when all of them
have seen its end; so many runs are under way at most, which bounds what the driver remembers.
"""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass

from tests.soak.events.connections import Connection, Connections
from tests.soak.events.record import SharedRecord
from tests.soak.events.subscriber import Subscriber
from tests.soak.inspected_server import InspectedServer, SoakFailed
from tests.soak.restarts import Restarts

from laneway.v1 import agent_pb2, run_pb2

SCRIPTS = {
    "long": (
        "turns:\n"
        "  - reasoning: ['so ', 'it ', 'goes ']\n"
        "    text: ['lane ', 'café ', '漢字 ', '🙂 ', 'Grüße, ', 'run ', 'seq ', '- ']\n"
        "    repeat: 40\n"
    ),
    "short": "turns:\n  - text: ['a ', 'few ', 'words']\n",
}
"""name -> the model scripted/<name>"""
LONG_SHARE = 0.9
RUNS_A_SESSION = 10
"""Then the conversation begins anew: what a run must read before it starts stays small."""


@dataclass(frozen=True, slots=True)
class WaveSettings:
    """How much goes on at once."""

    sessions: int = 4
    of_all: int = 2
    of_session: int = 2
    of_run: int = 4
    connections: int = 6
    stay_events: int = 500
    """A subscriber leaves after so many events on average."""
    disturb_events: int = 8_000
    """A connection is cut after so many deliveries on average."""
    restarts: int = 1


class Wave:
    """One unit. `play` once."""

    def __init__(self, server: InspectedServer, settings: WaveSettings, *, name: str, seed: int) -> None:
        self._server = server
        self._settings = settings
        self._name = name
        self._chance = random.Random(seed)
        self._restarts = Restarts()
        self._lines = Connections(server.target, settings.connections, seed=seed)
        self.record = SharedRecord()
        self.counts: Counter[str] = Counter()
        self._followers: dict[str, int] = {}
        """Run -> subscribers that have not seen its end."""
        self._all_saw: dict[str, asyncio.Event] = {}
        self._of_all: list[Subscriber] = []
        self._over = asyncio.Event()

    async def play(self, deliveries: int) -> None:
        """Until so many deliveries were made, and all runs have been seen to their ends."""
        cursor = await self._cursor()
        async with self._lines, asyncio.TaskGroup() as group:
            lasting = [
                self._subscriber(f"all {number}", agent_pb2.SubscribeRequest(all=True, cursor=cursor), number)
                for number in range(self._settings.of_all)
            ]
            watching = [group.create_task(subscriber.follow()) for subscriber in lasting]
            at_work = [
                group.create_task(self._keep_busy(group, number, cursor)) for number in range(self._settings.sessions)
            ]
            await self._disturb(deliveries)
            self._over.set()
            await asyncio.gather(*at_work)
            for task in watching:
                task.cancel()
        for subscriber in lasting:
            self._add(subscriber)
        self.counts.update({f"proxy harms: {kind}": count for kind, count in self._lines.harms.items()})
        for run_id in self.record.under_way:
            self.record.say(f"{run_id} was never asked for")

    async def _cursor(self) -> str:
        """A place in the log before everything that counts."""
        run_id = (await self._server.accept("warm up", model="scripted/short")).run_id
        return (await self._server.events(run_id))[-1].cursor

    def _subscriber(
        self, who: str, request: agent_pb2.SubscribeRequest, number: int, connection: Connection | None = None
    ) -> Subscriber:
        lines = self._lines.connections
        return Subscriber(
            who,
            request,
            self.record,
            connection or lines[number % len(lines)],
            chance=random.Random(f"{self._name} {who} {self._chance.random()}"),
            stay_events=self._settings.stay_events,
            on_end=self._saw_end,
        )

    def _saw_end(self, run_id: str) -> None:
        self._followers[run_id] = self._followers.get(run_id, 0) - 1
        if self._followers[run_id] == 0 and run_id in self._all_saw:
            self._all_saw[run_id].set()

    def _add(self, subscriber: Subscriber) -> None:
        self.counts["calls cancelled by their clients"] += subscriber.cancelled
        self.counts["calls lost"] += subscriber.lost

    # --- disturbances ------------------------------------------------------------------------------------------------

    async def _disturb(self, deliveries: int) -> None:
        """Cut and restart while the deliveries go on, until there are enough."""
        restarts = sorted(self._chance.randrange(deliveries) for _ in range(self._settings.restarts))
        while self.record.deliveries < deliveries:
            step = 1 + int(self._chance.expovariate(1 / self._settings.disturb_events))
            goal = min(self.record.deliveries + step, deliveries, *restarts[:1])
            await self._delivered(goal)
            if restarts and self.record.deliveries >= restarts[0]:
                restarts.pop(0)
                await self._restart()
            elif self.record.deliveries < deliveries:
                self.counts[await self._lines.disturb(self._chance)] += 1

    async def _delivered(self, count: int) -> None:
        """Return when so many deliveries were made; SoakFailed when none comes for long."""
        while (before := self.record.deliveries) < count:
            for _ in range(600):
                await asyncio.sleep(0.05)  # asked for now and then: each delivery is too often to be told
                if self.record.deliveries >= count:
                    return
            if self.record.deliveries == before:
                raise SoakFailed(f"no delivery for 30 s, with {self._followers} still to see the ends of their runs")

    async def _restart(self) -> None:
        if self._chance.random() < 0.5:
            await self._server.kill()
            self.counts["server kills"] += 1
        else:
            self._server.terminate()
            if (exit_code := await self._server.exited()) != 0:
                self.record.say(f"the drained server left with {exit_code}")
            self.counts["server drains"] += 1
        await self._server.start()
        self._restarts.began()

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def _keep_busy(self, group: asyncio.TaskGroup, number: int, cursor: str) -> None:
        """Runs in one session after another, each with its subscribers, one after the other."""
        talk = 0
        while not self._over.is_set():
            session = f"agent:main:{self._name}-{number}-{talk}"
            talk += 1
            subscribers = [
                self._subscriber(
                    f"{session} {one}", agent_pb2.SubscribeRequest(session_key=session, cursor=cursor), number + one
                )
                for one in range(self._settings.of_session)
            ]
            watching = [group.create_task(subscriber.follow()) for subscriber in subscribers]
            for turn in range(RUNS_A_SESSION):
                await self._one_run(session, turn, number)
                if self._over.is_set():
                    break
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            for subscriber in subscribers:
                self._add(subscriber)

    async def _one_run(self, session: str, turn: int, number: int) -> None:
        settings = self._settings
        script = "long" if self._chance.random() < LONG_SHARE else "short"
        request = agent_pb2.AgentRequest(
            message=f"turn {turn}",
            session_key=session,
            model=f"scripted/{script}",
            idempotency_key=f"{session} {turn}",
            tools_allow=["read"],
        )
        accepted: run_pb2.AgentResponse = await self._restarts.repeated(
            lambda: self._server.agent.Agent(request, wait_for_ready=True)
        )
        run_id = accepted.run_id
        everybody = settings.of_all + settings.of_session + settings.of_run
        self._followers[run_id] = self._followers.get(run_id, 0) + everybody
        self._all_saw[run_id] = asyncio.Event()
        if not self._followers[run_id]:
            self._all_saw[run_id].set()
        self.record.open(run_id, everybody)
        own = [
            self._subscriber(f"{run_id} {one}", agent_pb2.SubscribeRequest(run_id=run_id, after_seq=0), number + one)
            for one in range(settings.of_run)
        ]
        # The last of them comes when the run is over, and is told all of it from the store.
        await asyncio.gather(*(subscriber.follow() for subscriber in own[:-1]))
        await own[-1].follow()
        await self._all_saw[run_id].wait()
        del self._all_saw[run_id], self._followers[run_id]
        for subscriber in own:
            self._add(subscriber)
        await self._compare(run_id)

    async def _compare(self, run_id: str) -> None:
        """What everybody saw is what is stored."""
        seen = self.record.close(run_id)
        run: run_pb2.Run = await self._restarts.repeated(
            lambda: self._server.agent.GetRun(agent_pb2.GetRunRequest(run_id=run_id), wait_for_ready=True)
        )
        self.counts["runs"] += 1
        if run.last_seq != seen:
            self.record.say(f"{run_id} has {run.last_seq} events, seen were {seen}")
        if run.state != run_pb2.RUN_STATE_SUCCEEDED:
            self.record.say(f"{run_id} ended as {run_pb2.RunState.Name(run.state)}: {run.error}")
