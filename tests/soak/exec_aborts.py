"""The soak `exec`: a thousand aborts of running commands, also of such as do not want to end.

Each abort is answered, and each run ended, within the time promised; then no process with the mark of the call or of
its server lives, no zombie is left, and no descriptor.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cases.processes_seen import living, new_mark, zombies_of
from tests.soak import filling
from tests.soak.flatness import growth, rise
from tests.soak.inspected_server import InspectedServer, grown_objects, inspected_server
from tests.soak.playing import Place, PlayUnit, Unit
from tests.soak.progress import Progress, UnitResult
from tests.soak.report import Figure

from laneway.v1 import agent_pb2, event_pb2, run_pb2

SCRIPTS = {
    "exec": "turns:\n  - tool_calls:\n      - {name: exec, arguments: {command: '${message}'}}\n  - text: done\n",
    **filling.SCRIPTS,
}
TOML = "[agents.defaults]\nmax_concurrent = 16\n"
AT_ONCE = 10
COMMANDS = (
    """sh -c '(trap "" TERM; sleep MARK) & echo ready; sleep MARK'""",
    "echo ready; exec sleep MARK",
    """trap "" TERM INT HUP; echo ready; while :; do sleep MARK; done""",
    "setsid sleep MARK & nohup sleep MARK & echo ready; wait",
    """(setsid sh -c 'trap "" TERM HUP; sleep MARK' &); echo ready; sleep MARK""",
    "head -c 2000000 /dev/zero | tr '\\0' x; echo ready; sleep MARK",
    "echo ready; exec >&- 2>&-; sleep MARK",
    "for n in 1 2 3 4 5 6 7 8; do sleep MARK & done; echo ready; kill -STOP $$",
)
"""They say `ready` when all is there; MARK makes their command lines recognisable."""
AT_ONCE_SHARE = 0.2
"""Of the commands: aborted when they are begun, not when they are ready."""
ANSWER_LIMIT_S = 5.5
"""An abort is answered within 5 s (D-20); half a second for the way."""
END_LIMIT_S = 10.0
RSS_LIMIT_BYTES = 8192.0
HEAP_LIMIT_BYTES = 2048.0
"""Per abort. The pages that the database keeps of its rows are among it: they fill up over thousands of runs."""
OBJECTS_ALLOWED = 12
OWNER = b"LANEWAY_OWNER="
EXEC_LIMIT_S = 2.0
"""A shell that becomes its `sleep` has no command line for a moment."""


class ExecAborts:
    """Implements Soak. A round is one abort."""

    name = "exec"
    rounds_are = "aborts of running commands"
    default_rounds = 1000

    def __init__(self, *, unit_rounds: int = 20, commands: Sequence[str] = COMMANDS, is_filled: bool = True) -> None:
        """`is_filled`: the server has filled its caches before anything is counted."""
        self.unit_rounds = unit_rounds
        self._commands = commands
        self._is_filled = is_filled

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncGenerator[PlayUnit, None]:
        async with inspected_server(place.folder / "server", toml=TOML, scripts=SCRIPTS) as server:
            if self._is_filled:
                await filling.fill_caches(server)

            first: dict[str, int] = {}

            async def play_unit(unit: Unit) -> UnitResult:
                result = await _Aborts(server, self._commands, unit).play()
                objects: dict[str, int] = (await server.inspection())["objects"]
                if not first:
                    first.update(objects)
                result.violations += grown_objects(first, objects, allowed=OBJECTS_ALLOWED, kept=filling.KEPT_OBJECTS)
                return result

            yield play_unit

    def figures(self, progress: Progress) -> list[Figure]:
        samples, peaks = progress.longest_segment(), progress.peaks
        limits = {"slowest answer of an abort [s]": ANSWER_LIMIT_S, "slowest end of a run [s]": END_LIMIT_S}
        return [
            *(Figure(name, peaks[name], limit=limit) for name, limit in limits.items() if name in peaks),
            *growth(samples, "rss_bytes", "server RSS", unit="B/abort", limit=RSS_LIMIT_BYTES),
            *growth(samples, "heap_bytes", "server heap in use", unit="B/abort", limit=HEAP_LIMIT_BYTES),
            *rise(samples, "threads", "threads", limit=1),
            *rise(samples, "descriptors", "descriptors", limit=0),
        ]


class _Aborts:
    """One unit."""

    def __init__(self, server: InspectedServer, commands: Sequence[str], unit: Unit) -> None:
        self._server = server
        self._commands = commands
        self._unit = unit
        self._owners: set[bytes] = set()
        self._counts = {"aborted when ready": 0, "aborted when begun": 0, "still unwinding when answered": 0}
        self._peaks = {"slowest answer of an abort [s]": 0.0, "slowest end of a run [s]": 0.0}
        self._violations: list[str] = []

    async def play(self) -> UnitResult:
        numbers = iter(range(self._unit.rounds_before, self._unit.rounds_before + self._unit.rounds))

        async def work() -> None:
            for number in numbers:
                await self._abort_one(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
        await self._server.idle()
        if zombies := zombies_of(self._server.pid):
            self._violations.append(f"the server has the zombies {zombies}")
        if owned := processes_of(self._owners):
            self._violations.append(f"with the mark of the server live {owned}")
        sample = await self._server.sample(self._unit.rounds_before + self._unit.rounds)
        return UnitResult(
            rounds=self._unit.rounds,
            counts=self._counts,
            peaks=self._peaks,
            samples=[sample],
            violations=self._violations,
        )

    async def _abort_one(self, number: int) -> None:
        server, chance = self._server, random.Random(f"{self._unit.seed} {number}")
        mark, command = new_mark(), self._commands[number % len(self._commands)]
        run_id = (await server.accept(command.replace("MARK", mark), model="scripted/exec")).run_id
        is_early = chance.random() < AT_ONCE_SHARE
        await server.event(run_id, _is_begun if is_early else _is_ready)
        if not is_early:
            pids = await _there(mark)
            self._owners |= owners_of(pids)
            if not pids:
                self._say(number, command, "is ready, but nothing lives")
        began = time.monotonic()
        receipt = await server.agent.Abort(agent_pb2.AbortRequest(run_id=run_id))
        self._peak("slowest answer of an abort [s]", began)
        waited = await server.wait(run_id)
        self._peak("slowest end of a run [s]", began)
        self._counts["aborted when begun" if is_early else "aborted when ready"] += 1
        self._counts["still unwinding when answered"] += bool(receipt.pending_run_ids)
        if (waited.state, waited.stop_reason) != (run_pb2.RUN_STATE_CANCELLED, "rpc"):
            self._say(number, command, f"ended as {waited}")
        if left := living(mark):
            self._say(number, command, f"has ended, but {len(left)} of its processes live: {left}")

    def _say(self, number: int, command: str, text: str) -> None:
        self._violations.append(f"abort {number} of {command!r}: {text}")

    def _peak(self, name: str, began: float) -> None:
        self._peaks[name] = max(self._peaks[name], time.monotonic() - began)


async def _there(mark: str) -> list[int]:
    """The living processes with the mark, as soon as there is one; [] = there is none for EXEC_LIMIT_S."""
    deadline = time.monotonic() + EXEC_LIMIT_S
    while not (pids := living(mark)) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel tells nobody of an exec
        await asyncio.sleep(0)
    return pids


def _is_begun(event: event_pb2.Event) -> bool:
    return event.tool.phase == event_pb2.TOOL_PHASE_START


def _is_ready(event: event_pb2.Event) -> bool:
    return event.tool.phase == event_pb2.TOOL_PHASE_UPDATE and "ready" in event.tool.result.text


def owners_of(pids: Sequence[int]) -> set[bytes]:
    """The owner marks that processes carry; one that has just ended has none."""
    return {entry for pid in pids for entry in _environment(pid) if entry.startswith(OWNER)}


def processes_of(owners: set[bytes]) -> list[int]:
    """Living processes that carry one of the owner marks."""
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [pid for pid in pids if owners & set(_environment(pid))]


def _environment(pid: int) -> list[bytes]:
    try:
        return (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
