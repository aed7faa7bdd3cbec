"""Structured answers over several processes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.store_commands import a_request, accept_run, start_run
from tests.unit.runs.bench import check_is_over, is_phase, running_bench
from tests.unit.runs.bench_agents import MODEL
from tests.unit.runs.left_over import LeftOver, left_by
from tests.unit.runs.staged_model import answer, asks

from lanewayd.records import RunState
from lanewayd.store.interface import RunChange

SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
GOOD = '{"n": 1}'


async def begin(left: LeftOver) -> None:
    """A run with a schema has been started."""
    request = replace(a_request(message="hi", model=MODEL, timeout_s=0.0, lane="main"), response_schema_json=SCHEMA)
    await left.store.accept(accept_run("r", request=request))
    await left.store.start(start_run("r"))


async def test_a_stored_answer_gives_the_output_without_a_model_call(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await begin(left)
        await left.message("r", answer(f"```json\n{GOOD}\n```"))

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        run = await bench.run("r")
        assert (run.state, json.loads(run.output_json), bench.provider.calls) == (RunState.SUCCEEDED, {"n": 1}, [])


async def test_a_run_goes_on_with_its_schema_and_may_be_corrected_twice_again(tmp_path: Path) -> None:
    async def leave(left: LeftOver) -> None:
        await begin(left)
        await left.message("r", asks(("c1", "no-such-tool")))
        await left.says("r", "not", "msg_cut")

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(answer("one"), answer("two"), answer(GOOD))
        run = await bench.done("r")
        assert (run.state, run.output_json) == (RunState.SUCCEEDED, '{"n":1}')
        await check_is_over(bench, "r")
        assert [call.request.response_schema for call in bench.provider.calls] == [json.loads(SCHEMA)] * 3


@pytest.mark.parametrize("made", [1, 2])
async def test_a_restart_gives_no_further_corrections(tmp_path: Path, made: int) -> None:
    async def leave(left: LeftOver) -> None:
        await begin(left)
        await left.change("r", RunChange(corrections=made))

    await left_by(tmp_path, leave)
    async with running_bench(tmp_path) as bench:
        bench.provider.plan(*(answer("wrong") for _ in range(3 - made)))
        run = await bench.done("r")
        assert run.error is not None
        assert (run.state, run.error.reason) == (RunState.FAILED, "OUTPUT_SCHEMA_MISMATCH")
        assert len(bench.provider.calls) == 3 - made


async def test_while_a_correction_is_made_a_wait_shows_what_did_not_fit(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(response_schema_json=SCHEMA)
        first = await bench.model_call()
        first.say("one")
        first.end(answer("one"))
        second = await bench.model_call()
        await bench.until(run_id, is_phase("lifecycle", "retry"))
        pending = (await bench.registry.wait("default", run_id, 0)).pending_error
        assert pending is not None
        assert pending.reason == "OUTPUT_SCHEMA_MISMATCH"
        assert (await bench.run(run_id)).corrections == 1
        second.say(GOOD)
        second.end(answer(GOOD))
        run = await bench.done(run_id)
        assert run.output_json == '{"n":1}'
        assert len(await bench.messages()) == 2, "the void answer is not in the transcript"


async def test_the_last_wrong_answer_of_a_failed_run_is_kept_for_people_and_not_replayed(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        run_id = await bench.accept(response_schema_json=SCHEMA)
        for text in ("one", "two", "three"):
            call = await bench.model_call()
            call.say(text)
            call.end(answer(text))
        run = await bench.done(run_id)
        assert (run.state, run.output_json) == (RunState.FAILED, "")
        assert [payload.text for payload in run.payloads if not payload.is_error] == ["three"]
        assert run.usage is not None
        assert run.usage.input_tokens == 30
        await check_is_over(bench, run_id)
        assert [getattr(message, "text", "") for message in await bench.messages()] == ["hi", "three"]
