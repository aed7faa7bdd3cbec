"""The run service without rpc in a test's process: real store file, locks, scheduler; model and clock obey the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.fake_clock import FakeClock
from tests.fakes.store_codec import JsonCodec, decode
from tests.unit.runs.bench_agents import BenchAgents
from tests.unit.runs.staged_model import ModelCall, StagedProvider

from lanewayd.events import StoredEvent
from lanewayd.loop.limits import UNLIMITED, Allowance
from lanewayd.messages import (
    AssistantMessage,
    Message,
    ModelFacts,
    Prices,
    ToolResultMessage,
)
from lanewayd.models.candidates import Candidate
from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import Entry, Run
from lanewayd.runs.collaborators import Collaborators, RunSettings
from lanewayd.runs.commits import CommitFeed
from lanewayd.runs.drain import ParkGate
from lanewayd.runs.followers import Followers
from lanewayd.runs.ids import Ids
from lanewayd.runs.interface import NewMessage
from lanewayd.runs.lanes import LaneBook
from lanewayd.runs.looks import SessionLooks
from lanewayd.runs.recovery import Recovery
from lanewayd.runs.registry import RunRegistry
from lanewayd.runs.room import AcceptLimits
from lanewayd.runs.scheduler import Scheduler
from lanewayd.runs.settling import Settling
from lanewayd.runs.supervision import Supervision
from lanewayd.runs.watches import RunWatches
from lanewayd.store.blobs import Blobs
from lanewayd.store.interface import Store
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer_interface import CommitGate
from lanewayd.tools.interface import Tool, ToolContext, Toolset
from lanewayd.tools.redaction import Redactor
from lanewayd.tools.toolset import ToolShelf
from lanewayd.transcript.entries import message_of
from lanewayd.transcript.lock import SessionLocks

TENANT = "default"
FOREVER_S = 1e9
EventDict = dict[str, Any]


@dataclass
class BenchWorkplace:
    """Implements Workplace in a folder of the bench."""

    run: Run
    folder: Path

    async def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def context(self, call_id: str, report: Callable[[str], None]) -> ToolContext:
        return ToolContext(self.run.run_id, call_id, "main", self.run.session_key, self.folder, report)


class BenchWorkshop:
    """Implements Workshop with the tools of the test. `fault` is raised instead of giving a toolset."""

    def __init__(self, tools: Sequence[Tool], folder: Path) -> None:
        self._shelf = ToolShelf(tools)
        self._folder = folder
        self.fault: Exception | None = None

    def toolset(self, run: Run) -> Toolset:
        if self.fault is not None:
            raise self.fault
        return self._shelf.select(run.request.tools_allow, run.request.tools_deny)

    def workplace(self, run: Run) -> BenchWorkplace:
        return BenchWorkplace(run, self._folder)

    def workspace(self, agent_id: str) -> str:
        return str(self._folder)


@dataclass(frozen=True)
class BenchSettings:
    """What a test may choose."""

    tools: Sequence[Tool] = ()
    gate: CommitGate | None = None
    widths: dict[str, int] = field(default_factory=lambda: {"main": 8})
    delta_interval_s: float = 0.0
    max_attempts: int = 3
    lock_timeout_s: float = 60.0
    max_queued_runs: int = 10_000
    prices: Prices = field(default_factory=Prices)
    of_run: Allowance = UNLIMITED
    of_session: Allowance = UNLIMITED
    wrap: Callable[[SqliteStore], Store] = lambda store: store
    """What runs see of the store."""


class Bench:
    """See the module. Made by `running_bench`."""

    def __init__(self, home: Path, store: SqliteStore, settings: BenchSettings) -> None:
        self.home = home
        self.store = store
        self.settings = settings
        self.interrupted = 0
        self.clock = FakeClock()
        self.provider = StagedProvider()
        self.park_gate = ParkGate()
        self.watches = RunWatches(self.clock)
        self.workshop = BenchWorkshop(settings.tools, home / "workspace")
        self.locks = SessionLocks(home / "locks", clock=self.clock, acquire_timeout_s=settings.lock_timeout_s)
        seen_store = settings.wrap(store)
        self.parts = Collaborators(
            store=seen_store,
            blobs=Blobs(home / "blobs"),
            clock=self.clock,
            ids=Ids(),
            locks=self.locks,
            watches=self.watches,
            provider=lambda _name: self.provider,
            candidates=lambda request: (Candidate.of(request.model, ModelFacts(prices=settings.prices)),),
            workshop=self.workshop,
            gate=self.park_gate,
            sanitiser=Redactor(()),
            settings=RunSettings(settings.delta_interval_s, settings.of_run, settings.of_session),
        )
        self.settling = Settling(self.parts)
        self.scheduler = Scheduler(
            LaneBook(settings.widths), self.parts, settling=self.settling, supervision=self._supervision
        )
        self.registry = RunRegistry(
            self.parts,
            scheduler=self.scheduler,
            agents=BenchAgents(),
            limits=AcceptLimits(settings.max_queued_runs, max_depth=5),
            queue=QueueDefaults(),
        )
        self.followers = Followers(store, self.clock)
        self.store_works: list[bool] = []
        self.looks = SessionLooks(store, BenchAgents())
        store.listener = CommitFeed(
            self.followers, self.registry, looks=self.looks, on_store_works=self.store_works.append
        )
        self.recovery = Recovery(
            self.parts, scheduler=self.scheduler, settling=self.settling, max_attempts=settings.max_attempts
        )

    def _supervision(self, run: Run, is_recovered: bool) -> Supervision:
        return Supervision(
            run,
            self.parts,
            settling=self.settling,
            is_recovered=is_recovered,
            on_slot_free=self.scheduler.free_slot,
        )

    # --- doing ---

    async def accept(self, session_key: str = "talk", message: str = "hi", **fields: Any) -> str:
        """Send a message; the run's id."""
        fields.setdefault("tenant", TENANT)
        new = NewMessage(message=message, request_hash=b"h", hash_version=1, session_key=session_key, **fields)
        return (await self.registry.accept(new)).run_id

    async def ended(self, run_id: str) -> Run:
        """The run when it has ended, at most 10 s from now."""
        async with asyncio.timeout(10):
            return (await self.registry.wait(TENANT, run_id, FOREVER_S)).run

    async def done(self, run_id: str) -> Run:
        """The run when it has ended and nothing of any run is left at work."""
        run = await self.ended(run_id)
        await self.idle()
        return run

    async def idle(self) -> None:
        """Nothing of any run is left at work."""
        async with asyncio.timeout(10):
            await self.scheduler.idle()

    async def abort(self, run_id: str) -> Any:
        """Abort a run; its receipt."""
        return await self.registry.abort_run(TENANT, run_id, stop_reason="rpc", reason="")

    async def model_call(self) -> ModelCall:
        """The next call that reaches the model."""
        return await soon(self.provider.asked.get())

    # --- looking ---

    async def run(self, run_id: str) -> Run:
        return await self.registry.run(TENANT, run_id)

    async def events(self, run_id: str) -> list[EventDict]:
        """All stored events of a run."""
        page = await self.store.run_events(TENANT, run_id, after_seq=0, limit=100_000)
        assert page is not None
        return [decode(event.encoded) for event in page.events]

    async def until(self, run_id: str, matches: Callable[[EventDict], bool]) -> EventDict:
        """The first event of a run that matches, when it is readable."""
        async with asyncio.timeout(10), aclosing(self.followers.follow_run(TENANT, run_id, 0)) as items:
            async for item in items:
                if isinstance(item, StoredEvent) and matches(decode(item.encoded)):
                    return decode(item.encoded)
        raise AssertionError("no event of the run matches")

    async def entries(self, session_key: str = "agent:main:talk") -> list[Entry]:
        """A session's transcript, oldest first."""
        return [entry for _, entry in await self.store.entries(TENANT, session_key, after_no=0, limit=1_000)]

    async def messages(self, session_key: str = "agent:main:talk") -> list[Message]:
        """The messages of a session's transcript."""
        found = [message_of(entry) for entry in await self.entries(session_key)]
        return [message for message in found if message is not None]

    def lock_files(self) -> list[str]:
        """Names of what lies in the lock folder."""
        return sorted(path.name for path in (self.home / "locks").iterdir())


