"""How text is shown while the store is behind."""

from pathlib import Path

from tests.fakes.commit_gates import HoldingGate
from tests.unit.runs.bench import answer, check_is_over, running_bench, soon

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
