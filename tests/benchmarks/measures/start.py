"""P10: from the start of the process to SERVING."""

from dataclasses import replace

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Row, compared, percentile
from tests.benchmarks.servers import ServerPlan


async def start(bench: Bench) -> list[Row]:
    """P10: the product as it is started by its users, in a home that is empty."""
    starts = bench.size(5, 1)
    product = replace(bench.product(width=8), module="lanewayd")
    mine: list[float] = []
    aio: list[float] = []
    await _start_s(bench, product)
    await _start_s(bench, bench.f_aio())
    for _ in bench.repeat():
        for plan, values in ((bench.f_aio(), aio), (product, mine)):
            values.append(percentile([await _start_s(bench, plan) * 1000 for _ in range(starts)], 0.5))
    return [compared("P10", "process to SERVING", "ms", mine, aio, floor_name="F-aio", target=3.0)]


async def _start_s(bench: Bench, plan: ServerPlan) -> float:
    async with bench.server(plan) as server:
        return server.start_s
