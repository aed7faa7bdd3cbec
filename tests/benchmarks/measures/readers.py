"""P11, P12: many readers of one log with one that stands still, and the replay of a finished run."""

import asyncio
import signal
import uuid
from dataclasses import dataclass

from tests.benchmarks.bench import PACED_ANSWER, Bench, cpu_during
from tests.benchmarks.figures import Row, bounded, compared, percentile
from tests.benchmarks.mock_model import text_of, tokens_in
from tests.benchmarks.servers import Server, floor_plan

READERS = 100
LONG_ANSWER = "tokens-995-0"
"""With one event per token, and those around them, a run of 1,000 events."""
SUBSCRIBED_AFTER_S = 0.5


@dataclass(frozen=True, slots=True)
class _Watched:
    run_ms: float
    lost_characters: int


async def one_stopped(bench: Bench) -> list[Row]:
    """P11: 100 subscribers of a session; in every second round the process of one of them is stopped."""
    readers, count = bench.size(READERS, 4), bench.size(8, 2)
    alone, stopped, grown, lost = [], [], [], 0
    async with bench.server(bench.product(width=8)) as product:
        await _watched(bench, product, readers=readers, count=1, has_stopped=False)
        for _ in bench.repeat():
            without = await _watched(bench, product, readers=readers, count=count, has_stopped=False)
            before_mb = product.child.rss_mb()
            with_one = await _watched(bench, product, readers=readers, count=count, has_stopped=True)
            grown.append(product.child.rss_mb() - before_mb)
            alone.append(without.run_ms)
            stopped.append(with_one.run_ms)
            lost += without.lost_characters + with_one.lost_characters
    return [
        compared("P11", "run p50, one reader stopped", "ms", stopped, alone, floor_name="none stopped", target=1.15),
        bounded("P11", "RSS more with one stopped", "MB", grown, at_most=10.0),
        bounded("P11", "characters lost", "", [lost], at_most=0),
    ]


async def _watched(bench: Bench, server: Server, *, readers: int, count: int, has_stopped: bool) -> _Watched:
    key = f"watched-{uuid.uuid4().hex[:8]}"
    expected = len(text_of(tokens_in(PACED_ANSWER)[0])) * count
    slow = await bench.new_driver()
    try:
        slow_result = asyncio.create_task(
            slow.ask("slow_reader", target=server.target, session_key=key, runs=count), name="slow reader"
        )
        await asyncio.sleep(SUBSCRIBED_AFTER_S)
        if has_stopped:
            slow.send(signal.SIGSTOP)
        result = await bench.driver.ask(
            "watched_runs",
            target=server.target,
            model=PACED_ANSWER,
            session_key=key,
            count=count,
            readers=readers - 1,
        )
        slow.send(signal.SIGCONT)
        got = [*result["characters"], (await slow_result)["characters"]]
    finally:
        await slow.end()
    return _Watched(percentile(result["run_ms"], 0.5), sum(abs(expected - characters) for characters in got))


async def resume(bench: Bench) -> list[Row]:
    """P12: a finished run of 1,000 events sent to a new subscriber, over a raw stream of the same messages."""
    times = bench.size(20, 2)
    mine, raw = [], []
    messages_file = str(bench.folder / "messages")
    async with bench.server(bench.product(width=8, delta_interval_ms=0)) as product:
        run = await bench.driver.ask("long_run", target=product.target, model=LONG_ANSWER, messages_file=messages_file)
        async with bench.server(floor_plan("stream", "stream", "--messages", messages_file)) as stream:
            fields = {"target": product.target, "run_id": run["run_id"], "times": times}
            await bench.driver.ask("replay", **fields)
            await bench.driver.ask("stream", target=stream.target, times=times)
            for _ in bench.repeat():
                used_s, read = await cpu_during(stream, bench.driver.ask("stream", target=stream.target, times=times))
                raw.append(used_s * 1e6 / read["messages"])
                used_s, read = await cpu_during(product, bench.driver.ask("replay", **fields))
                mine.append(used_s * 1e6 / read["messages"])
    what = f"replay, CPU per event of {run['events']}"
    return [compared("P12", what, "us", mine, raw, floor_name="stream", target=1.3)]
