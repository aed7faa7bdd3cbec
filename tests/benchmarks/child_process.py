"""A process of a benchmark: started with a clean environment, asked line by line, ended."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.process_figures import cpu_s, rss_mb

REPOSITORY = Path(__file__).parents[2]
STREAM_LIMIT_BYTES = 64 * 1024 * 1024


class ChildFailed(Exception):
    """A process ended when it should not; the text has the end of its log."""


class Child:
    """One process; its stderr goes to `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, arguments: Sequence[str], *, log: Path, variables: Mapping[str, str] | None = None) -> "Child":
        """`python ARGUMENTS`, in the repository."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "PYTHONPATH": str(REPOSITORY)}
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                env={**environment, **(variables or {})},
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                limit=STREAM_LIMIT_BYTES,
            )
        return cls(process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def cpu_s(self) -> float:
        """CPU seconds of the process tree so far."""
        return cpu_s(self.pid)

    def rss_mb(self) -> float:
        """Resident memory of the process tree."""
        return rss_mb(self.pid)

    async def line(self) -> str:
        """The next line of its stdout. Raises ChildFailed when it ends instead."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise self.failure()
        return line.decode().rstrip("\n")

    async def ask(self, name: str, **fields: Any) -> dict[str, Any]:
        """Have a driver do a job; its result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"name": name, "fields": fields}).encode() + b"\n")
        result: dict[str, Any] = json.loads(await self.line())
        return result

    def failure(self) -> ChildFailed:
        """What to raise for a process that has ended."""
        return ChildFailed(self._log.read_text(errors="replace")[-3000:])

    def send(self, number: int) -> None:
        """Send a signal."""
        if not self.has_ended:
            self._process.send_signal(number)

    async def end(self, number: int = signal.SIGKILL) -> None:
        """Send a signal and wait for the end. Idempotent."""
        self.send(number)
        await self._process.wait()
