"""Clients at work while their server is killed, drained, stopped and cut off: what the client promises is counted.

Sessions are kept busy by workers that use every way to follow a run; watchers read each session and everything, from a
cursor taken before the first message, over all faults. Half of the clients go through a proxy that resets, truncates,
delays and stalls. `python -m tests.client.faults --rounds N --seed S` for as long as wanted.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tests.fakes.cutting_proxy import CuttingProxy
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import toml_for
from tests.processes.kill_model import KillModel, Script
from tests.processes.ledger_tools import read_ledger
from tests.processes.server_entry import Extras

from laneway.calls import Loss, Timeouts
from laneway.client import LanewayClient
from laneway.errors import LanewayError
from laneway.positions import is_terminal
from laneway.v1 import agent_pb2, event_pb2, run_pb2

Answer = TypeVar("Answer")

SESSIONS = 4
BOUND_S = 90.0
"""No call may take longer: patience, one restart and the slowest run."""
NOTICED_S = 4.0
"""A fault that clients have not noticed by then met none of them."""
QUICK = Timeouts(patience_s=60.0, attempt_s=1.0, one_wait_s=2.0, silence_s=2.0)
FAULTS = ("kill", "drain", "stop", "cut")
_DRAIN = "[drain]\ntimeout_s = 2\npark_s = 1\n"
_FULL = agent_pb2.VERBOSITY_FULL


@dataclass
class Report:
    """What came out."""

    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    harms: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    events: int = 0
    states: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    """Messages that were answered as a repetition: the first answer was lost."""
    longest_call_s: float = 0.0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


@dataclass
class _Sent:
    """A message and what was heard of it."""

    message: str
    run_id: str = ""
    logs: list[list[event_pb2.Event]] = field(default_factory=list)
    waited: agent_pb2.WaitResponse | None = None


class Watcher:
    """One subscription that lasts as long as the test; remembers everything it was given."""

    def __init__(self, client: LanewayClient, cursor: str, session: str = "") -> None:
        """Of a session, or of everything."""
        self.name = f"reader of {session or 'all'}"
        self._session = session
        self._client = client
        self._request = agent_pb2.SubscribeRequest(cursor=cursor, verbose=_FULL)
        if session:
            self._request.session_key = session
        else:
            self._request.all = True
        self.events: list[event_pb2.Event] = []
        self.ended: set[str] = set()
        self.changed = asyncio.Event()

    def sees(self, sent: "_Sent") -> bool:
        """Whether the run of a message is in its log."""
        return not self._session or sent.message.split()[0] == self._session

    async def watch(self) -> None:
        """Until cancelled."""
        async with aclosing(self._client.subscribe(self._request)) as events:
            async for event in events:
                self.events.append(event)
                if is_terminal(event):
                    self.ended.add(event.run_id)
                self.changed.set()

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait for something that comes with an event."""
        while not is_reached():
            self.changed.clear()
            await self.changed.wait()

    def logs(self) -> dict[str, list[event_pb2.Event]]:
        """What it saw of each run, in the order in which it came."""
        logs: dict[str, list[event_pb2.Event]] = {}
        for event in self.events:
            logs.setdefault(event.run_id, []).append(event)
        return logs


