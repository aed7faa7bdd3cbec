"""The clients of a kill soak: they keep sessions busy with runs that call tools, follow them, and abort some."""

import asyncio
import random
from collections import Counter

from tests.fakes.server_process import ServerProcess
from tests.processes.kill_model import KillModel, Script
from tests.processes.ledger_tools import read_ledger
from tests.processes.observers import Observer, Sightings
from tests.soak.restarts import Restarts

from laneway.v1 import agent_pb2, run_pb2

_UNENDED = (run_pb2.RUN_STATE_QUEUED, run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_MERGED)
_MODES = (
    *[agent_pb2.QUEUE_MODE_FOLLOWUP] * 4,
    *[agent_pb2.QUEUE_MODE_STEER] * 3,
    *[agent_pb2.QUEUE_MODE_COLLECT] * 2,
    agent_pb2.QUEUE_MODE_INTERRUPT,
)
"""What a message says of its queue: half of the messages of a burst find their session at work."""
_COLLECTED_SHARE = 0.2
"""Of the bursts: all but the first message are to be collected."""


class Clients:
    """One per session. `accepted` and `answered` grow; nobody else writes them."""

    def __init__(
        self, server: ServerProcess, model: KillModel, sightings: Sightings, restarts: Restarts, *, seed: int
    ) -> None:
        self._server = server
        self._model = model
        self._sightings = sightings
        self._restarts = restarts
        self._seed = seed
        self._is_over = False
        self.accepted: dict[str, tuple[str, agent_pb2.AgentRequest]] = {}
        """Run -> its message, and the request that began it."""
        self.answered: dict[str, int] = {}
        """Aborted runs -> lines in the ledger when the abort was answered."""
        self.aborts: Counter[str] = Counter()
        self.dispositions: Counter[str] = Counter()

    def finish(self) -> None:
        """Begin nothing any more."""
        self._is_over = True

    async def keep_busy(self, group: asyncio.TaskGroup, session: str) -> None:
        """Send messages to one session, one to three at a time, and wait for their ends."""
        chance = random.Random(f"{self._seed} {session}")
        number = 0
        while not self._is_over:
            burst: list[str] = []
            are_collected = chance.random() < _COLLECTED_SHARE
            for _ in range(chance.randint(2, 4) if are_collected else chance.randint(1, 3)):
                message = f"{session} {number}"
                number += 1
                self._model.scripts[message] = Script(
                    rounds=chance.randint(0, 2),
                    calls=chance.randint(1, 3),
                    tool=chance.choice(("ledger", "ledger", "again")),
                    pieces=chance.randint(1, 12),
                    pace_s=chance.choice((0.0, 0.002)),
                )
                mode = agent_pb2.QUEUE_MODE_COLLECT if are_collected and burst else chance.choice(_MODES)
                burst.append(await self._accept(session, message, mode))
            observers = [
                group.create_task(
                    Observer(f"observer of {run_id}", self._sightings, self._server.channel, run_id=run_id).follow()
                )
                for run_id in burst
            ]
            if chance.random() < 0.15:
                await self._abort(agent_pb2.AbortRequest(run_id=burst[-1]))
            elif chance.random() < 0.05:
                await self._abort(agent_pb2.AbortRequest(session_key=session, clear_queued=True))
            for run_id in burst:
                await self._end_of(run_id)
            await asyncio.gather(*observers)

    def lines_of(self, run_id: str) -> int:
        """Effects that tools of the run have had."""
        return sum(line.run_id == run_id and line.what == "effect" for line in read_ledger(self._server.ledger))

    async def _accept(self, session: str, message: str, mode: "agent_pb2.QueueMode") -> str:
        request = agent_pb2.AgentRequest(
            message=message,
            session_key=session,
            model="mock/any",
            queue_mode=mode,
            idempotency_key=f"key {message}",
            tools_allow=["ledger", "again"],
        )
        answer: run_pb2.AgentResponse = await self._restarts.repeated(
            lambda: self._server.agent.Agent(request, wait_for_ready=True)
        )
        self.accepted[answer.run_id] = (message, request)
        self.dispositions[run_pb2.Disposition.Name(answer.disposition).removeprefix("DISPOSITION_")] += 1
        return answer.run_id

    async def _abort(self, request: agent_pb2.AbortRequest) -> None:
        receipt = await self._restarts.repeated(lambda: self._server.agent.Abort(request, wait_for_ready=True))
        self.aborts["aborts of a session" if request.session_key else "aborts of a run"] += 1
        named = {*receipt.aborted_run_ids, *receipt.cancelled_run_ids} or {request.run_id} - {""}
        for run_id in named - set(receipt.pending_run_ids):
            self.answered[run_id] = self.lines_of(run_id)

    async def _end_of(self, run_id: str) -> None:
        request = agent_pb2.WaitRequest(run_id=run_id)
        request.timeout.FromSeconds(600)
        while True:
            count = self._restarts.count
            answer = await self._restarts.repeated(lambda: self._server.agent.Wait(request, wait_for_ready=True))
            if answer.state not in _UNENDED:
                return
            if answer.timeout_kind == agent_pb2.TIMEOUT_KIND_DRAINING:
                await self._restarts.beyond(count)
