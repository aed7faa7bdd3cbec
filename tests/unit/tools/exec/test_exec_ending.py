"""How a call of `exec` ends, and that everything it started ends with it (B-067, B-068). No test sleeps."""

import asyncio
import os
import subprocess
import time

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.tools.exec.stage import (
    STUBBORN_TREE,
    Shell,
    death_of,
    is_dead,
    stubborn_tree,
    zombies_of_ours,
)

from lanewayd.tools.processes import ProcessHandle


async def test_b067_a_timeout_ends_the_whole_tree(
    shell: Shell, clock: FakeClock, bystander: subprocess.Popen[bytes]
) -> None:
    call = asyncio.create_task(shell.run(STUBBORN_TREE, timeoutSeconds=1))
    line = await shell.reports.get()
    with stubborn_tree(shell, line) as tree:
        await clock.advance(1)
        for handle in tree[:2]:
            await death_of(handle)
        await clock.advance(1.4)
        assert not call.done()
        assert not is_dead(tree[2])
        await clock.advance(0.1)
        result = await call
        assert all(is_dead(handle) for handle in tree)
    assert result.is_error
    assert result.text == f"{line}\n[timed out after 1 s; the command and what it started were ended]"
    assert bystander.poll() is None
    assert zombies_of_ours() == []


async def test_b067_a_cancelled_call_ends_the_whole_tree(
    shell: Shell, clock: FakeClock, bystander: subprocess.Popen[bytes]
) -> None:
    call = asyncio.create_task(shell.run(STUBBORN_TREE))
    line = await shell.reports.get()
    with stubborn_tree(shell, line) as tree:
        call.cancel()
        for handle in tree[:2]:
            await death_of(handle)
        # Neither does a second cancel leave anything behind.
        call.cancel()
        await clock.advance(1.4)
        assert not call.done()
        await clock.advance(0.1)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert all(is_dead(handle) for handle in tree)
    assert bystander.poll() is None
    assert zombies_of_ours() == []


async def test_what_was_printed_before_a_cancel_is_reported(shell: Shell, clock: FakeClock) -> None:
    # Its stderr is shut, because the shell may say there that TERM has ended its sleep.
    command = "exec 2>/dev/null; trap 'echo bye; exit' TERM; echo first; while :; do sleep 0.01; done"
    call = asyncio.create_task(shell.run(command))
    assert await shell.reports.get() == "first\n"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert shell.reports.get_nowait() == "first\nbye\n"


async def test_a_call_that_is_cancelled_while_it_starts_leaves_nothing(real_shell: Shell) -> None:
    for steps in range(12):
        call = asyncio.create_task(real_shell.run("sleep 300"))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert real_shell.alive() == []
    assert zombies_of_ours() == []


@pytest.mark.parametrize("background", ["sleep 60 &", "setsid sleep 60 &", "sleep 60 >/dev/null 2>&1 &"])
async def test_b068_a_call_ends_with_its_shell_and_so_does_what_it_left(shell: Shell, background: str) -> None:
    # The clock stands still: nothing here waits for time to pass.
    started = time.monotonic()
    result = await shell.run(f"echo done; {background}")
    # A second when the machine is idle; other tests may run beside this one.
    assert time.monotonic() - started < 5
    assert result.text == "done\n\n[1 background processes were ended with the call]"
    assert not result.is_error
    assert shell.alive() == []


async def test_b068_a_child_without_marks_is_found_while_its_parent_lives(shell: Shell, clock: FakeClock) -> None:
    call = asyncio.create_task(shell.run("env -i setsid sleep 300 & echo $!; wait", timeoutSeconds=1))
    pidfd = os.pidfd_open(int(await shell.reports.get()))
    handle = ProcessHandle(0, pidfd)
    await clock.advance(1)
    await call
    assert is_dead(handle)
    handle.close()


async def test_b068_a_background_child_that_ignores_term_is_killed_within_a_second(real_shell: Shell) -> None:
    started = time.monotonic()
    result = await real_shell.run(
        "(trap '' TERM; touch up; sleep 60) & until [ -e up ]; do sleep 0.01; done; echo done"
    )
    assert time.monotonic() - started < 10
    assert result.text.startswith("done\n")
    assert real_shell.alive() == []
