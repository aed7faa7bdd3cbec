"""Output that cannot be written ends a command with one line, whatever the command is."""

import asyncio
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.fakes.store_codec import JsonCodec
from tests.unit.cli.processes import COMMAND, clean_environ

from lanewayd.store.sqlite import SqliteStore


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["config show", "backup"])
async def test_a_full_disk_behind_the_output_is_said_in_one_line(tmp_path: Path, command: str, unbuffered: str) -> None:
    store = await SqliteStore.open(tmp_path / "laneway.db", codec=JsonCodec())
    await store.close()
    copy = tmp_path / "copy.db"
    arguments = [*command.split(), *([str(copy)] if command == "backup" else [])]
    environ = clean_environ({"LANEWAY_HOME": str(tmp_path), "PYTHONUNBUFFERED": unbuffered})
    full = os.open("/dev/full", os.O_WRONLY)
    process = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stdout=full, stderr=PIPE, env=environ)
    os.close(full)
    _, err = await process.communicate()
    assert process.returncode == 2
    assert err == b"laneway: the output cannot be written: No space left on device; what was done stands\n"
    assert copy.exists() == (command == "backup")
