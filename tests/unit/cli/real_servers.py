"""Real server processes, and the home of a user whose models play scripts."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path

from tests.unit.cli.processes import start

from laneway.cli.connection import Connection

SLOW = 'turns:\n  - text: ["Once ", "upon ", "a time"]\n    delay_s: 0.3\n'
ENDLESS = 'turns:\n  - text: ["tick "]\n    delay_s: 0.02\n    repeat: 100000\n'
HELLO = 'turns:\n  - text: "You said ${message}"\n'
TOOLS = """\
turns:
  - text: ["Let me ", "look."]
    tool_calls: [{name: exec, arguments: {command: "seq 9"}}]
    usage: {input_tokens: 120, output_tokens: 30}
  - text: "There are nine."
    usage: {input_tokens: 160, output_tokens: 20}
"""
STEADY = 'turns:\n  - text: "tick "\n    delay_s: 0.05\n    repeat: 60\n'


def write_scripts(home: Path) -> None:
    """Into a new home."""
    (home / "scripts").mkdir()
    scripts = {"hello": HELLO, "slow": SLOW, "endless": ENDLESS, "tools": TOOLS, "steady": STEADY}
    for name, script in scripts.items():
        (home / "scripts" / f"{name}.yaml").write_text(script)


async def end_server_of(home: Path) -> None:
    """Kill the server that works in `home`, if there is one."""
    note = home / "server.json"
    if note.exists():
        pid = json.loads(note.read_text())["pid"]
        pidfd = os.pidfd_open(pid)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        await readable(pidfd)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended; of a test that started it in this process


async def readable(pidfd: int) -> None:
    """Wait for the end of the process behind a pidfd and close it."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(pidfd, ended.set)
    await ended.wait()
    asyncio.get_running_loop().remove_reader(pidfd)
    os.close(pidfd)


async def serving(address: str, *arguments: str, environ: dict[str, str], module: str = "") -> Process:
    """A server process that answers at `address`."""
    command = [] if module else ["serve"]
    process = await start(*command, "--listen", address, *arguments, environ=environ, module=module)
    assert process.stderr is not None
    await process.stderr.readuntil(b'"serving"')
    async with Connection(address, {}) as connection:
        await connection.client.status()
    return process
