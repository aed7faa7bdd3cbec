"""P8: resident memory when idle, and what finished sessions leave behind."""

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Row, bounded, compared

SHORT_ANSWER = "tokens-20-0"
MANY = 100_000
"""So many finished sessions show whether memory is flat."""


async def memory(bench: Bench) -> list[Row]:
    """P8. `--sessions 100000` also tells whether memory is flat: the last fifth over the second."""
    idle = await _idle(bench)
    sessions = bench.size(bench.options.sessions, 50)
    step = max(1, sessions // 10)
    seen = []
    async with bench.server(bench.product(width=16)) as product:
        await bench.runs(product, sessions=16, model=SHORT_ANSWER, count=bench.size(1000, 20))
        seen.append(product.child.rss_mb())
        for _ in range(10):
            await bench.runs(product, sessions=16, model=SHORT_ANSWER, count=step)
            seen.append(product.child.rss_mb())
    growth = (seen[-1] - seen[0]) * 1000 / (step * 10)
    rows = [idle, bounded("P8", "growth per 1,000 finished sessions", "MB", [growth], at_most=10.0)]
    if sessions >= MANY:
        flat = bounded("P8", "RSS after 100,000 over 40,000", "", [max(seen[-2:]) / max(seen[3:5])], at_most=1.05)
        rows.append(flat)
    return rows


async def _idle(bench: Bench) -> Row:
    """After a start and a few runs, when everything lazy has been loaded."""
    mine: list[float] = []
    aio: list[float] = []
    for _ in bench.repeat():
        for plan, values in ((bench.f_aio(), aio), (bench.product(width=8), mine)):
            async with bench.server(plan) as server:
                await bench.runs(server, sessions=1, model=SHORT_ANSWER, count=5)
                values.append(server.child.rss_mb())
    return compared("P8", "idle RSS", "MB", mine, aio, floor_name="F-aio", target=1.8)
