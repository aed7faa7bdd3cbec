"""How text is shown while the store is behind."""

from pathlib import Path

from tests.fakes.commit_gates import HoldingGate
from tests.unit.runs.bench import check_is_over, running_bench, soon
from tests.unit.runs.staged_model import answer

from lanewayd.store.interface import AppendToRun


async def test_text_gathers_while_the_store_is_behind_and_then_comes_as_one_delta(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with running_bench(tmp_path, gate=gate, delta_interval_s=0.025) as bench:
        run_id = await bench.accept()
        call = await soon(bench.provider.asked.get())
        call.say("first ")
        await soon(gate.reached())  # the store is at work on it, and stays so
        for word in ("second ", "third ", "fourth "):
            call.say(word)
            await bench.clock.advance(0.05)
        gate.release()
        call.end(answer("first second third fourth "))
        await bench.ended(run_id)

        events = await bench.events(run_id)
        deltas = [event["assistant"]["delta"] for event in events if "assistant" in event]
        assert deltas == ["first ", "second third fourth "]
        await check_is_over(bench, run_id)


async def test_text_that_gathered_is_shown_when_the_store_has_caught_up_though_nothing_more_is_said(
    tmp_path: Path,
) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with running_bench(tmp_path, gate=gate, delta_interval_s=0.025) as bench:
        run_id = await bench.accept()
        call = await soon(bench.provider.asked.get())
        call.say("first ")
        await soon(gate.reached())
        call.say("second")
        await bench.clock.advance(1.0)  # long due, but nobody could see it
        timers = bench.clock.timer_count
        gate.release()
        await soon(bench.clock.wait_for_timers(timers + 1))
        await bench.clock.advance(0.0)
        await bench.until(run_id, lambda event: event.get("assistant", {}).get("delta") == "second")
        call.end(answer("first second"))
        await bench.ended(run_id)
        await check_is_over(bench, run_id)


async def test_every_chunk_is_shown_for_itself_when_that_was_asked_for(tmp_path: Path) -> None:
    gate = HoldingGate(lambda command: isinstance(command, AppendToRun))
    async with running_bench(tmp_path, gate=gate, delta_interval_s=0.0) as bench:
        run_id = await bench.accept()
        call = await soon(bench.provider.asked.get())
        call.say("first ")
        await soon(gate.reached())
        call.say("second ", "third")
        call.end(answer("first second third"))
        gate.release()
        await bench.ended(run_id)
        deltas = [event["assistant"]["delta"] for event in await bench.events(run_id) if "assistant" in event]
        assert deltas == ["first ", "second ", "third"]
