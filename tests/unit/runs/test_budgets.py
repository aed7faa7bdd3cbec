"""Budgets of a run and of its session, over several calls, runs and processes."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.store_commands import accept_run, start_run
from tests.unit.runs.bench import check_is_over, running_bench
from tests.unit.runs.left_over import LeftOver, left_by
from tests.unit.runs.staged_model import answer, asks, failure

from lanewayd.loop.limits import Allowance
from lanewayd.messages import AssistantMessage, Prices, Usage
from lanewayd.records import Run, RunState

PRICES = Prices(input=1.0, output=2.0)
CALLS = asks(("c1", "no-such-tool"))
DEAR = Usage(1_000_000, 500_000)
"""Costs 2 USD."""


def using(message: AssistantMessage, usage: Usage) -> AssistantMessage:
    return replace(message, usage=usage)


def reason_of(run: Run) -> str:
    return run.error.reason if run.error is not None else ""


async def test_no_call_is_made_once_the_cost_of_a_run_is_reached(tmp_path: Path) -> None:
    async with running_bench(tmp_path, prices=PRICES, of_run=Allowance(max_cost_usd=3.0)) as bench:
        bench.provider.plan(using(CALLS, DEAR), using(CALLS, DEAR))
        run = await bench.done(await bench.accept())
        assert (run.state, reason_of(run)) == (RunState.FAILED, "BUDGET_EXCEEDED")
        assert run.error is not None
        assert "limits.max_cost_usd is $3" in run.error.message
        assert "cost $4" in run.error.message
        assert run.usage is not None
        assert run.usage.cost_usd == 4.0
        await check_is_over(bench, run.run_id)


async def test_an_answer_that_reaches_the_limit_is_the_answer(tmp_path: Path) -> None:
    async with running_bench(tmp_path, prices=PRICES, of_run=Allowance(max_cost_usd=1.0)) as bench:
        bench.provider.plan(using(answer("all of it"), DEAR))
        run = await bench.done(await bench.accept())
        assert (run.state, [payload.text for payload in run.payloads]) == (RunState.SUCCEEDED, ["all of it"])


async def test_runs_of_a_session_use_its_budget_together_and_other_sessions_have_their_own(tmp_path: Path) -> None:
    async with running_bench(tmp_path, prices=PRICES, of_session=Allowance(max_cost_usd=3.0)) as bench:
        bench.provider.plan(*[using(answer(), DEAR)] * 3)
        states = [reason_of(await bench.done(await bench.accept())) for _ in range(3)]
        assert states == ["", "", "BUDGET_EXCEEDED"]
        assert reason_of(await bench.done(await bench.accept("other"))) == ""


async def test_no_further_try_is_made_either(tmp_path: Path) -> None:
    async with running_bench(tmp_path, of_run=Allowance(max_tokens=100)) as bench:
        failed = failure()
        bench.provider.plan(replace(failed, partial=replace(failed.partial, usage=Usage(100))), answer())
        run_id = await bench.accept()
        await bench.clock.wait_for_sleepers(1)
        while not (await bench.run(run_id)).state.is_ended:
            await bench.clock.advance(8.0)
        run = await bench.done(run_id)
        assert (reason_of(run), len(bench.provider.calls), run.usage) == ("BUDGET_EXCEEDED", 1, Usage(100))
        await check_is_over(bench, run_id)


async def test_what_was_used_before_a_restart_counts(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await left.start("r")
        await left.void_usage("r", Usage(60))
        await left.message("r", using(CALLS, Usage(30, 10)))

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path, of_run=Allowance(max_tokens=100)) as bench:
        run = await bench.done("r")
        assert (reason_of(run), bench.provider.calls) == ("BUDGET_EXCEEDED", [])


async def test_a_restart_knows_what_the_session_had_used(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(using(answer(), Usage(90)))
        await bench.done(await bench.accept())

    async def leave(left: LeftOver) -> None:
        await left.store.accept(accept_run("r"))
        await left.store.start(start_run("r"))
        await left.message("r", using(CALLS, Usage(10)))

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path, of_session=Allowance(max_tokens=100)) as bench:
        run = await bench.done("r")
        assert (reason_of(run), bench.provider.calls) == ("BUDGET_EXCEEDED", [])


@pytest.mark.parametrize(
    ("prices", "allowed", "warnings"),
    [(Prices(), Allowance(max_cost_usd=1.0), 1), (PRICES, Allowance(max_cost_usd=1e6), 0), (Prices(), Allowance(5), 0)],
    ids=["no price", "prices", "no limit of costs"],
)
async def test_a_run_without_prices_goes_on_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, prices: Prices, allowed: Allowance, warnings: int
) -> None:
    async with running_bench(tmp_path, prices=prices, of_run=allowed) as bench:
        bench.provider.plan(using(CALLS, Usage(2)), using(CALLS, Usage(2)), answer())
        run = await bench.done(await bench.accept())
        assert run.state is RunState.SUCCEEDED
    said = [record for record in caplog.records if "cost limit" in record.message]
    assert len(said) == warnings
