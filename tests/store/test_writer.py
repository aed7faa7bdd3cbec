"""Group commit: who hears what, when, and what a refused, cancelled or failed command leaves behind."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.commit_gates import HoldingGate
from tests.fakes.commit_listener import RecordingListener
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import (
    SESSION,
    TENANT,
    a_key,
    a_refusal,
    a_request,
    accept_run,
    an_entry,
    append_to,
    running,
    says,
    start_run,
)

from lanewayd.errors import ClaimLost, LanewayError, StoreUnavailable
from lanewayd.records import ToolCallRow, ToolCallState
from lanewayd.store.interface import AcceptRun, AppendToRun, RunChange, RunFilter
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer import WriterLimits

SOON = WriterLimits(first_retry_s=0.001, last_retry_s=0.004)


async def open_store(home: Path, **options: Any) -> SqliteStore:
    return await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), **options)


def hold_run(run_id: str, *, after: bool = False) -> HoldingGate:
    return HoldingGate(lambda command: isinstance(command, AcceptRun) and command.run_id == run_id, after=after)


async def submit(*calls: Any) -> list[asyncio.Task[Any]]:
    """The calls, each on its way to the writer."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


async def stored_runs(store: SqliteStore) -> set[str]:
    return {run.run_id for run in await store.runs(TENANT, RunFilter(), before_no=None, limit=10_000)}


class GroupGate(HoldingGate):
    """Holds the first run `gate`, and remembers the sizes of all groups."""

    def __init__(self) -> None:
        super().__init__(lambda command: isinstance(command, AcceptRun) and command.run_id == "gate")
        self.groups: list[int] = []

    def before_commit(self, commands: Sequence[object]) -> None:
        self.groups.append(len(commands))
        super().before_commit(commands)


async def test_what_is_submitted_during_a_commit_is_committed_together(tmp_path: Path) -> None:
    gate = GroupGate()
    store = await open_store(tmp_path, gate=gate)
    first = await submit(store.accept(accept_run("gate")))
    await gate.reached()
    rest = await submit(*(store.accept(accept_run(f"r{number}", f"s{number}")) for number in range(40)))
    gate.release()
    await asyncio.gather(*first, *rest)
    assert gate.groups == [1, 40]
    await store.close()


async def test_a_group_is_bounded(tmp_path: Path) -> None:
    gate = GroupGate()
    store = await open_store(tmp_path, gate=gate, limits=WriterLimits(max_group=16))
    first = await submit(store.accept(accept_run("gate")))
    await gate.reached()
    rest = await submit(*(store.accept(accept_run(f"r{number}", f"s{number}")) for number in range(40)))
    gate.release()
    await asyncio.gather(*first, *rest)
    assert gate.groups == [1, 16, 16, 8]
    await store.close()


