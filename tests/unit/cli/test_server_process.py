import os
import signal
from pathlib import Path

import pytest

from laneway.cli.exits import CliError, ExitCode
from laneway.cli.server_process import ServerProcess


def environ(home: Path) -> dict[str, str]:
    """Settings that no server starts with; what a tool call of another server left in the environment."""
    return {**os.environ, "LANEWAY_HOME": str(home), "LANEWAY_NO__SETTING": "1", "LANEWAY_RUN_ID": "run_1"}


async def test_a_refusal_is_told_at_once_with_the_end_of_the_log(home: Path) -> None:
    process = ServerProcess.start(home, [], environ(home))
    with pytest.raises(CliError, match="unknown setting `no`") as caught:
        await process.answers(f"unix:{home}/none.sock")
    assert caught.value.exit_code is ExitCode.NO_SERVER
    assert await process.exit_status() == 2
    assert not process.is_running
    process.forget()


async def test_a_long_log_is_put_aside_and_an_old_one_is_not_shown(home: Path) -> None:
    (home / "run").mkdir()
    log = home / "run" / "server.log"
    log.write_bytes(b"long ago\n" * 200_000)
    process = ServerProcess.start(home, [], environ(home))
    await process.exit_status()
    process.forget()
    assert "long ago" not in process.log_tail()
    assert log.stat().st_size < 1000
    assert (home / "run" / "server.log.old").stat().st_size == 1_800_000


async def test_the_server_gets_no_open_file_of_its_starter(home: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    process = ServerProcess.start(home, [f"--listen=unix:{home}/s.sock"], {**os.environ, "LANEWAY_HOME": str(home)})
    await process.answers(f"unix:{home}/s.sock")
    os.close(writer)
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b""  # the end: nobody else holds the writing side
    os.close(reader)
    assert await process.stop() == 0
    process.forget()


async def test_a_server_that_does_not_leave_is_killed(home: Path) -> None:
    process = ServerProcess.start(home, [f"--listen=unix:{home}/s.sock"], {**os.environ, "LANEWAY_HOME": str(home)})
    await process.answers(f"unix:{home}/s.sock")
    os.kill(process.pid, signal.SIGSTOP)
    assert await process.stop(kill_after_s=0.05) == -signal.SIGKILL
    process.forget()


def test_a_home_that_cannot_be_written_is_explained() -> None:
    with pytest.raises(CliError, match="no server can be started in /proc/none"):
        ServerProcess.start(Path("/proc/none"), [], {})
