"""Somebody who follows a page of the documentation: does what its blocks say, and compares what it shows."""

import asyncio
import itertools
import os
import re
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
ADDRESS = "127.0.0.1:50551"
MODEL_URL = "http://127.0.0.1:9000/v1"
_END_S = 30

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_VARIABLE = re.compile(
    r"(?P<run>run_[0-9a-f]{8}-\.\.\.)|(?P<id>\b[0-9a-f]{8}-\.\.\.)|(?P<time>\b20\d\d-\.\.\.)|(?P<any>\.\.\.)"
    r"|(?P<duration>\b\d+(?:\.\d+)? (?:ms|s)\b)|(?P<process>process \d+)"
)
_PATTERNS = {
    "run": "run_[0-9a-f-]{36}",
    "id": "[0-9a-f-]{36}",
    "time": r"20\d\d-[0-9T:.+Z-]+",
    "any": ".*",
    "duration": r"\d+(?:\.\d+)? (?:ms|s)",
    "process": r"process \d+",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A marked block with the output that the page shows for it, if any."""

    line: int
    mark: str
    language: str
    body: str
    shown: str | None


def blocks_of(page: str) -> list[Block]:
    """The marked blocks of a page, in order."""
    found = list(BLOCK.finditer(page))
    blocks = []
    for match, after in itertools.zip_longest(found, found[1:]):
        if match["mark"]:
            is_shown = after is not None and not after["mark"] and after["language"] in ("text", "json")
            shown = after["body"] if after is not None and is_shown else None
            line = page.count("\n", 0, match.start()) + 1
            blocks.append(Block(line, match["mark"], match["language"], match["body"], shown))
    return blocks


def pattern_of(shown: str) -> str:
    """A regular expression for what a page shows as output; each line ends with a line feed."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
            continue
        position = 0
        for variable in _VARIABLE.finditer(line):
            pattern += re.escape(line[position : variable.start()]) + _PATTERNS[variable.lastgroup or "any"]
            position = variable.end()
        pattern += re.escape(line[position:].rstrip()) + r"\n"
    return pattern


@dataclass(slots=True)
class Reader:
    """Somebody who follows a page. `close` ends the servers that the page leaves running."""

    home: Path
    model_url: str = MODEL_URL
    address: str = ADDRESS
    run_id: str = ""
    _server: asyncio.subprocess.Process | None = None
    _log: asyncio.Task[bytes] | None = field(default=None)

    async def do(self, block: Block) -> None:
        """Do what `block` says and compare what it shows."""
        kind, _, rest = block.mark.partition(": ")
        if kind in ("not run", "checked by"):
            return
        if kind == "file":
            path = self.home / rest.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body.replace(MODEL_URL, self.model_url))
            return
        if block.mark == "run: server":
            output = await self._serve(block)
        else:
            output = await self._run(block, int(block.mark.partition("exit=")[2] or 0))
        output = "".join(f"{line.rstrip()}\n" for line in output.replace(self.address, ADDRESS).splitlines())
        if run_ids := re.findall("run_[0-9a-f-]{36}", output):
            self.run_id = run_ids[-1]
        if block.shown is not None and not re.fullmatch(pattern_of(block.shown), output.strip("\n") + "\n"):
            pytest.fail(f"line {block.line} shows\n{block.shown}\nbut the output is\n{output}", pytrace=False)

    async def close(self) -> None:
        """Tell the server, if there is one, to leave, and wait for its end."""
        pidfd = self._pidfd()
        if pidfd is not None:
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            await self._ended(pidfd)

    async def _run(self, block: Block, exit_code: int) -> str:
        pidfd = self._pidfd()
        command = [str(BIN / "python"), "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
        process = await self._start(*command, self._text(block))
        stdout, _ = await process.communicate()
        output = stdout.decode()
        assert process.returncode == exit_code, f"line {block.line} ended with {process.returncode}: {output}"
        if pidfd is not None:
            if re.search(r"^kill ", block.body, re.MULTILINE):
                await self._ended(pidfd)
            else:
                os.close(pidfd)
        return output

    async def _serve(self, block: Block) -> str:
        """Start the server; its log up to the line that says it is serving."""
        self.address = _free_address()
        self._server = await self._start("bash", "-c", f"exec {self._text(block)}", LANEWAY_LISTEN=self.address)
        assert self._server.stdout is not None
        log = ""
        async for line in self._server.stdout:
            log += line.decode()
            if '"message": "serving"' in log:
                self._log = asyncio.create_task(self._server.stdout.read(), name="the server's log")
                return log
        pytest.fail(f"line {block.line}: the server did not start: {log}", pytrace=False)

    async def _start(self, *command: str, **variables: str) -> asyncio.subprocess.Process:
        environment = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.defpath}",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        } | variables
        # As on a terminal, where a line is seen when it is written.
        environment["PYTHONUNBUFFERED"] = "1"
        if self._server is not None:
            # The page has the server on its usual port, where another one may be.
            environment["LANEWAY_ADDRESS"] = self.address
        if self.run_id:
            environment["RUN"] = self.run_id
        if self._server is None and any("laneway doctor" in word for word in command):
            # It looks whether the usual port is free.
            self.address = environment["LANEWAY_LISTEN"] = _free_address()
        if any("OPENAI_API_KEY" in word for word in command):
            # The page means the real service; the one that answers here is on this machine.
            environment["LANEWAY_MODELS__PROVIDERS__OPENAI__BASE_URL"] = self.model_url
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.home,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    def _text(self, block: Block) -> str:
        text = block.body.replace(ADDRESS, self.address).replace(MODEL_URL, self.model_url)
        # Setting up was done before the tests; they shall not install anything.
        make = f"make --no-print-directory -C {REPOSITORY} -o {BIN.parent}/.ready VENV={BIN.parent} "
        return re.sub(r"^make ", make, text.replace(".venv/bin/", f"{BIN}/"), flags=re.MULTILINE)

    def _pidfd(self) -> int | None:
        """The server that uses the home, if one does."""
        with suppress(OSError, ValueError):
            note = (self.home / ".laneway" / "server.json").read_text()
            pid = int(re.findall(r'"pid": (\d+)', note)[0])
            pidfd = os.pidfd_open(pid)
            if f"HOME={self.home}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pidfd
            os.close(pidfd)
        return None

    async def _ended(self, pidfd: int) -> None:
        """Wait for the end of the server behind `pidfd`, which was told to leave; close it."""
        readable, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], _END_S)
        if not readable:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
        if self._server is not None and self._log is not None:
            await self._log
            await self._server.wait()
            self._server = self._log = None
        assert readable, "the server did not leave"


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
