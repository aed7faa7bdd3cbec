"""What tests of `exec` share: the tool on a stage of its own, and eyes for its processes."""

import asyncio
import os
import select
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lanewayd.clock import Clock
from lanewayd.tools.children import ChildProcesses
from lanewayd.tools.interface import ToolContext, ToolResult
from lanewayd.tools.leftovers import Owner, find_call
from lanewayd.tools.processes import ProcessHandle, close_all
from lanewayd.tools.shell import ExecTool

# Another test process must not take our children for its own.
OWNER = Owner(f"home-{uuid.uuid4().hex}", "start")
CANARIES = {
    "OPENAI_API_KEY": "canary-1",
    "ANTHROPIC_API_KEY": "canary-2",
    "GEMINI_API_KEY": "canary-3",
    "SERVICE_TOKEN": "canary-4",
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=canary-5",
}
# Every sleep is in place, and the one that ignores TERM ignores it, before the line is written.
STUBBORN_TREE = (
    """sh -c 'sleep 300 & a=$!; (trap "" TERM; touch ready; sleep 301) & b=$!; """
    """until [ -e ready ]; do sleep 0.01; done; echo "tree $$ $a $b"; wait'"""
)


class Shell:
    """The tool with one context per call, and what it reported."""

    def __init__(self, workspace: Path, clock: Clock, environment: dict[str, str] | None = None) -> None:
        self.workspace = workspace
        self.children = ChildProcesses(owner=OWNER, clock=clock)
        self.reports: asyncio.Queue[str] = asyncio.Queue()
        self._calls = 0
        self.tool = ExecTool(
            children=self.children,
            clock=clock,
            environment={**os.environ, **(environment or {})},
            passed_on=("CHOSEN",),
            address=lambda: "127.0.0.1:50551",
        )

    async def run(self, command: str, **arguments: object) -> ToolResult:
        self._calls += 1
        return await self.tool.run({"command": command, **arguments}, self.context())

    def context(self) -> ToolContext:
        return ToolContext(
            run_id="run_1",
            call_id=f"call_{self._calls}",
            agent_id="main",
            session_key="agent:main:main",
            workspace=self.workspace,
            report=self.reports.put_nowait,
        )

    def alive(self) -> list[ProcessHandle]:
        """Handles of what the newest call started."""
        return find_call(OWNER, "run_1", f"call_{self._calls}")


def is_dead(handle: ProcessHandle) -> bool:
    poller = select.poll()
    poller.register(handle.pidfd, select.POLLIN)
    return bool(poller.poll(0))


def zombies_of_ours() -> list[str]:
    lines = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "stat").read_text() if entry.name.isdigit() else ""
        except OSError:
            continue
        fields = line.rpartition(") ")[2].split()
        if fields and fields[0] == "Z" and int(fields[1]) == os.getpid():
            lines.append(line)
    return lines


async def death_of(handle: ProcessHandle) -> None:
    loop = asyncio.get_running_loop()
    died = asyncio.Event()
    loop.add_reader(handle.pidfd, died.set)
    await died.wait()
    loop.remove_reader(handle.pidfd)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def stubborn_tree(shell: Shell, line: str) -> Iterator[list[ProcessHandle]]:
    """The shell of STUBBORN_TREE, its sleep, and the sleep that ignores TERM. `line` is what it printed."""
    # bash replaces itself by sh, and the subshell by its sleep, which goes on ignoring TERM.
    pids = [int(pid) for pid in line.split()[1:]]
    handles = {handle.pid: handle for handle in shell.alive()}
    while sorted(handles) != sorted(pids):  # `touch` may still be on its way out; nothing tells when it is gone
        close_all(handles.values())
        handles = {handle.pid: handle for handle in shell.alive()}
    try:
        yield [handles[pid] for pid in pids]
    finally:
        close_all(handles.values())
