"""Commands of `laneway` as processes, as a user starts them."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


# As `python -m laneway.cli.main`, but a server that this machine has on the usual port is not found.
COMMAND_LINE = (
    "import laneway.cli.address as address; address.DEFAULT_ADDRESS = '127.0.0.1:1'; "
    "import laneway.cli.main as entry; entry.main()"
)
COMMAND = (sys.executable, "-c", COMMAND_LINE)


def clean_environ(environ: dict[str, str] | None) -> dict[str, str]:
    """The environment of this process without settings of this machine, and with `environ`."""
    hidden = ("LANEWAY_", "OPENAI_", "OPENROUTER_", "NO_COLOR", "FORCE_COLOR")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return {**clean, "LANEWAY_HOME": "/nonexistent", **(environ or {})}


async def start(*arguments: str, environ: dict[str, str] | None = None, module: str = "") -> Process:
    """Start a command, or another module, in an environment that has no setting of this machine."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *(("-m", module) if module else ("-c", COMMAND_LINE)),
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=clean_environ(environ),
    )


async def end(process: Process, stdin: str = "") -> Ended:
    """Wait for its end; no command ever shows a traceback."""
    if stdin:
        out, err = await process.communicate(stdin.encode())
    else:
        assert process.stdin is not None
        process.stdin.close()  # not communicate(b""): a process that has ended already takes nothing
        out, err = await process.communicate()
    assert process.returncode is not None
    assert "Traceback" not in err.decode()
    return Ended(process.returncode, out.decode(), err.decode())


async def run(*arguments: str, environ: dict[str, str] | None = None, stdin: str = "", module: str = "") -> Ended:
    """Start a command and wait for its end."""
    return await end(await start(*arguments, environ=environ, module=module), stdin)
