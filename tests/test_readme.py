"""Runs what README.md and docs/ show: every marked block, in order, on an empty home against real server processes.

A mark is a comment directly before a block. `<!-- run -->`: a shell or Python block that must succeed, or end with the
code of `exit=N`; `<!-- run: server -->`: a server, which goes on in the background; `<!-- file: ~/PATH -->`: text of
a file. The next unmarked text or json block is the output, whole: in it `...` stands for any text, alone in a line for
any lines, and ids, times and durations for others of their kind.
"""

import asyncio
import itertools
import os
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer, text_answer

from lanewayd.settings_reader import setting_names
from lanewayd.settings_schema import Settings

REPOSITORY = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
ADDRESS = "127.0.0.1:50551"
MODEL_URL = "http://127.0.0.1:9000/v1"
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_END_S = 30

_BLOCK = re.compile(
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
    found = list(_BLOCK.finditer(page))
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
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
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
        environment = {"HOME": str(self.home), "PATH": os.defpath, "LANG": "C.UTF-8", "TERM": "dumb", **variables}
        # As on a terminal, where a line is seen when it is written.
        environment["PYTHONUNBUFFERED"] = "1"
        if self._server is not None:
            # The page has the server on its usual port, where another one may be.
            environment["LANEWAY_ADDRESS"] = self.address
        if self.run_id:
            environment["RUN"] = self.run_id
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=REPOSITORY,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    def _text(self, block: Block) -> str:
        text = block.body.replace(ADDRESS, self.address).replace(".venv/bin/", f"{BIN}/")
        # Setting up was done before the tests; they shall not install anything.
        return re.sub(r"^make ", f"make -o {BIN.parent}/.ready VENV={BIN.parent} ", text, flags=re.MULTILINE)

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


@pytest.fixture
async def reader(model: ModelServer) -> AsyncGenerator[Reader, None]:
    """A reader with an empty home, whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="readme-") as folder:
        someone = Reader(Path(folder), model.base_url)
        yield someone
        await someone.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("path", [page for page in PAGES if blocks_of(page.read_text())], ids=lambda path: path.name)
async def test_every_marked_block_does_what_the_page_shows(path: Path, reader: Reader, model: ModelServer) -> None:
    page = path.read_text()
    if "grpcurl" in page and not (BIN / "grpcurl").exists():
        pytest.skip("grpcurl can be installed from the lock file on x86-64 only")
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    model.answer(text_answer("Hello! ", "What can I do for you?", usage=(64, 9)))
    blocks = blocks_of(page)
    assert blocks, "a page shows something that can be run"
    for block in blocks:
        await reader.do(block)


def test_shell_blocks_without_a_mark_need_a_key_or_run_tests() -> None:
    for path in PAGES:
        for block in _BLOCK.finditer(path.read_text()):
            if block["language"] in ("sh", "python") and not block["mark"]:
                assert "OPENAI_API_KEY" in block["body"] or "make test" in block["body"], block["body"]


def test_links_lead_to_files_and_headings_that_exist() -> None:
    for path in PAGES:
        page = path.read_text()
        headings = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE)
        }
        for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page):
            file_name, _, heading = target.partition("#")
            assert (path.parent / file_name).exists(), f"{path.name}: {target}"
            assert not heading or heading in headings, f"{path.name}: {target}"


def test_settings_in_the_table_exist() -> None:
    table = (REPOSITORY / "README.md").read_text().partition("| Setting | Default |")[2].partition("\n\n")[0]
    names = re.findall(r"`([a-z_.<>]+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
    known = setting_names(Settings)
    sections = {name.rpartition(".")[0] for name in known}
    wanted = {re.sub("<[a-z]+>", "NAME", name) for name in names}
    assert len(wanted) > 10
    assert wanted <= {*known, *sections}


def test_a_shown_output_is_compared_as_a_whole() -> None:
    shown = "run run_01a22dc2-... took 12 ms\n...\nlast ... line\n"
    run_id = "run_01a22dbe-527c-7456-90a8-08aea249ad42"
    assert re.fullmatch(pattern_of(shown), f"run {run_id} took 3.5 s\na\nb\nlast of all line\n")
    assert not re.fullmatch(pattern_of(shown), f"run {run_id} took 3.5 s\na\nb\nlast of all line\nmore\n")
    assert not re.fullmatch(pattern_of(shown), "run run_1 took 3.5 s\nlast of all line\n")
