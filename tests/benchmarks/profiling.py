"""Profiles of the product while it is measured: py-spy samples it from outside, memray runs it."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SAMPLES_PER_S = "250"


class Profiling:
    """Writes one file per product server and measure into `folder`. `tool` None = no profiles."""

    def __init__(self, tool: str | None, folder: Path) -> None:
        self._tool = tool
        self._folder = folder
        self._numbers = itertools.count(1)
        self.measure = ""
        if tool is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def prefix(self) -> tuple[str, ...]:
        """Arguments of python before `-m MODULE`."""
        if self._tool != "memray":
            return ()
        return ("-m", "memray", "run", "--quiet", "--output", str(self._path("bin")))

    @asynccontextmanager
    async def watching(self, pid: int | None) -> AsyncIterator[None]:
        """Sample the process `pid` inside; None = nothing."""
        if self._tool != "py-spy" or pid is None:
            yield
            return
        sampler = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "py-spy"),
            *("record", "--pid", str(pid), "--rate", SAMPLES_PER_S, "--format", "raw", "--threads", "--nonblocking"),
            *("--output", str(self._path("folded"))),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            if sampler.returncode is None:
                sampler.send_signal(signal.SIGINT)
            await sampler.wait()

    def _path(self, ending: str) -> Path:
        return self._folder / f"{self.measure}-{next(self._numbers)}.{ending}"
