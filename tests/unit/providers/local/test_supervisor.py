"""The process of the embedded model: started on first use, restarted when it dies, ended with the service."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.providers.local.engines import (
    DIES,
    REFUSES,
    SAYS_NONSENSE,
    SAYS_NOTHING,
    SERVES,
    command,
)

from lanewayd.clock import Clock, SystemClock
from lanewayd.providers.local.process import ModelCommand, ModelProcess, StartFailed
from lanewayd.providers.local.supervisor import ModelSupervisor, ModelUnavailable, restart_delay_s


class Starts:
    """Gives the command of each start; the last one again and again. Counts them."""

    def __init__(self, *programs: str) -> None:
        self._programs = programs
        self.count = 0

    def __call__(self) -> ModelCommand:
        program = self._programs[min(self.count, len(self._programs) - 1)]
        self.count += 1
        return command(program)


Supervise = Callable[..., ModelSupervisor]


@pytest.fixture
async def supervise() -> AsyncIterator[Supervise]:
    made: list[ModelSupervisor] = []

    def make(
        starts: Callable[[], ModelCommand], *, clock: Clock | None = None, start_limit_s: float = 30.0
    ) -> ModelSupervisor:
        made.append(ModelSupervisor(starts, clock=clock or SystemClock(), start_limit_s=start_limit_s))
        return made[-1]

    yield make
    for supervisor in made:
        await supervisor.close()


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def die_and_restart(supervisor: ModelSupervisor, clock: FakeClock) -> int:
    """Kill the process and wait for the pause after it to pass; the number of the dead one."""
    pid = supervisor.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await clock.wait_for_sleepers(1)
    await clock.advance(30)
    return pid


async def test_nothing_is_started_before_it_is_used(supervise: Supervise) -> None:
    starts = Starts(SERVES)
    supervisor = supervise(starts)
    assert (starts.count, supervisor.pid) == (0, None)
    endpoint = await supervisor.endpoint()
    assert (endpoint.port, starts.count) == (4242, 1)
    assert supervisor.pid is not None


async def test_all_who_ask_share_one_process(supervise: Supervise) -> None:
    starts = Starts(SERVES)
    supervisor = supervise(starts)
    endpoints = await asyncio.gather(*(supervisor.endpoint() for _ in range(5)))
    assert len(set(endpoints)) == 1
    assert await supervisor.endpoint() == endpoints[0]
    assert starts.count == 1


async def test_one_that_dies_is_restarted_without_being_asked(supervise: Supervise) -> None:
    clock = FakeClock()
    supervisor = supervise(Starts(SERVES), clock=clock)
    first = await supervisor.endpoint()
    former_pid = await die_and_restart(supervisor, clock)
    second = await supervisor.endpoint()
    assert (first.start_number, second.start_number) == (1, 2)
    assert supervisor.pid not in (None, former_pid)
    assert not lives(former_pid)


async def test_a_restart_asked_for_ends_only_the_process_that_was_meant(supervise: Supervise) -> None:
    clock = FakeClock()
    supervisor = supervise(Starts(SERVES), clock=clock)
    first = await supervisor.endpoint()
    supervisor.restart(first)
    await clock.wait_for_sleepers(1)
    await clock.advance(30)
    second = await supervisor.endpoint()
    assert second.start_number == 2
    pid = supervisor.pid
    supervisor.restart(first)  # came late: its process is dead already
    assert (await supervisor.endpoint(), supervisor.pid) == (second, pid)


@pytest.mark.parametrize(
    ("program", "reason"),
    [(REFUSES, "no such architecture"), (DIES, "it died"), (SAYS_NONSENSE, "it died")],
)
async def test_one_that_does_not_come_up_is_an_answer_and_the_next_use_tries_again(
    supervise: Supervise, program: str, reason: str
) -> None:
    starts = Starts(program, SERVES)
    supervisor = supervise(starts)
    with pytest.raises(ModelUnavailable, match=reason):
        await supervisor.endpoint()
    assert supervisor.pid is None
    assert (await supervisor.endpoint()).port == 4242
    assert starts.count == 2


async def test_one_that_says_nothing_is_ended_after_the_limit(supervise: Supervise) -> None:
    supervisor = supervise(Starts(SAYS_NOTHING), start_limit_s=0.2)
    with pytest.raises(ModelUnavailable, match=r"not ready within 0\.2 s"):
        await supervisor.endpoint()


async def test_one_that_cannot_be_executed_is_an_answer(supervise: Supervise) -> None:
    supervisor = supervise(lambda: ModelCommand(("/nowhere/python",), {}, b"{}\n"))
    with pytest.raises(ModelUnavailable, match="cannot be started"):
        await supervisor.endpoint()


async def test_what_keeps_the_command_from_being_made_is_the_reason(supervise: Supervise) -> None:
    def damaged() -> ModelCommand:
        raise StartFailed("the weights are damaged")

    with pytest.raises(ModelUnavailable, match="the weights are damaged"):
        await supervise(damaged).endpoint()


async def test_one_that_died_too_early_again_is_told_to_those_who_wait(supervise: Supervise) -> None:
    clock = FakeClock()
    supervisor = supervise(Starts(SERVES, REFUSES), clock=clock)
    await supervisor.endpoint()
    await die_and_restart(supervisor, clock)
    with pytest.raises(ModelUnavailable, match="no such architecture"):
        await supervisor.endpoint()


async def test_closing_ends_the_process_and_refuses_later_use(supervise: Supervise) -> None:
    supervisor = supervise(Starts(SERVES))
    await supervisor.endpoint()
    pid = supervisor.pid
    assert pid is not None
    await supervisor.close()
    assert not lives(pid)
    with pytest.raises(ModelUnavailable, match="leaving"):
        await supervisor.endpoint()
    await supervisor.close()


async def test_closing_during_the_start_leaves_nobody_waiting_and_nothing_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    os.mkfifo(pid_file)
    program = f"import os\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\n{SAYS_NOTHING}"
    supervisor = ModelSupervisor(lambda: command(program), clock=SystemClock())
    waiting = asyncio.create_task(supervisor.endpoint())
    pid = int(await asyncio.to_thread(pid_file.read_text))
    await supervisor.close()
    with pytest.raises(ModelUnavailable):
        await waiting
    assert not lives(pid)


async def test_closing_before_the_process_exists_leaves_nothing_behind(tmp_path: Path) -> None:
    may_start, is_asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    started: list[ModelCommand] = []

    def held() -> ModelCommand:
        loop.call_soon_threadsafe(is_asked.set)
        asyncio.run_coroutine_threadsafe(may_start.wait(), loop).result()
        started.append(command(f"open({str(tmp_path / 'alive')!r}, 'w')\n{SERVES}"))
        return started[0]

    supervisor = ModelSupervisor(held, clock=SystemClock())
    waiting = asyncio.create_task(supervisor.endpoint())
    await is_asked.wait()
    closing = asyncio.create_task(supervisor.close())
    await asyncio.sleep(0)
    may_start.set()
    await closing
    assert len(started) == 1
    assert supervisor.pid is None
    with pytest.raises(ModelUnavailable):
        await waiting


async def test_who_gives_up_waiting_takes_nothing_from_the_others(supervise: Supervise) -> None:
    supervisor = supervise(Starts(SERVES))
    impatient, patient = asyncio.create_task(supervisor.endpoint()), asyncio.create_task(supervisor.endpoint())
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).port == 4242
    assert impatient.cancelled()


async def test_a_process_ends_when_its_parent_lets_go_of_its_stdin() -> None:
    process = await asyncio.to_thread(ModelProcess, command(SERVES))
    assert await process.port(clock=SystemClock(), limit_s=30) == 4242
    os.close(process._stdin_fd)  # noqa: SLF001 - what the kernel does when the parent is killed
    await process.death()
    process._stdin_fd = os.open(os.devnull, os.O_RDONLY)  # noqa: SLF001 - so that `end` has one to close
    assert await process.end() == 0


async def test_it_has_a_session_and_only_the_environment_that_it_was_given(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\nspec = sys.stdin.buffer.readline().decode()\n"
        "said = [sorted(os.environ), os.getsid(0) == os.getpid(), os.getcwd(), spec]\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(repr(said))\n"
        'print(json.dumps({"port": 1}), flush=True)\nwhile os.read(0, 100): pass\n'
    )
    process = await asyncio.to_thread(ModelProcess, command(program, spec=b"the spec\n", LANEWAY_OWNER="h/s"))
    await process.port(clock=SystemClock(), limit_s=30)
    await process.end()
    said = (tmp_path / "said").read_text().replace("'LC_CTYPE', ", "")  # Python's own
    assert said == repr([["LANEWAY_OWNER", "PATH"], True, "/", "the spec\n"])


async def test_a_start_leaves_no_descriptor_behind(supervise: Supervise) -> None:
    before = open_descriptors()
    supervisor = supervise(Starts(SERVES, REFUSES))
    await supervisor.endpoint()
    supervisor.restart(await supervisor.endpoint())
    await supervisor.close()
    for program in (REFUSES, DIES):
        with pytest.raises(ModelUnavailable):
            await supervise(Starts(program)).endpoint()
    assert open_descriptors() <= before


def test_the_pauses_between_restarts_grow_to_half_a_minute() -> None:
    assert [restart_delay_s(deaths) for deaths in (1, 2, 3, 7, 8, 9, 10_000)] == [0.25, 0.5, 1, 16, 30, 30, 30]


async def test_the_pause_is_waited_for_and_forgotten_after_a_steady_minute(supervise: Supervise) -> None:
    clock, starts = FakeClock(), Starts(SERVES)
    supervisor = supervise(starts, clock=clock)
    for number, (lived_s, pause_s) in enumerate(((0, 0.25), (0, 0.5), (61, 0.25)), start=1):
        assert (await supervisor.endpoint()).start_number == number
        await clock.advance(lived_s)
        assert supervisor.pid is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        await clock.wait_for_sleepers(1)
        await clock.advance(pause_s - 0.01)
        assert clock.sleeper_count == 1
        await clock.advance(0.02)
        assert clock.sleeper_count == 0