class FaultEngine:
    """One test. `run` once."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._model = KillModel(seed)
        self._server = ServerProcess(folder, extras=Extras(ledger=str(folder / "ledger")))
        self._proxy = CuttingProxy(self._server.target, seed=seed)
        self._sent: list[_Sent] = []
        self._is_over = asyncio.Event()
        self._lost = asyncio.Event()
        self._losses: Counter[str] = Counter()
        self._report = Report(seed)

    async def run(self, rounds: int) -> Report:
        """Do `rounds` faults, let everything end, check; violations are in the report."""
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._model)
            await stack.enter_async_context(self._proxy)
            stack.push_async_callback(self._server.close)
            self._server.toml = toml_for(self._model, _DRAIN)
            await self._start()
            clients = [self._client(target) for target in (self._server.target, self._proxy.target) * 2]
            for client in clients:
                await stack.enter_async_context(client)
            watchers = await self._watchers(clients)
            await self._play(rounds, clients, watchers)
            await self._check(clients[0], watchers)
            self._server.terminate()
            if await self._server.exited() != 0:
                self._violation("the server did not leave in order")
        report = self._report
        report.losses, report.harms = dict(self._losses), {kind.value: n for kind, n in self._proxy.done.items()}
        report.seconds = time.monotonic() - began
        return report

    def _client(self, target: str) -> LanewayClient:
        async def on_loss(loss: Loss) -> None:
            self._losses[loss.error.reason or loss.error.status.name] += 1
            self._lost.set()

        # A pool of its own makes each client a connection of its own.
        options = (("grpc.use_local_subchannel_pool", 1),)
        return LanewayClient(target, timeouts=QUICK, on_loss=on_loss, channel_options=options)

    async def _watchers(self, clients: list[LanewayClient]) -> list[Watcher]:
        """Readers of everything and of each session, from a cursor that stands before all that counts."""
        self._model.scripts["warm up"] = Script(rounds=0)
        request = agent_pb2.AgentRequest(message="warm up", model="mock/any")
        cursor = [event async for event in clients[0].run(request)][-1].cursor
        watchers = [Watcher(client, cursor) for client in clients[:2]]
        watchers += [Watcher(clients[number % len(clients)], cursor, f"s{number}") for number in range(SESSIONS)]
        return watchers

    async def _start(self) -> None:
        self._model.generation += 1
        await self._server.start()

    def _violation(self, text: str) -> None:
        self._report.violations.append(text)

    # --- faults ------------------------------------------------------------------------------------------------------

    async def _play(self, rounds: int, clients: list[LanewayClient], watchers: list[Watcher]) -> None:
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(watcher.watch(), name=watcher.name) for watcher in watchers]
            workers = [
                group.create_task(self._work(f"s{number}", clients), name=f"worker of s{number}")
                for number in range(SESSIONS)
            ]
            plan = [FAULTS[number % len(FAULTS)] for number in range(rounds)]
            self._chance.shuffle(plan)
            for fault in plan:
                await self._traffic(watchers[0], self._chance.randint(3, 60))
                await self._do(fault, clients)
                self._report.faults[fault] = self._report.faults.get(fault, 0) + 1
            self._is_over.set()
            await asyncio.gather(*workers)
            for watcher in watchers:
                wanted = {sent.run_id for sent in self._sent if watcher.sees(sent)}
                await self._bounded(watcher.name, watcher.until(partial(wanted.issubset, watcher.ended)))
            for task in watching:
                task.cancel()

    async def _traffic(self, watcher: Watcher, events: int) -> None:
        """Until so many events more were seen."""
        enough = len(watcher.events) + events
        await self._bounded("traffic", watcher.until(lambda: len(watcher.events) >= enough))

    async def _do(self, fault: str, clients: list[LanewayClient]) -> None:
        self._lost.clear()
        if fault == "kill":
            await self._server.kill()
            await self._start()
        elif fault == "drain":
            if self._chance.random() < 0.5:
                await self._bounded("drain", clients[0].drain())
            else:
                self._server.terminate()
            if (exit_code := await self._server.exited()) != 0:
                self._violation(f"a drained server left with {exit_code}")
            await self._start()
        elif fault == "stop":
            self._server.stop()
            await self._within_notice(self._lost.wait())
            self._server.cont()
        else:
            self._proxy.harm(self._chance.randint(1, 4))
            await self._within_notice(self._proxy.harmed())
            await self._within_notice(self._lost.wait())
            self._proxy.calm()

    @staticmethod
    async def _within_notice(reached: Awaitable[object]) -> None:
        """Wait for it, but not for long: harms may only delay, or stall all that would bring the others about."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NOTICED_S):
                await reached

    # --- clients -----------------------------------------------------------------------------------------------------

    async def _bounded(self, what: str, call: Awaitable[Answer]) -> Answer | None:
        """The answer; a call that does not end, or fails, is a violation."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(BOUND_S):
                return await call
        except TimeoutError:
            self._violation(f"{what} hung")
        except LanewayError as error:
            self._violation(f"{what} failed: {error!r}")
        finally:
            self._report.longest_call_s = max(self._report.longest_call_s, time.monotonic() - began)
        return None

    async def _work(self, session: str, clients: list[LanewayClient]) -> None:
        chance = random.Random(f"{self._seed} {session}")
        number = 0
        while not self._is_over.is_set():
            sent = _Sent(f"{session} {number}")
            number += 1
            self._model.scripts[sent.message] = Script(
                rounds=chance.randint(0, 1), pieces=chance.randint(2, 12), pace_s=chance.choice((0.0, 0.002, 0.01))
            )
            request = agent_pb2.AgentRequest(
                message=sent.message,
                label=sent.message,
                session_key=session,
                model="mock/any",
                tools_allow=["ledger"],
            )
            way = chance.choice((self._run, self._accept_and_follow, self._abort))
            self._sent.append(sent)
            await self._bounded(f"{way.__name__} of {sent.message}", way(sent, request, chance.choice(clients)))

    async def _run(self, sent: _Sent, request: agent_pb2.AgentRequest, client: LanewayClient) -> None:
        events = [event async for event in client.run(request, verbose=_FULL)]
        self._accepted(sent, events[0].accepted)
        sent.logs.append(events[1:])

    async def _accept_and_follow(self, sent: _Sent, request: agent_pb2.AgentRequest, client: LanewayClient) -> None:
        self._accepted(sent, await client.agent(request))
        log = agent_pb2.SubscribeRequest(run_id=sent.run_id, after_seq=0, verbose=_FULL)
        first, second, sent.waited = await asyncio.gather(
            _all_of(client, log), _all_of(client, log), client.wait(sent.run_id)
        )
        sent.logs += [first, second]

    async def _abort(self, sent: _Sent, request: agent_pb2.AgentRequest, client: LanewayClient) -> None:
        self._accepted(sent, await client.agent(request))
        await client.abort(sent.run_id, reason="enough")
        sent.waited = await client.wait(sent.run_id)
        if (await client.abort(sent.run_id)).ByteSize():
            self._violation(f"{sent.run_id} was aborted after its end")

    def _accepted(self, sent: _Sent, answer: run_pb2.AgentResponse) -> None:
        sent.run_id = answer.run_id
        self._report.duplicates += answer.duplicate

    # --- afterwards --------------------------------------------------------------------------------------------------

    async def _check(self, client: LanewayClient, watchers: list[Watcher]) -> None:
        report = self._report
        seen = [(watcher, watcher.logs()) for watcher in watchers]
        states: Counter[str] = Counter()
        for sent in self._sent:
            stored = await self._stored(client, sent)
            report.events += len(stored)
            if not stored:
                continue
            states[run_pb2.RunState.Name(stored[-1].lifecycle.state)] += 1
            for watcher, logs in seen:
                if watcher.sees(sent) and logs.get(sent.run_id) != stored:
                    self._violation(f"the {watcher.name} was told something else of {sent.run_id} than what is stored")
        strangers = {run_id for _, logs in seen for run_id in logs} - {sent.run_id for sent in self._sent}
        if strangers:
            self._violation(f"runs that nobody asked for: {strangers}")
        tokens = Counter(line.token for line in read_ledger(self._server.ledger) if line.what == "effect")
        if doubled := [token for token, count in tokens.items() if count > 1]:
            self._violation(f"tool calls made twice: {doubled}")
        report.runs, report.states = len(self._sent), dict(states)

    async def _stored(self, client: LanewayClient, sent: _Sent) -> list[event_pb2.Event]:
        """The log of the one run that a message has become, compared with what its worker was told."""
        filters = agent_pb2.ListRunsRequest(label=sent.message)
        run_ids = [run.run_id async for run in client.list_runs(filters)]
        if run_ids != [sent.run_id]:
            self._violation(f"{sent.message} became the runs {run_ids}, told was {sent.run_id}")
            return []
        stored = await _all_of(client, agent_pb2.SubscribeRequest(run_id=sent.run_id, after_seq=0, verbose=_FULL))
        if [event.seq for event in stored] != list(range(1, len(stored) + 1)) or not is_terminal(stored[-1]):
            self._violation(f"the log of {sent.run_id} is not whole")
        if any(told != stored for told in sent.logs):
            self._violation(f"who followed {sent.run_id} was told something else than what is stored")
        if sent.waited is not None and sent.waited.state != stored[-1].lifecycle.state:
            self._violation(f"the wait for {sent.run_id} does not agree with its end")
        return stored


async def _all_of(client: LanewayClient, request: agent_pb2.SubscribeRequest) -> list[event_pb2.Event]:
    return [event async for event in client.subscribe(request)]


async def _run_in_scratch(rounds: int, seed: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="laneway-client-") as folder:
        return await FaultEngine(Path(folder), seed=seed).run(rounds)


def main() -> int:
    """Parse, run, print; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="tests.client.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="faults")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    report = asyncio.run(_run_in_scratch(options.rounds, options.seed))
    print(json.dumps(asdict(report), indent=2, ensure_ascii=False))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