async def test_a_refused_command_leaves_no_trace_and_its_neighbours_alone(tmp_path: Path) -> None:
    gate = GroupGate()
    store = await open_store(tmp_path, gate=gate)
    listener = store.listener = RecordingListener()
    await running(store, "r1")
    first = await submit(store.accept(accept_run("gate", "s0")))
    await gate.reached()
    unknown_call = ToolCallRow("r1", "c", "e1", 0, "read", "{}", ToolCallState.LAUNCHED)
    calls = await submit(
        store.append(append_to("r1", 2, says("one"))),
        store.append(append_to("r1", 9, says("refused before it wrote"))),
        store.append(append_to("r1", 3, RunChange(entries=(an_entry("e1"),), tool_calls=(unknown_call,)))),
        store.append(append_to("r1", 3, says("two"))),
        store.accept(accept_run("r2", "s2", refusal=a_refusal())),
        store.append(append_to("r1", 4, says("three"), RunChange(entries=(an_entry("e2"),)))),
    )
    gate.release()
    results = await asyncio.gather(*first, *calls, return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [
        ClaimLost,
        ValueError,
        LanewayError,
    ]
    assert gate.groups[-1] == 3
    page = await store.run_events(TENANT, "r1", after_seq=0, limit=10)
    assert page is not None
    assert [event.seq for event in page.events] == [1, 2, 3, 4]
    assert len({event.position for event in page.events}) == 4
    assert [entry.entry_id for entry in await store.context(f"id of {SESSION}")] == ["e2"]
    assert len(listener.heard) == 2 + 1 + 3
    await store.close()


async def test_the_listener_hears_in_commit_order_and_before_the_caller_wakes(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    listener = store.listener = RecordingListener()
    heard_at_waking: list[int] = []

    async def accept(number: int) -> int:
        accepted = await store.accept(accept_run(f"r{number}", f"s{number}"))
        heard_at_waking.append([command.run_id for command, _ in listener.heard].index(accepted.run_id))  # type: ignore[attr-defined]
        assert accepted.run is not None
        return accepted.run.accepted_no

    numbers = await asyncio.gather(*(accept(number) for number in range(30)))
    assert sorted(heard_at_waking) == list(range(30))
    assert [result.run.accepted_no for _, result in listener.heard] == sorted(numbers)  # type: ignore[attr-defined]
    await store.close()


async def test_nobody_hears_before_the_group_is_durable(tmp_path: Path) -> None:
    gate = hold_run("r1")
    store = await open_store(tmp_path, gate=gate)
    listener = store.listener = RecordingListener()
    first = await submit(store.accept(accept_run("r1", key=a_key())))
    await gate.reached()
    duplicate = await submit(store.accept(accept_run("r2", key=a_key())))
    assert await store.run(TENANT, "r1") is None
    assert (listener.heard, first[0].done(), duplicate[0].done()) == ([], False, False)
    gate.release()
    answers = await asyncio.gather(*first, *duplicate)
    assert [(answer.run_id, answer.duplicate) for answer in answers] == [("r1", False), ("r1", True)]
    await store.close()


async def test_a_listener_that_raises_keeps_nobody_waiting(tmp_path: Path) -> None:
    class Broken(RecordingListener):
        def committed(self, command: object, result: object) -> None:
            raise RuntimeError("a bug")

    store = await open_store(tmp_path)
    store.listener = Broken()
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    await asyncio.gather(*(store.accept(accept_run(f"r{number}", f"s{number}")) for number in range(3)))
    assert [str(context["exception"]) for context in reported] == ["a bug"] * 3
    await store.close()


async def test_a_cancelled_caller_changes_nothing_for_its_command(tmp_path: Path) -> None:
    gate = hold_run("gate")
    store = await open_store(tmp_path, gate=gate)
    listener = store.listener = RecordingListener()
    held = await submit(store.accept(accept_run("gate", "s")))
    await gate.reached()
    callers = []
    for number in range(1000):
        callers.append(
            asyncio.ensure_future(store.accept(accept_run(f"r{number}", f"s{number}", key=a_key(f"k{number}"))))
        )
        for _ in range(number % 3):  # before it was submitted, right after, and one turn later
            await asyncio.sleep(0)
        callers[-1].cancel()
    gate.release()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert {type(result) for result in results} == {asyncio.CancelledError}
    await asyncio.gather(*held)
    last = await store.accept(accept_run("last", "s"))
    assert last.run is not None
    stored = await stored_runs(store)
    assert stored == {command.run_id for command, _ in listener.heard}  # type: ignore[attr-defined]
    assert stored == {"gate", "last", *(f"r{number}" for number in range(1000) if number % 3)}
    for number in (0, 1, 2):  # repeating the key tells which
        answer = await store.accept(accept_run("again", f"s{number}", key=a_key(f"k{number}")))
        assert answer.duplicate == (f"r{number}" in stored)
        if not answer.duplicate:
            assert answer.run_id == "again"
    await store.close()


async def test_closing_commits_what_was_submitted_and_refuses_what_comes_later(tmp_path: Path) -> None:
    gate = hold_run("r0")
    store = await open_store(tmp_path, gate=gate)
    calls = await submit(store.accept(accept_run("r0")))
    await gate.reached()
    calls += await submit(store.accept(accept_run("r1")), store.close(), store.close())
    gate.release()
    await asyncio.gather(*calls)
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.accept(accept_run("r2"))
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.last_position()
    assert not (tmp_path / "laneway.db-wal").exists()
    store = await open_store(tmp_path)
    assert await stored_runs(store) == {"r0", "r1"}
    await store.close()


async def write_and_read(store: SqliteStore) -> None:
    """20,000 events of 8 runs, while two readers never stop."""
    for number in range(8):
        await running(store, f"r{number}", f"s{number}")
    is_over = False

    async def read() -> None:
        while not is_over:
            await store.run_events(TENANT, "r0", after_seq=0, limit=100)
            await store.all_events(TENANT, after=0, limit=100)

    async def write(number: int) -> None:
        for step in range(250):
            await store.append(append_to(f"r{number}", 2 + 10 * step, says(*"abcdefghij")))

    readers = await submit(read(), read())
    await asyncio.gather(*(write(number) for number in range(8)))
    is_over = True
    await asyncio.gather(*readers)


async def test_reads_do_not_hold_back_the_checkpoint(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await write_and_read(store)
    # One unfinished SELECT on another connection lets it grow to 29 MB.
    assert (tmp_path / "laneway.db-wal").stat().st_size < 24 * 2**20
    await store.close()


async def test_a_message_of_a_megabyte_does_not_weigh_on_each_append(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await store.accept(accept_run("r1", request=a_request(message="m" * 2**20)))
    await store.start(start_run("r1"))
    before = (await store.figures()).size_bytes
    for seq in range(2, 200):
        await store.append(AppendToRun("r1", 1, seq, (says("x"),)))
    assert (await store.figures()).size_bytes - before < 6 * 2**20
    await store.close()
