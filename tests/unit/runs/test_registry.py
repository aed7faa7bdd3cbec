"""What callers ask of runs: accept, wait, list, abort (D-1, D-5, D-20, D-21)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.commit_gates import FailingGate, HoldingGate
from tests.unit.runs.bench import TENANT, Bench, running_bench, soon
from tests.unit.runs.seen_store import Wrapped
from tests.unit.runs.staged_model import answer

from lanewayd.errors import LanewayError
from lanewayd.records import RunState
from lanewayd.runs.interface import AbortReceipt, NewMessage, WaitOutcome
from lanewayd.store.interface import AcceptRun, AppendToRun


def a_message(**fields: Any) -> NewMessage:
    fields.setdefault("session_key", "talk")
    fields.setdefault("tenant", TENANT)
    return NewMessage(message="hi", request_hash=b"h", hash_version=1, **fields)


async def refusal(bench: Bench, **fields: Any) -> str:
    with pytest.raises(LanewayError) as raised:
        await bench.registry.accept(a_message(**fields))
    assert bench.scheduler.book.is_empty
    assert len(bench.watches) == 0
    assert await bench.store.unended_runs() == []
    return raised.value.code.value


# --- accept ---


async def test_who_names_no_session_gets_one_of_its_own(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer(), answer())
        first, second = [await bench.registry.accept(a_message(session_key="")) for _ in range(2)]
        assert first.session_key != second.session_key
        assert first.session_key.startswith("agent:main:run:")
        await bench.ended(first.run_id)
        await bench.ended(second.run_id)


async def test_a_session_is_found_by_its_key_in_any_spelling_and_by_its_id(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer(), answer(), answer())
        first = await bench.registry.accept(a_message(session_key="Talk"))
        second = await bench.registry.accept(a_message(session_key="agent:main:TALK"))
        third = await bench.registry.accept(a_message(session_key="", session_id=first.session_id))
        assert first.session_key == second.session_key == third.session_key == "agent:main:talk"
        assert first.session_id == second.session_id == third.session_id
        assert [each.disposition for each in (first, second, third)] == ["started", "queued", "queued"]
        assert [each.queue_position for each in (first, second, third)] == [0, 0, 1]
        await bench.ended(third.run_id)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"agent_id": "nobody"}, "AGENT_NOT_FOUND"),
        ({"session_key": "agent:nobody:talk"}, "AGENT_NOT_FOUND"),
        ({"session_key": "agent:main"}, "SESSION_KEY_MALFORMED"),
        ({"session_key": "agent:main:talk", "agent_id": "other"}, "FIELD_INVALID"),
        ({"session_key": "", "session_id": "nothing"}, "SESSION_NOT_FOUND"),
        ({"session_id": "nothing"}, "SESSION_NOT_FOUND"),
        ({"parent_run_id": "run_nothing"}, "RUN_NOT_FOUND"),
    ],
)
async def test_what_cannot_be_accepted_changes_nothing(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    async with running_bench(tmp_path) as bench:
        assert await refusal(bench, **fields) == reason


async def test_a_full_queue_refuses_the_next_message_but_not_a_repeated_one(tmp_path: Path) -> None:
    async with running_bench(tmp_path, max_queued_runs=2) as bench:
        running = await bench.accept()
        call = await bench.model_call()
        queued = await bench.registry.accept(a_message(idempotency_key="k"))
        last = await bench.accept()
        with pytest.raises(LanewayError) as raised:
            await bench.accept()
        assert raised.value.code == "QUEUE_FULL"
        again = await bench.registry.accept(a_message(idempotency_key="k"))
        assert (again.run_id, again.duplicate) == (queued.run_id, True)
        bench.provider.plan(answer(), answer(), answer())
        call.end(answer())
        for run_id in (running, queued.run_id, last):
            await bench.ended(run_id)
        await bench.ended(await bench.accept())


async def test_messages_on_their_way_count_for_the_limit(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun))
    async with running_bench(tmp_path, max_queued_runs=2, gate=gate) as bench:
        sent = [asyncio.create_task(bench.accept(f"s{number}")) for number in range(3)]
        await soon(gate.reached())
        bench.provider.plan(answer(), answer())
        gate.release()
        results = await soon(asyncio.ensure_future(asyncio.gather(*sent, return_exceptions=True)))
        refused = [each for each in results if isinstance(each, LanewayError)]
        assert [error.code for error in refused] == ["QUEUE_FULL"]
        for run_id in results:
            if isinstance(run_id, str):
                await bench.ended(run_id)


@pytest.mark.parametrize("is_stored", [False, True])
async def test_a_caller_that_goes_away_changes_nothing_for_its_message(tmp_path: Path, is_stored: bool) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun), after=is_stored)
    async with running_bench(tmp_path, gate=gate) as bench:
        bench.provider.plan(answer())
        accepting = asyncio.create_task(bench.accept())
        await soon(gate.reached())
        accepting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await accepting
        gate.release()
        # Not by waiting: its caller never learned the id, and there may be no row yet.
        while not ((runs := await bench.registry.runs(TENANT)) and runs[0].state.is_ended):
            await bench.store.last_position()
        assert runs[0].state is RunState.SUCCEEDED


async def test_a_store_that_cannot_commit_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    gate = FailingGate()
    async with running_bench(tmp_path, gate=gate) as bench:
        gate.is_failing = True
        assert await refusal(bench) == "STORE_UNAVAILABLE"
        gate.is_failing = False


# --- wait ---


async def test_a_wait_ends_with_its_run_with_its_time_or_at_once(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        assert (await bench.registry.wait(TENANT, run_id, 0)).outcome is WaitOutcome.EXPIRED
        waiting = asyncio.create_task(bench.registry.wait(TENANT, run_id, 5.0))
        await soon(bench.clock.wait_for_timers(1))
        await bench.clock.advance(4.9)
        assert not waiting.done()
        await bench.clock.advance(0.1)
        expired = await soon(waiting)
        assert (expired.outcome, expired.run.state) == (WaitOutcome.EXPIRED, RunState.RUNNING)
        call.end(answer())
        ended = await soon(bench.registry.wait(TENANT, run_id, 5.0))
        assert (ended.outcome, ended.run.state) == (WaitOutcome.ENDED, RunState.SUCCEEDED)
        assert (await bench.registry.wait(TENANT, run_id, 5.0)).run == ended.run
        await bench.idle()
        assert bench.clock.timer_count == 0


async def test_a_wait_for_a_run_whose_acceptance_has_not_been_heard_of_is_a_wait(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AcceptRun), after=True)
    async with running_bench(tmp_path, gate=gate) as bench:
        accepting = asyncio.create_task(bench.accept())
        await soon(gate.reached())  # durable, nobody has been told
        (seen,) = await bench.registry.runs(TENANT)
        waiting = asyncio.create_task(bench.registry.wait(TENANT, seen.run_id, 60.0))
        await soon(bench.clock.wait_for_timers(1))
        assert not waiting.done()
        bench.provider.plan(answer())
        gate.release()
        assert (await soon(waiting)).outcome is WaitOutcome.ENDED
        assert await soon(accepting) == seen.run_id
        assert len(bench.watches) == 0


async def test_a_wait_that_reads_a_run_just_before_all_of_it_is_heard_ends_with_it(tmp_path: Path) -> None:
    gate, wrapped = HoldingGate(lambda command: isinstance(command, AcceptRun), after=True), Wrapped()
    async with running_bench(tmp_path, gate=gate, wrap=wrapped.wrap) as bench:
        accepting = asyncio.create_task(bench.accept())
        await soon(gate.reached())
        (seen,) = await bench.registry.runs(TENANT)
        reads = wrapped.seen.hold("run")
        waiting = asyncio.create_task(bench.registry.wait(TENANT, seen.run_id, 60.0))
        read = await soon(reads.get())  # it says QUEUED
        wrapped.seen.let_go("run")
        bench.provider.plan(answer())
        gate.release()
        await soon(accepting)
        await bench.idle()
        read.set_result(None)
        assert (await soon(waiting)).outcome is WaitOutcome.ENDED
        assert len(bench.watches) == 0


async def test_a_wait_that_is_given_up_leaves_the_others_alone(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        waits = [asyncio.create_task(bench.registry.wait(TENANT, run_id, 60.0)) for _ in range(3)]
        await soon(bench.clock.wait_for_timers(3))
        waits[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits[0]
        call.end(answer())
        results = [await soon(wait) for wait in waits[1:]]
        assert results[0] == results[1]
        await bench.idle()
        assert bench.clock.timer_count == 0


async def test_waiters_that_arrive_around_the_end_all_hear_of_it(tmp_path: Path) -> None:
    gate = HoldingGate(
        lambda command: isinstance(command, AppendToRun) and any(change.end for change in command.changes), after=True
    )
    async with running_bench(tmp_path, gate=gate) as bench:
        bench.provider.plan(answer())
        run_id = await bench.accept()
        await soon(gate.reached())  # durable, nobody has been told
        waits = []
        for number in range(200):
            waits.append(asyncio.create_task(bench.registry.wait(TENANT, run_id, 60.0)))
            if number == 100:
                gate.release()
            await asyncio.sleep(0)
        results = [await soon(wait) for wait in waits]
        assert {result.outcome for result in results} == {WaitOutcome.ENDED}
        assert len({result.run.last_seq for result in results}) == 1


async def test_an_unknown_run_and_another_tenants_run_do_not_exist(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer())
        run_id = await bench.accept()
        await bench.done(run_id)
        for tenant, name in ((TENANT, "run_nothing"), ("stranger", run_id)):
            for call in (
                bench.registry.wait(tenant, name, 1.0),
                bench.registry.run(tenant, name),
                bench.registry.abort_run(tenant, name, stop_reason="rpc", reason=""),
            ):
                with pytest.raises(LanewayError) as raised:
                    await call
                assert raised.value.code == "RUN_NOT_FOUND"
        with pytest.raises(LanewayError) as raised:
            await bench.registry.abort_session(TENANT, "nothing", clear_queued=True, stop_reason="rpc", reason="")
        assert raised.value.code == "SESSION_NOT_FOUND"


# --- list and abort ---


async def test_runs_are_listed_newest_first_by_session_and_state(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer(), answer())
        ids = [await bench.accept("one"), await bench.accept("two")]
        for run_id in ids:
            await bench.ended(run_id)
        ids.append(await bench.accept("ONE"))
        await bench.model_call()
        listed = [run.run_id for run in await bench.registry.runs(TENANT)]
        assert listed == ids[::-1]
        assert [run.run_id for run in await bench.registry.runs(TENANT, session_key="One")] == [ids[2], ids[0]]
        running = await bench.registry.runs(TENANT, states=(RunState.RUNNING,))
        assert [run.run_id for run in running] == [ids[2]]
        assert [run.run_id for run in await bench.registry.runs(TENANT, limit=1, before_no=3)] == [ids[1]]
        assert (await bench.abort(ids[2])).aborted_run_ids == (ids[2],)


async def test_a_repeated_abort_is_an_empty_receipt(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        await bench.model_call()
        first, second = await asyncio.gather(bench.abort(run_id), bench.abort(run_id))
        assert first.aborted_run_ids == (run_id,)
        assert second.aborted_run_ids in ((run_id,), ())
        assert await bench.abort(run_id) == AbortReceipt()
