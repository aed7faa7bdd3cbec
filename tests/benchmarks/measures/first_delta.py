"""P3: how much later than by a direct call of the model the first text arrives."""

from tests.benchmarks.bench import ANSWER, PACED_ANSWER, Bench
from tests.benchmarks.figures import Row, compared, percentile
from tests.benchmarks.servers import Server


async def first_delta(bench: Bench) -> list[Row]:
    """P3: the whole answer in one burst; for orientation also paced, where no burst hides the first token."""
    async with (
        bench.server(bench.f_aio()) as f_aio,
        bench.server(bench.f_naive()) as f_naive,
        bench.server(bench.product(width=8)) as product,
    ):
        servers = (f_aio, f_naive, product)
        await bench.warm_up(*servers)
        aio, naive, mine = await _over_direct(bench, servers, ANSWER)
        paced_aio, _, paced_mine = await _over_direct(bench, servers, PACED_ANSWER)
    what = "first delta over direct"
    return [
        compared("P3", what, "ms", mine, aio, floor_name="F-aio", target=1.5),
        compared("P3", what, "ms", mine, naive, floor_name="F-naive", target=0.5),
        compared("P3", f"{what}, 5 ms a token", "ms", paced_mine, paced_aio, floor_name="F-aio"),
    ]


async def _over_direct(bench: Bench, servers: tuple[Server, ...], model: str) -> tuple[list[float], ...]:
    calls = bench.size(60, 3) if model == ANSWER else bench.size(10, 1)
    found: tuple[list[float], ...] = tuple([] for _ in servers)
    for _ in bench.repeat():
        direct = await bench.driver.ask("direct", base_url=bench.base_url, model=model, calls=calls)
        for server, values in zip(servers, found, strict=True):
            result = await bench.driver.ask("first_delta", target=server.target, model=model, calls=calls)
            values.append(percentile(result["ms"], 0.5) - percentile(direct["ms"], 0.5))
    return found
