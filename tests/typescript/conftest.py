"""The TypeScript client, installed and compiled once, and its programs as processes."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Self

import pytest
from filelock import FileLock
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import toml_for

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
INSTALLED_FROM = ("package.json", "package-lock.json", ".npmrc")
COMPILED_FROM = ("src", "examples", "test", "tsconfig.json")
OLDEST_NODE = (20, 3)
INSTALL_S = 150


def hash_of(names: tuple[str, ...]) -> str:
    """Of the files, and of all files below the folders, in the client's folder."""
    digest = hashlib.sha256()
    for name in names:
        path = CLIENT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(f"{file.relative_to(CLIENT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def what_is_missing() -> str:
    """Why the client cannot be tested on this machine; empty if it can."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    numbers = tuple(int(part) for part in version.removeprefix("v").split(".")[:2])
    return "" if numbers >= OLDEST_NODE else f"node is {version}, 20.3 or newer is needed"


def run(*command: str, **variables: str) -> str:
    """The output of a command in the client's folder, which must succeed."""
    done = subprocess.run(
        command,
        check=False,
        cwd=CLIENT,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        output = f"{done.stdout}{done.stderr}"
        pytest.fail(f"`{' '.join(command)}` ended with {done.returncode}:\n{output}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def typescript() -> Path:
    """The folder of the client, with node_modules and dist up to date. One of several test processes makes them."""
    if reason := what_is_missing():
        pytest.skip(f"THE TYPESCRIPT CLIENT IS NOT TESTED: {reason}")
    dist = CLIENT / "dist"
    dist.mkdir(exist_ok=True)
    with FileLock(dist / ".lock", timeout=INSTALL_S):
        _once(CLIENT / "node_modules" / ".installed", INSTALLED_FROM, _install)
        _once(dist / ".compiled", (*INSTALLED_FROM, *COMPILED_FROM), _compile)
    return CLIENT


def _once(stamp: Path, names: tuple[str, ...], make: Callable[[], None]) -> None:
    wanted = hash_of(names)
    if not stamp.exists() or stamp.read_text() != wanted:
        make()
        stamp.write_text(wanted)


def _install() -> None:
    run("npm", "ci", "--prefer-offline")


def _compile() -> None:
    for child in (CLIENT / "dist").iterdir():
        if child.is_dir():
            shutil.rmtree(child)
    run("npm", "run", "build")


class Program:
    """A compiled program of the client that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []

    @classmethod
    async def start(cls, name: str, *arguments: str, address: str) -> Self:
        """`name` is its path below dist, without suffix."""
        process = await asyncio.create_subprocess_exec(
            "node",
            f"dist/{name}.js",
            *arguments,
            cwd=CLIENT,
            env={"PATH": os.environ["PATH"], "LANEWAY_ADDRESS": address},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return cls(process)

    async def line(self) -> str:
        """The next line."""
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert line, f"the program has ended: {self.lines}"
        self.lines.append(line.rstrip("\n"))
        return self.lines[-1]

    async def json(self) -> dict[str, Any]:
        """The next line, parsed."""
        line = await self.line()
        try:
            parsed: dict[str, Any] = json.loads(line)
        except ValueError:
            pytest.fail(line + (await self.rest())[0])
        return parsed

    async def rest(self) -> tuple[str, int]:
        """All that it still writes, and its exit code."""
        assert self._process.stdout is not None
        output = (await self._process.stdout.read()).decode()
        return output, await self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def close(self) -> None:
        """End it if it runs."""
        if self._process.returncode is None:
            self._process.kill()
            await self.rest()


@pytest.fixture
async def start(typescript: Path) -> AsyncGenerator[Callable[..., Any], None]:
    """Starts programs, as Program.start does."""
    started: list[Program] = []

    async def begin(name: str, *arguments: str, address: str) -> Program:
        started.append(await Program.start(name, *arguments, address=address))
        return started[-1]

    yield begin
    for program in started:
        await program.close()


@pytest.fixture
async def server(tmp_path: Path, model: ModelServer) -> AsyncGenerator[ServerProcess, None]:
    """A server process that knows the model and stores each delta; not started."""
    process = ServerProcess(tmp_path, toml=toml_for(model, "[events]\ndelta_interval_ms = 0\n"))
    yield process
    await process.close()