def shape(events: Sequence[EventDict]) -> list[str]:
    """A log in words: `lifecycle start`, `assistant`, `message user`, `tool result ok` ..."""
    words = []
    for event in events:
        if "lifecycle" in event:
            words.append(f"lifecycle {event['lifecycle']['phase']}")
        elif "tool" in event:
            tool = event["tool"]
            words.append(" ".join(["tool", tool["phase"], tool["call_id"], tool["outcome"] or ""]).strip())
        elif "message" in event:
            words.append(f"message {event['message']['role']}")
        elif "queue" in event:
            words.append(f"queue {event['queue']['phase']}")
        else:
            words.append(next(kind for kind in ("assistant", "reasoning") if kind in event))
    return words


def is_phase(kind: str, phase: str) -> Callable[[EventDict], bool]:
    """Whether an event is of a kind and phase."""
    return lambda event: kind in event and event[kind]["phase"] == phase


def said(events: Sequence[EventDict], message_id: str = "") -> str:
    """The visible text of a log, of one message if named."""
    deltas = [event["assistant"] for event in events if "assistant" in event]
    return "".join(delta["delta"] for delta in deltas if message_id in ("", delta["message_id"]))


T = TypeVar("T")


async def soon(what: Awaitable[T]) -> T:
    """What must come without any clock being moved; at most 10 s of real time."""
    async with asyncio.timeout(10):
        return await what


@asynccontextmanager
async def running_bench(home: Path, **settings: Any) -> AsyncIterator[Bench]:
    """Open the store in `home`, recover, run; cut what still runs at the end. Settings are those of BenchSettings."""
    home.mkdir(exist_ok=True)
    chosen = BenchSettings(**settings)
    store = await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), gate=chosen.gate)
    bench = Bench(home, store, chosen)
    try:
        bench.interrupted = await bench.recovery.recover()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.serve(), name="scheduler")
            await group.create_task(_admit(bench), name="admit")
            try:
                yield bench
            finally:
                bench.scheduler.leave()
                for task in [task for task in asyncio.all_tasks() if task.get_name().startswith("run ")]:
                    task.cancel()
    finally:
        bench.locks.close()
        bench.parts.blobs.close()
        await store.close()


async def _admit(bench: Bench) -> None:
    """As a task behind the scheduler's, so that its group exists."""
    bench.scheduler.start_admitting()


async def check_is_over(bench: Bench, run_id: str, session_key: str = "agent:main:talk") -> None:
    """What must hold of any run that has ended: one terminal event, last; one result for each call; nothing left."""
    await bench.idle()
    events = await bench.events(run_id)
    terminals = [event for event in events if event.get("lifecycle", {}).get("phase") in ("end", "error")]
    assert terminals == events[-1:]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    run = await bench.run(run_id)
    assert run.state.value == terminals[0]["lifecycle"]["state"]
    assert run.last_seq == len(events)
    messages = await bench.messages(session_key)
    calls = [
        call.call_id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    results = [message.call_id for message in messages if isinstance(message, ToolResultMessage)]
    assert results == calls
    assert bench.lock_files() == []
    assert bench.clock.sleeper_count == 0
    assert bench.scheduler.book.is_empty
    assert bench.watches.find(run_id) is None
