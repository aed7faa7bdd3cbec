"""What `exec` shows and passes on: output, environment, reports (B-069, B-071, B-073). No test sleeps."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.tools.exec.stage import (
    CANARIES,
    OWNER,
    Shell,
    open_descriptors,
    zombies_of_ours,
)

from lanewayd.clock import SystemClock
from lanewayd.tools.processes import environment_of


@contextmanager
def bounded_growth(limit_bytes: int) -> Iterator[None]:
    """The peak of resident memory inside stays below the present use plus the limit."""

    def peak_bytes(field: str) -> int:
        match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert match is not None
        return int(match[1]) * 1024

    # Resets the peak. Source: proc(5), clear_refs.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_bytes("VmRSS")
    yield
    assert peak_bytes("VmHWM") - before < limit_bytes


async def test_b069_large_output_of_both_streams_is_capped_in_bounded_memory(real_shell: Shell) -> None:
    program = "import os\nb = b'x' * 65536\nfor _ in range(1600): os.write(1, b); os.write(2, b)\nos._exit(3)"
    with bounded_growth(32 * 1024 * 1024):
        result = await real_shell.run(f'{sys.executable} -c "{program}"')
    assert result.is_error
    assert result.text.endswith("\n\n[exit code 3]")
    assert re.search(r"\[\.\.\. \d+ of 209715200 characters left out \.\.\.\]", result.text)
    assert len(result.text) <= 16_000


async def test_b069_other_calls_go_on_while_one_floods(real_shell: Shell) -> None:
    flood = asyncio.create_task(real_shell.run("until [ -e go ]; do head -c 1000000 /dev/zero | tr '\\0' x; done"))
    await real_shell.reports.get()
    for _ in range(3):
        assert (await real_shell.run("echo hello")).text == "hello\n"
    assert not flood.done()
    await real_shell.run("touch go")
    assert not (await flood).is_error


async def test_b069_the_last_byte_without_a_line_end_is_kept(shell: Shell) -> None:
    assert (await shell.run("printf 'no newline at end'")).text == "no newline at end"


async def test_b069_binary_output_is_named_and_valid_text(real_shell: Shell) -> None:
    result = await real_shell.run("head -c 1000000 /dev/urandom")
    assert result.text.startswith("[binary output, 1000000 bytes")
    assert len(result.text.encode()) < 10_000


async def test_both_streams_come_in_the_order_they_were_written(shell: Shell) -> None:
    result = await shell.run("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done")
    assert result.text == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))


async def test_an_exit_code_is_told_and_the_output_is_kept(shell: Shell) -> None:
    result = await shell.run("echo some; exit 7")
    assert (result.text, result.is_error) == ("some\n\n[exit code 7]", True)
    assert (await shell.run("kill -9 $$")).text == "(no output)\n\n[ended by signal 9 (SIGKILL)]"
    assert (await shell.run("true")).text == "(no output)"


async def test_a_command_gets_no_input(shell: Shell) -> None:
    assert (await shell.run("cat; echo end")).text == "end\n"


async def test_a_command_may_close_its_output_and_go_on(shell: Shell) -> None:
    assert (await shell.run("echo a; exec >&- 2>&-; sleep 0.05; exit 4")).text == "a\n\n[exit code 4]"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"command": "true", "workdir": "nowhere"}, "nowhere is no directory"),
        ({"command": "echo \x00"}, "null byte"),
        ({"command": "echo \ud83d"}, "surrogates not allowed"),
        ({"command": "true", "env": {"A": "\x00"}}, "null byte"),
        ({"command": "true " + "x" * 5_000_000}, "Argument list too long"),
    ],
)
async def test_what_cannot_be_started_is_an_error_that_says_why(
    shell: Shell, arguments: dict[str, str], problem: str
) -> None:
    open_before = open_descriptors()
    result = await shell.run(**arguments)
    assert result.is_error
    assert result.text.startswith("The command was not started: ")
    assert problem in result.text
    assert open_descriptors() == open_before


async def test_it_runs_in_the_workspace_or_where_it_is_told(shell: Shell) -> None:
    (shell.workspace / "sub").mkdir()
    assert (await shell.run("pwd")).text.strip() == str(shell.workspace)
    assert (await shell.run("pwd", workdir="sub")).text.strip() == str(shell.workspace / "sub")
    assert (await shell.run("pwd", workdir="/")).text == "/\n"


@pytest.mark.parametrize(
    "command",
    [
        "env",
        "export -p",
        "cat /proc/self/environ",
        "cat /proc/$$/environ",
        f"{sys.executable} -c 'import os; print(dict(os.environ))'",
        "awk 'BEGIN { for (name in ENVIRON) print name, ENVIRON[name] }'",
        "perl -e 'print %ENV'",
    ],
)
async def test_b071_a_command_does_not_see_the_secrets_of_the_service(workspace: Path, command: str) -> None:
    environment = {**CANARIES, "LANG": "C.UTF-8", "LC_TIME": "C", "CHOSEN": "passed on"}
    shell = Shell(workspace, SystemClock(), environment)
    try:
        result = await shell.run(command, env={"MINE": "set by the call"})
    finally:
        shell.children.close()
    assert not result.is_error
    assert "canary" not in result.text
    for name in ("PATH", "HOME", "LANG", "LC_TIME", "CHOSEN", "MINE", "LANEWAY_RUN_ID", "LANEWAY_CALL_ID"):
        assert name in result.text
    for value in (str(OWNER), "127.0.0.1:50551", "set by the call", "passed on", "INSIDE_LANEWAY_EXEC"):
        assert value in result.text


async def test_b071_overrides_that_load_code_are_left_out_with_a_note(shell: Shell) -> None:
    refused = ["BASH_ENV", "LANEWAY_OWNER", "LD_PRELOAD", "PATH", "PYTHONPATH", "a=b"]
    result = await shell.run("env", env={**dict.fromkeys(refused, "/evil"), "FINE": "1"})
    assert "/evil" not in result.text
    assert "FINE=1" in result.text
    assert result.text.endswith(f"[not set, because exec does not accept them: {', '.join(refused)}]")


async def test_b071_the_environment_of_the_service_itself_can_be_hidden(workspace: Path) -> None:
    program = """
