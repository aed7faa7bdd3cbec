"""The soak `sessions`: a hundred thousand sessions that are used once, a third of them aborted while they are queued.

Nothing may be left of them but their rows: memory, threads, descriptors and files stay what they are, and the rows are
exactly those that the work explains.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak import filling
from tests.soak.flatness import growth, rise
from tests.soak.inspected_server import InspectedServer, grown_objects, inspected_server
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure

from laneway.v1 import agent_pb2, run_pb2

SCRIPTS = {
    "once": "turns:\n  - text: one answer\n",
    "hold": "turns:\n  - text: never\n    delay_s: 1000000\n",
    **filling.SCRIPTS,
}
AT_ONCE = 24
TABLES = (
    "runs",
    "run_texts",
    "sessions",
    "entries",
    "events",
    "tool_calls",
    "idempotency_keys",
    "blobs",
    "attachments",
    "session_blobs",
    "past_transcripts",
)
# What the store keeps of one session: see _Flow.
ROWS_OF_ENDED = {"runs": 1, "run_texts": 1, "sessions": 1, "entries": 2, "events": 5}
ROWS_OF_CANCELLED = {"runs": 1, "run_texts": 1, "sessions": 1, "entries": 0, "events": 2}
TOML = "[diagnostics]\nenabled = false\n"
"""The run that holds the lane is silent for the whole soak; the look-out would tell of it, and end it."""
OBJECTS_ALLOWED = 12
"""Of one class, more than after the first unit: calls that are being given back."""
RSS_LIMIT_BYTES = 64.0
HEAP_LIMIT_BYTES = 16.0
WARM_UP = 30_000
"""By then pages of the database and the last starts of 4,096 sessions are kept, which is as many as ever are: after
about 25,000 sessions the server's heap was seen to stay as it is."""
BLOCKS_LIMIT = 0.05
"""Objects of Python per session: one that stays for every twentieth session is too many."""


@dataclass
class _Start:
    """One start: a server with a lane that is taken, and what was there before the sessions."""

    server: InspectedServer
    rows: dict[str, int]
    done: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Sessions whose run was cancelled, and whose run ended."""
    objects: dict[str, int] | None = None

    @property
    def rows_explained(self) -> dict[str, int]:
        """What must be in each table now."""
        return {
            table: self.rows[table]
            + self.done[True] * ROWS_OF_CANCELLED.get(table, 0)
            + self.done[False] * ROWS_OF_ENDED.get(table, 0)
            for table in TABLES
        }


class OneOffSessions:
    """Implements Soak. A round is one session."""

    name = "sessions"
    rounds_are = "sessions used once"
    default_rounds = 100_000

    def __init__(self, *, unit_rounds: int = 1000, is_filled: bool = True) -> None:
        """`is_filled`: the server has filled its caches before anything is counted."""
        self.unit_rounds = unit_rounds
        self._is_filled = is_filled

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async with inspected_server(place.folder / "server", toml=TOML, scripts=SCRIPTS) as server:
            if self._is_filled:
                await filling.fill_caches(server)
            holder = await server.accept("hold", model="scripted/hold", lane="taken")
            await server.event(holder.run_id, lambda event: event.WhichOneof("payload") == "message")
            start = _Start(server, rows_in(server.home / "laneway.db"))

            async def play_unit(unit: Unit) -> UnitResult:
                return await _play(start, unit)

            yield play_unit
            await server.agent.Abort(agent_pb2.AbortRequest(run_id=holder.run_id))

    def figures(self, progress: Progress) -> list[Figure]:
        samples = progress.longest_segment()
        return [
            *growth(samples, "rss_bytes", "server RSS", unit="B/session", limit=RSS_LIMIT_BYTES, warm_up=WARM_UP),
            *growth(
                samples, "heap_bytes", "server heap in use", unit="B/session", limit=HEAP_LIMIT_BYTES, warm_up=WARM_UP
            ),
            *growth(samples, "python_blocks", "Python blocks", unit="/session", limit=BLOCKS_LIMIT, warm_up=WARM_UP),
            *rise(samples, "threads", "threads", limit=1),
            *rise(samples, "descriptors", "descriptors", limit=2),
            *rise(samples, "lock_files", "files in locks/", limit=0),
            *rise(samples, "home_files", "files at home", limit=0),
        ]


def rows_in(database: Path) -> dict[str, int]:
    """How many rows each table has."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        # The names come from a constant.
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}  # noqa: S608
    finally:
        connection.close()


async def _play(start: _Start, unit: Unit) -> UnitResult:
    server = start.server
    numbers = iter(range(unit.rounds_before, unit.rounds_before + unit.rounds))
    violations: list[str] = []

    async def work() -> None:
        for number in numbers:
            is_cancelled = number % 3 == 2
            flow = _cancelled_while_queued if is_cancelled else _ended
            violations.extend(await flow(server))
            start.done[is_cancelled] += 1

    cancelled_before = start.done[True]
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    await server.idle({"taken": 1})
    rows, explained = rows_in(server.home / "laneway.db"), start.rows_explained
    violations += [
        f"{table} has {rows[table]} rows, {explained[table]} are explained"
        for table in TABLES
        if rows[table] != explained[table]
    ]
    objects: dict[str, int] = (await server.inspection())["objects"]
    start.objects = start.objects or objects
    violations += grown_objects(start.objects, objects, allowed=OBJECTS_ALLOWED, kept=filling.KEPT_OBJECTS)
    sample: dict[str, Any] = await server.sample(unit.rounds_before + unit.rounds)
    sample |= {
        "lock_files": len(list((server.home / "locks").iterdir())),
        "home_files": sum(path.is_file() for path in server.home.rglob("*")),
    }
    cancelled = start.done[True] - cancelled_before
    return UnitResult(
        rounds=unit.rounds,
        counts={"ended": unit.rounds - cancelled, "aborted while queued": cancelled},
        peaks={"rows of runs": rows["runs"], "rows of events": rows["events"]},
        samples=[sample],
        violations=violations,
    )


async def _ended(server: InspectedServer) -> list[str]:
    run_id = (await server.accept("hello", model="scripted/once")).run_id
    waited = await server.wait(run_id)
    if waited.state != run_pb2.RUN_STATE_SUCCEEDED or [payload.text for payload in waited.payloads] != ["one answer"]:
        return [f"{run_id} should have succeeded: {waited}"]
    return []


async def _cancelled_while_queued(server: InspectedServer) -> list[str]:
    run_id = (await server.accept("never", model="scripted/once", lane="taken")).run_id
    receipt = await server.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
    waited = await server.wait(run_id)
    if list(receipt.cancelled_run_ids) != [run_id] or waited.state != run_pb2.RUN_STATE_CANCELLED:
        return [f"{run_id} should have been cancelled: {receipt}, {waited}"]
    return []
