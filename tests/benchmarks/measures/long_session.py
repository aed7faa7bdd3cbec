"""P9: what a turn costs when many came before it in its session."""

import uuid

from tests.benchmarks.bench import ANSWER, Bench, cpu_during
from tests.benchmarks.figures import Row, compared
from tests.benchmarks.servers import Server

SESSIONS = 4
WINDOW = 10
"""So many turns around the one asked for are measured together: CPU time is counted in ticks of 10 ms."""


async def long_session(bench: Bench) -> list[Row]:
    """P9: CPU of turn 1,000 and of turn 100 over turn 10; F-aio has no sessions to compare with."""
    early, middle, late = (10, 100, 1000) if not bench.options.is_quick else (10, 20, 40)
    costs: dict[int, list[float]] = {early: [], middle: [], late: []}
    async with bench.server(bench.product(width=SESSIONS)) as product:
        await bench.warm_up(product)
        for _ in bench.repeat():
            keys = [f"long-{uuid.uuid4().hex[:8]}" for _ in range(SESSIONS)]
            turn = 0
            for wanted, values in costs.items():
                await _turns(bench, product, keys, wanted - WINDOW // 2 - turn)
                values.append(await _turns(bench, product, keys, WINDOW) * 1000 / (WINDOW * SESSIONS))
                turn = wanted + WINDOW // 2
    base = f"turn {early}"
    return [
        compared("P9", f"CPU of turn {late}", "ms", costs[late], costs[early], floor_name=base, target=2.0),
        compared("P9", f"CPU of turn {middle}", "ms", costs[middle], costs[early], floor_name=base, target=1.2),
    ]


async def _turns(bench: Bench, server: Server, keys: list[str], count: int) -> float:
    """CPU seconds of so many turns in each session."""
    job = bench.driver.ask("turns", target=server.target, model=ANSWER, session_keys=keys, count=count)
    used_s, result = await cpu_during(server, job)
    if result["failed"]:
        raise RuntimeError(f"{result['failed']} turns failed")
    return used_s