import asyncio, os, pathlib
from lanewayd.clock import SystemClock
from lanewayd.tools.children import ChildProcesses
from lanewayd.tools.interface import ToolContext
from lanewayd.tools.leftovers import Owner
from lanewayd.tools.own_environment import hide_own_environment
from lanewayd.tools.shell import ExecTool
assert hide_own_environment() >= 5
assert os.environ["OPENAI_API_KEY"] == "canary-1"
async def main():
    children = ChildProcesses(owner=Owner(str(os.getpid()), "s"), clock=SystemClock())
    tool = ExecTool(children=children, clock=SystemClock(), environment=os.environ)
    context = ToolContext("r", "c", "a", "s", pathlib.Path.cwd(), lambda text: None)
    print((await tool.run({"command": "cat /proc/$PPID/environ | tr '\\\\0' ' '"}, context)).text)
    children.close()
asyncio.run(main())
"""
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        env={**os.environ, **CANARIES},
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert f"PATH={os.environ['PATH']}" in run.stdout
    assert "OPENAI_API_KEY=" in run.stdout
    assert "canary" not in run.stdout


async def test_reports_are_cumulative_and_at_most_every_quarter_second(shell: Shell, clock: FakeClock) -> None:
    call = asyncio.create_task(
        shell.run("echo one; until [ -e go ]; do sleep 0.01; done; for i in 1 2 3; do echo $i; done; sleep 300")
    )
    assert await shell.reports.get() == "one\n"
    await clock.wait_for_timers(1)
    (shell.workspace / "go").touch()
    # The timer of the command's timeout and the one of the next report.
    await clock.wait_for_timers(2)
    assert shell.reports.empty()
    await clock.advance(0.25)
    assert (await shell.reports.get()).startswith("one\n1\n")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_report_is_capped(real_shell: Shell) -> None:
    await real_shell.run("head -c 500000 /dev/zero | tr '\\0' x")
    while not real_shell.reports.empty():
        assert len(real_shell.reports.get_nowait()) <= 8_000


async def test_hundred_quick_commands_leave_no_zombie_and_no_descriptor(real_shell: Shell) -> None:
    await real_shell.run("true")
    open_before = open_descriptors()
    results = []
    for _ in range(15):
        results += await asyncio.gather(*(real_shell.run(f"echo {n}; exit {n}") for n in range(8)))
    assert [result.text for result in results[:2]] == ["0\n", "1\n\n[exit code 1]"]
    assert zombies_of_ours() == []
    assert open_descriptors() == open_before


async def test_b073_orphans_of_a_command_are_no_zombies_of_ours(real_shell: Shell) -> None:
    for _ in range(20):
        assert not (await real_shell.run("sh -c '(sleep 0.1 &) ; exit 0'")).is_error
    assert zombies_of_ours() == []


async def test_a_child_carries_the_marks_of_its_owner(shell: Shell) -> None:
    # With a command behind it the shell does not become the sleep, and is never without an environment on the way.
    call = asyncio.create_task(shell.run("echo $$; sleep 300; true"))
    marks = environment_of(int(await shell.reports.get()))
    assert {f"LANEWAY_OWNER={OWNER}".encode(), b"LANEWAY_RUN_ID=run_1", b"LANEWAY_CALL_ID=call_1"} <= marks
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_signals_of_the_service_are_not_ignored_by_its_children(shell: Shell) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        assert (await shell.run("kill -INT $$; echo alive")).text == "(no output)\n\n[ended by signal 2 (SIGINT)]"
    finally:
        signal.signal(signal.SIGINT, before)


async def test_no_limit_means_no_timer(shell: Shell, clock: FakeClock) -> None:
    call = asyncio.create_task(shell.run("echo up; until [ -e go ]; do sleep 0.01; done", timeoutSeconds=0))
    await shell.reports.get()
    assert clock.timer_count == 0
    (shell.workspace / "go").touch()
    assert (await call).text == "up\n"
