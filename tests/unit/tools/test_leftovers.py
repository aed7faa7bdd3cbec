"""Ending what earlier starts left behind, with real processes."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.tools.leftovers import Leftovers, Owner, find_call, find_other_starts
from lanewayd.tools.processes import ProcessHandle, close_all, end_processes, living_processes, with_descendants

# Another test process must not take our processes for its own.
HOME = f"home-{uuid.uuid4().hex}"
NOW = Owner(HOME, "now")
# Its output ends when both sleeps are in place, the first one ignoring TERM.
TREE = """(trap "" TERM; exec sleep 300 >&-) & sleep 300 >&- & exec >&-; wait"""


@contextmanager
def orphans(owner: str, call_id: str = "call_1") -> Iterator[list[ProcessHandle]]:
    """The tree whose parent was killed, as a killed server leaves it."""
    environment = {**os.environ, "LANEWAY_OWNER": owner, "LANEWAY_RUN_ID": "run_1", "LANEWAY_CALL_ID": call_id}
    parent = subprocess.Popen(["sh", "-c", TREE], env=environment, start_new_session=True, stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        parent.stdout.read()
        children = with_descendants([parent.pid], living_processes()) - {parent.pid}
        handles = [ProcessHandle(pid, os.pidfd_open(pid)) for pid in children]
        parent.kill()
    try:
        assert len(handles) == 2
        yield handles
    finally:
        for handle in handles:
            handle.signal(signal.SIGKILL)
        close_all(handles)


def are_dead(handles: list[ProcessHandle]) -> list[bool]:
    poller = select.poll()
    for handle in handles:
        poller.register(handle.pidfd, select.POLLIN)
    dead = {pidfd for pidfd, _ in poller.poll(0)}
    return [handle.pidfd in dead for handle in handles]


async def test_what_another_start_left_is_dead_afterwards_and_nothing_else() -> None:
    clock = FakeClock()
    leftovers = Leftovers(owner=NOW, clock=clock)
    with (
        orphans(f"{HOME}/before") as left,
        orphans(str(NOW)) as own,
        orphans(f"{HOME}-2/before") as others,
        orphans("") as unmarked,
    ):
        ending = asyncio.create_task(leftovers.end_of_other_starts())
        await clock.wait_for_timers(1)
        assert not ending.done()
        await clock.advance(2)
        assert await ending == 2
        assert are_dead(left) == [True, True]
        for spared in (own, others, unmarked):
            assert are_dead(spared) == [False, False]


async def test_one_call_can_be_ended() -> None:
    clock = FakeClock()
    with orphans(str(NOW), "call_1") as ended, orphans(str(NOW), "call_2") as spared:
        ending = asyncio.create_task(end_processes(lambda: find_call(NOW, "run_1", "call_1"), clock=clock, grace_s=2))
        await clock.wait_for_timers(1)
        await clock.advance(2)
        assert await ending == 2
        assert are_dead(ended) == [True, True]
        assert are_dead(spared) == [False, False]


async def test_without_left_overs_nothing_is_waited_for() -> None:
    assert await Leftovers(owner=NOW, clock=FakeClock()).end_of_other_starts() == 0


def test_a_service_that_was_itself_started_by_an_earlier_one_spares_itself() -> None:
    program = (
        "import os; from lanewayd.tools.leftovers import Owner, find_other_starts; "
        f"print([handle.pid for handle in find_other_starts(Owner('{HOME}', 'now'))], os.getpid())"
    )
    environment = {**os.environ, "LANEWAY_OWNER": f"{HOME}/before"}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith("[] ")


@pytest.mark.parametrize(("home_id", "start_id"), [("", "s"), ("h", ""), ("h/i", "s"), ("h", "s/t")])
def test_an_owner_that_could_be_mistaken_for_another_is_refused(home_id: str, start_id: str) -> None:
    with pytest.raises(ValueError, match="home id"):
        Owner(home_id, start_id)


def test_finding_leaves_no_descriptor_when_it_finds_nothing() -> None:
    before = len(list(os.scandir("/proc/self/fd")))
    assert find_other_starts(NOW) == []
    assert len(list(os.scandir("/proc/self/fd"))) == before
