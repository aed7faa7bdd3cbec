"""A server process under load of a soak, and what it holds: seen from outside, and told by its inspector."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.server_process import ServerProcess
from tests.processes.server_entry import Extras

from laneway.v1 import admin_pb2

IDLE_S = 20.0
"""By then nothing of calls that were left is open any more."""


class SoakFailed(Exception):
    """What a soak relies on did not come about."""


class InspectedServer(ServerProcess):
    """ServerProcess that can be asked what it holds."""

    def __init__(self, folder: Path, *, toml: str = "", scripts: dict[str, str] | None = None) -> None:
        """`scripts`: name -> text of models `scripted/<name>`."""
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, toml=toml, extras=Extras(is_inspected=True))
        self._inspections = 0
        (self.home / "scripts").mkdir(parents=True)
        for name, text in (scripts or {}).items():
            (self.home / "scripts" / f"{name}.yaml").write_text(text)

    async def launch(self) -> None:
        """Start and return at once."""
        self._inspections = 0
        await super().launch()

    async def inspection(self) -> dict[str, Any]:
        """`heap_bytes`, `python_blocks`, `objects`: living objects by class."""
        number = self._inspections
        self._inspections += 1
        self.release()
        return await self.notice("inspection", number)

    async def sample(self, at: float) -> dict[str, float]:
        """What the process uses after `at` rounds."""
        told = await self.inspection()
        return {
            "at": at,
            "rss_bytes": rss_bytes(self.pid),
            "heap_bytes": told["heap_bytes"],
            "python_blocks": told["python_blocks"],
            "threads": _status(self.pid, "Threads"),
            "descriptors": len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
        }

    async def idle(self, lanes: Mapping[str, int] | None = None) -> None:
        """Wait until no subscription is open, no run goes on or waits but so many in these lanes, and no audit record
        waits. Raises SoakFailed
        when something stays. What ended a moment ago still unwinds, hence the waiting."""
        began = time.monotonic()
        while True:
            status = await self.admin.GetStatus(admin_pb2.GetStatusRequest())
            busy = {lane.name: lane.active + lane.queued for lane in status.lanes if lane.active or lane.queued}
            if not status.subscribers and busy == (lanes or {}):
                # What is asked for is written first: no record waits any more.
                await self.admin.ListAuditRecords(admin_pb2.ListAuditRecordsRequest(page_size=1))
                return
            if time.monotonic() - began > IDLE_S:
                raise SoakFailed(f"after {IDLE_S} s {status.subscribers} subscriptions are open, busy lanes: {busy}")


@asynccontextmanager
async def inspected_server(
    folder: Path, *, toml: str = "", scripts: dict[str, str] | None = None
) -> AsyncGenerator[InspectedServer, None]:
    """A started one; at the end it is told to leave and must do so in order."""
    server = InspectedServer(folder, toml=toml, scripts=scripts)
    try:
        await server.start()
        yield server
        server.terminate()
        if (exit_code := await server.exited()) != 0:
            raise SoakFailed(f"the server left with {exit_code}: {server.log[-2000:]}")
    finally:
        await server.close()


def rss_bytes(pid: int | str) -> int:
    """Resident memory of a process. Source: proc(5)."""
    return _status(pid, "VmRSS") * 1024


def grown_objects(
    before: Mapping[str, int], after: Mapping[str, int], *, allowed: int, kept: Mapping[str, int] | None = None
) -> list[str]:
    """Classes of which more than `allowed` objects more live than before; `kept`: so many are kept on purpose."""
    return [
        f"{count - before.get(name, 0)} objects more of {name}: {count}"
        for name, count in sorted(after.items())
        if count - max(before.get(name, 0), (kept or {}).get(name, 0)) > allowed
    ]


def _status(pid: int | str, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SoakFailed(f"the kernel does not tell {name} of {pid}")
