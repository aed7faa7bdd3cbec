"""`laneway backup` as a process: beside a busy server, without one, and refused."""

import asyncio
import json
import os
import pty
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import toml_for
from tests.unit.cli.processes import COMMAND, run


@pytest.fixture
async def server(tmp_path: Path, model: ModelServer) -> AsyncIterator[ServerProcess]:
    """A started one."""
    process = ServerProcess(tmp_path / "first", toml=toml_for(model))
    await process.start()
    yield process
    await process.close()


async def stored_run(server: ServerProcess, message: str) -> str:
    """The id of a run that has ended."""
    accepted = await server.accept(message, session_key=message)
    await server.wait(accepted.run_id)
    return accepted.run_id


async def test_a_backup_of_a_busy_server_starts_another_one_that_shows_its_runs(
    tmp_path: Path, model: ModelServer, server: ServerProcess
) -> None:
    run_id = await stored_run(server, "before")
    is_over = False

    async def keep_busy(name: str) -> int:
        count = 0
        while not is_over:
            await stored_run(server, f"{name} {count}")
            count += 1
        return count

    writers = [asyncio.create_task(keep_busy(f"writer {number}")) for number in range(3)]
    file = tmp_path / "copy.db"
    ended = await run("backup", str(file), "--json", environ={"LANEWAY_HOME": str(server.home)})
    is_over = True
    assert min(await asyncio.gather(*writers)) > 0
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert (document["file"], document["size_bytes"]) == (str(file), file.stat().st_size)
    assert (document["blobs"], document["blobs_folder"]) == (0, None)

    restored = ServerProcess(tmp_path / "second", toml=toml_for(model))
    restored.home.mkdir(parents=True)
    file.rename(restored.home / "laneway.db")
    await restored.start()
    try:
        events = await restored.events(run_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [payload.text for payload in (await restored.wait(run_id)).payloads] == ["ok"]
        assert await stored_run(restored, "after") != run_id
    finally:
        await restored.close()


async def test_a_backup_needs_no_server_and_replaces_nothing_unasked(tmp_path: Path, server: ServerProcess) -> None:
    await stored_run(server, "hello")
    await server.kill()  # what it wrote last is in the write-ahead log only
    environ = {"LANEWAY_HOME": str(server.home), "LANEWAY_LISTEN": "0.0.0.0:1"}
    file = tmp_path / "copy.db"
    first = await run("backup", str(file), environ=environ)
    assert first.code == 0
    assert first.out.startswith(f"{file}: ")
    assert "KiB, checked, store " in first.out
    content = file.read_bytes()
    second = await run("backup", str(file), environ=environ)
    assert (second.code, second.out) == (2, "")
    assert "replace it with --force" in second.err
    assert file.read_bytes() == content
    third = await run("backup", str(file), "--force", environ=environ)
    assert (third.code, third.out) == (0, first.out)


async def test_on_a_terminal_the_progress_is_shown(tmp_path: Path, server: ServerProcess) -> None:
    terminal, end_of_command = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "backup",
        str(tmp_path / "copy.db"),
        stdout=PIPE,
        stderr=end_of_command,
        env={**os.environ, "LANEWAY_HOME": str(server.home), "TERM": "xterm"},
    )
    os.close(end_of_command)
    out, _ = await process.communicate()
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert process.returncode == 0
    assert "checked" in out.decode()
    assert "copying" in shown or "checking" in shown
    assert "\x1b[" in shown


async def test_without_a_database_the_command_says_so_and_ends_with_1(home: Path) -> None:
    ended = await run("backup", str(home / "copy.db"), environ={"LANEWAY_HOME": str(home)})
    assert (ended.code, ended.out) == (1, "")
    assert f"there is no database {home}/laneway.db" in ended.err
    assert list(home.iterdir()) == []


async def test_wrong_settings_end_it_with_2(home: Path) -> None:
    ended = await run("backup", "copy.db", environ={"LANEWAY_HOME": str(home), "LANEWAY_STORE__ULR": "x"})
    assert (ended.code, ended.out) == (2, "")
    assert "the nearest known one is `store.url`" in ended.err
