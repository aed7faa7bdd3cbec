"""What a run has used is the sum over its messages and the calls that failed, whatever process made them (R-5.98)."""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.store_commands import SESSION, TENANT
from tests.unit.runs.bench import Bench, running_bench
from tests.unit.runs.left_over import LeftOver, left_by
from tests.unit.runs.staged_model import answer, asks, failure

from lanewayd.loop.costs import with_cost
from lanewayd.messages import AssistantMessage, Prices, Usage
from lanewayd.models.costs import priced
from lanewayd.providers.interface import Done, Failed
from lanewayd.records import RunState
from lanewayd.runs.spending import NOT_SAID

PRICES = Prices(input=1.0, output=2.0, cache_read=0.5)


def spent(usage: Usage, *, text: str = "", is_transient: bool = True) -> Failed:
    """A failed call that said what it used."""
    failed = failure(is_transient=is_transient, text=text)
    return replace(failed, partial=replace(failed.partial, usage=usage))


def used(message: AssistantMessage, usage: Usage) -> AssistantMessage:
    return replace(message, usage=usage)


def as_killed_now(home: Path, other: Path) -> None:
    """What is in the store of `home`, as the home of a later process."""
    other.mkdir()
    with closing(sqlite3.connect(home / "laneway.db")) as now, closing(sqlite3.connect(other / "laneway.db")) as copy:
        now.backup(copy)


async def past_back_offs(bench: Bench, run_id: str) -> None:
    """Move the clock until the run has ended."""
    while not (await bench.run(run_id)).state.is_ended:
        await bench.clock.advance(8.0)


async def test_failed_tries_count_and_the_context_is_that_of_the_last_call(tmp_path: Path) -> None:
    async with running_bench(tmp_path, prices=PRICES) as bench:
        bench.provider.plan(spent(Usage(7, 1)), used(answer(), Usage(100, 20, 50)))
        run_id = await bench.accept()
        await bench.clock.wait_for_sleepers(1)
        await bench.clock.advance(1.0)
        run = await bench.done(run_id)
        assert run.usage == priced(Usage(7, 1), PRICES) + priced(Usage(100, 20, 50), PRICES)
        session = await bench.store.session(TENANT, SESSION)
        assert session is not None
        assert (session.usage, session.context_tokens) == (run.usage, 150)


async def test_what_failed_tries_used_is_known_after_a_kill(tmp_path: Path) -> None:
    async with running_bench(tmp_path, prices=PRICES) as bench:
        bench.provider.plan(spent(Usage(7, 1)), spent(Usage(5)))
        run_id = await bench.accept()
        await bench.clock.wait_for_sleepers(1)
        await bench.clock.advance(1.0)
        await bench.clock.wait_for_sleepers(1)
        await bench.until(run_id, lambda event: event.get("lifecycle", {}).get("attempt") == 3)
        as_killed_now(tmp_path, tmp_path / "killed")
    async with running_bench(tmp_path / "killed", prices=PRICES) as bench:
        bench.provider.plan(used(answer(), Usage(100, 20)))
        run = await bench.done(run_id)
        assert run.usage == sum((priced(each, PRICES) for each in (Usage(7, 1), Usage(5), Usage(100, 20))), Usage())


async def test_a_call_that_the_process_died_in_leaves_the_usage_a_lower_bound(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.void_usage("r", Usage(3))
        await left.says("r", "Half a sen", "msg_cut")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(asks(("c1", "rec"), text="I look"))
        await bench.model_call()
        as_killed_now(tmp_path, tmp_path / "killed")
    async with running_bench(tmp_path / "killed") as bench:
        bench.provider.plan(answer())
        run = await bench.done("r")
        assert run.usage == Usage(3) + NOT_SAID + Usage(10, 5) + Usage(10, 5)


async def test_an_abort_of_a_run_that_nobody_executes_counts_what_was_used(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.void_usage("r", Usage(3))
        await left.message("r", asks(("c1", "rec")))
        await left.says("r", "Half a sen", "msg_cut")
        await left.abort_asked("r")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        run = await bench.run("r")
        assert (run.state, run.usage) == (RunState.CANCELLED, Usage(3) + NOT_SAID + Usage(10, 5))


async def test_a_message_that_broke_off_carries_what_its_call_used(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept()
        call = await bench.model_call()
        call.say("Half a sen")
        call.end(spent(Usage(7, 1), text="Half a sen", is_transient=False))
        run = await bench.done(run_id)
        message = (await bench.messages())[-1]
        assert isinstance(message, AssistantMessage)
        assert message.usage == run.usage == Usage(7, 1)


_USAGES = st.builds(
    Usage,
    input_tokens=st.integers(0, 1000),
    output_tokens=st.integers(0, 1000),
    cache_read_tokens=st.integers(0, 1000),
    unavailable=st.booleans(),
)
_CALLS = st.tuples(st.sampled_from(["fails", "asks"]), _USAGES)
_RUNS = st.lists(st.tuples(st.lists(_CALLS, max_size=3), st.tuples(st.sampled_from(["answers", "gives up"]), _USAGES)))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_RUNS.filter(bool), st.sampled_from([PRICES, Prices(input=1.0, output=2.0), Prices()]))
async def test_a_run_used_what_its_calls_used_and_a_session_what_its_runs_did(
    runs: list[tuple[list[tuple[str, Usage]], tuple[str, Usage]]], prices: Prices
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with running_bench(Path(folder), prices=prices, tools=[RecordingTool("rec")]) as bench:
            total = Usage()
            for number, (steps, (last, last_usage)) in enumerate(runs):
                turns: list[AssistantMessage | Failed] = [
                    spent(usage) if kind == "fails" else used(asks((f"c{number}.{at}", "rec")), usage)
                    for at, (kind, usage) in enumerate(steps)
                ]
                end = used(answer(), last_usage) if last == "answers" else spent(last_usage, is_transient=False)
                bench.provider.plan(*turns, end)
                run_id = await bench.accept()
                await past_back_offs(bench, run_id)
                run = await bench.done(run_id)
                calls = [with_cost(turn if isinstance(turn, Failed) else Done(turn), prices) for turn in [*turns, end]]
                check_same(run.usage, sum((usage_of(call) for call in calls), Usage()))
                total += run.usage or Usage()
            session = await bench.store.session(TENANT, SESSION)
            assert session is not None
            check_same(session.usage, total)


def usage_of(outcome: Done | Failed) -> Usage:
    return outcome.partial.usage if isinstance(outcome, Failed) else outcome.message.usage


def check_same(usage: Usage | None, expected: Usage) -> None:
    """All counts are equal; costs may differ by how floats add up."""
    assert usage is not None
    assert replace(usage, cost_usd=None) == replace(expected, cost_usd=None)
    assert usage.cost_usd == (None if expected.cost_usd is None else pytest.approx(expected.cost_usd))
