"""Tools whose effect lies outside the server: one line in a ledger file for each, so that it can be counted."""

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes.failpoints import notice

from lanewayd.messages import ToolSpec
from lanewayd.tools.interface import ToolContext, ToolResult

_SCHEMA = {
    "type": "object",
    "properties": {"token": {"type": "string"}, "then": {"type": "string"}},
    "required": ["token"],
    "additionalProperties": False,
}


class LedgerTool:
    """Implements Tool: appends its token to the ledger, synced, and answers with it.

    `then` says what follows the effect: nothing; `hang` until cancelled; `die`: the server process kills itself;
    `wait`: the test sends a byte through the fifo `<ledger>.gate`. Each effect is told on stdout: {"effect": token}.
    """

    def __init__(
        self, ledger: Path, name: str = "ledger", *, is_idempotent: bool = False, is_sequential: bool = False
    ) -> None:
        self._ledger = ledger
        self._spec = ToolSpec(name, "Writes a token down.", _SCHEMA)
        self._is_idempotent = is_idempotent
        self._is_sequential = is_sequential

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @property
    def is_idempotent(self) -> bool:
        return self._is_idempotent

    @property
    def is_sequential(self) -> bool:
        return self._is_sequential

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        token, then = arguments["token"], arguments.get("then", "")
        self._write("begin", token, context)
        try:
            await asyncio.to_thread(self._write, "effect", token, context)
            notice(effect=token)
            if then == "hang":
                await asyncio.Event().wait()
            elif then == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            elif then == "wait":
                await _byte_from(self._ledger.with_suffix(".gate"))
        finally:
            self._write("end", token, context)
        return ToolResult(f"wrote {token}")

    def _write(self, what: str, token: str, context: ToolContext) -> None:
        line = {
            "what": what,
            "tool": self._spec.name,
            "token": token,
            "run_id": context.run_id,
            "session_key": context.session_key,
            "pid": os.getpid(),
        }
        descriptor = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")
            if what == "effect":
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


async def _byte_from(fifo: Path) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    # Opened for both, it never stands at the end of file.
    descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    loop.add_reader(descriptor, came.set)
    try:
        await came.wait()
        os.read(descriptor, 1)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of the ledger."""

    what: str
    tool: str
    token: str
    run_id: str
    session_key: str
    pid: int


def read_ledger(ledger: Path) -> list[LedgerLine]:
    """All lines so far; a last line that a kill cut short never had its effect synced and does not count."""
    text = ledger.read_text() if ledger.exists() else ""
    return [LedgerLine(**json.loads(line)) for line in text.split("\n")[:-1]]


def ledger_tools(ledger: Path) -> tuple[LedgerTool, ...]:
    """`ledger`; `again`, which is idempotent; `turns`, whose calls run one after the other."""
    return (
        LedgerTool(ledger),
        LedgerTool(ledger, "again", is_idempotent=True),
        LedgerTool(ledger, "turns", is_sequential=True),
    )
