"""P4, P7: server CPU of a run and of a tool round."""

from tests.benchmarks.bench import ANSWER, Bench
from tests.benchmarks.figures import Row, compared

SESSIONS = 8
ROUNDS = 10


async def per_run(bench: Bench) -> list[Row]:
    """P4: accept, subscribe, wait; F-naive for orientation."""
    count = bench.size(400, 8)
    mine: list[float] = []
    aio: list[float] = []
    naive: list[float] = []
    async with (
        bench.server(bench.f_aio()) as f_aio,
        bench.server(bench.f_naive()) as f_naive,
        bench.server(bench.product(width=SESSIONS)) as product,
    ):
        await bench.warm_up(f_aio, f_naive, product)
        for _ in bench.repeat():
            for server, values in ((f_aio, aio), (product, mine), (f_naive, naive)):
                loaded = await bench.runs(server, sessions=SESSIONS, model=ANSWER, count=count)
                values.append(loaded.cpu_ms_per_run)
    return [
        compared("P4", "server CPU per run", "ms", mine, aio, floor_name="F-aio", target=1.6),
        compared("P4", "server CPU per run", "ms", mine, naive, floor_name="F-naive"),
    ]


async def per_tool_round(bench: Bench) -> list[Row]:
    """P7: a run of 10 rounds, each with 20 tokens of text and one call of a tool that does nothing."""
    model, count = f"tokens-20-0-tools-{ROUNDS}", bench.size(60, 4)
    mine: list[float] = []
    aio: list[float] = []
    async with bench.server(bench.f_aio()) as f_aio, bench.server(bench.product(width=SESSIONS)) as product:
        await bench.warm_up(f_aio, product, model=model)
        for _ in bench.repeat():
            for server, values in ((f_aio, aio), (product, mine)):
                loaded = await bench.runs(server, sessions=4, model=model, count=count)
                values.append(loaded.cpu_ms_per_run / ROUNDS)
    return [compared("P7", "server CPU per tool round", "ms", mine, aio, floor_name="F-aio", target=2.5)]
