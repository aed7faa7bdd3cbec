"""P1, P2: how long a message takes to be accepted, by an idle server and by a busy one."""

from tests.benchmarks.bench import ANSWER, PACED_ANSWER, Bench
from tests.benchmarks.figures import Row, compared, percentile
from tests.benchmarks.servers import floor_plan


async def idle(bench: Bench) -> list[Row]:
    """P1: accept at an idle server, over three echoes and one fsync."""
    calls = bench.size(150, 5)
    accepted, allowed = [], []
    async with bench.server(floor_plan("echo", "echo")) as echo, bench.server(bench.product(width=8)) as product:
        await bench.driver.ask("echo", target=echo.target, calls=calls)
        await bench.driver.ask("accept", target=product.target, model=ANSWER, calls=calls)
        for _ in bench.repeat():
            echoed = await bench.driver.ask("echo", target=echo.target, calls=calls)
            synced = await bench.driver.ask("fsync", folder=str(product.folder), calls=calls)
            mine = await bench.driver.ask("accept", target=product.target, model=ANSWER, calls=calls)
            accepted.append(percentile(mine["ms"], 0.5))
            allowed.append(3 * percentile(echoed["ms"], 0.5) + percentile(synced["ms"], 0.5))
    return [compared("P1", "accept, idle, p50", "ms", accepted, allowed, floor_name="3 x echo + fsync", target=1.0)]


async def saturated(bench: Bench) -> list[Row]:
    """P2: accept while 64 sessions saturate the server, over the time of a whole run."""
    sessions = bench.size(64, 4)
    paced_p99, paced_run, burst_p50, burst_run = [], [], [], []
    async with bench.server(bench.product(width=sessions)) as product:
        await bench.warm_up(product, sessions=sessions)
        for _ in bench.repeat():
            count = sessions * bench.size(6, 2)
            paced = await bench.runs(product, sessions=sessions, model=PACED_ANSWER, count=count, stagger_s=1.0)
            burst = await bench.runs(product, sessions=sessions, model=ANSWER, count=sessions * bench.size(10, 2))
            paced_p99.append(percentile(paced.accept_ms, 0.99))
            paced_run.append(percentile(paced.run_ms, 0.5))
            burst_p50.append(percentile(burst.accept_ms, 0.5))
            burst_run.append(percentile(burst.run_ms, 0.5))
    return [
        compared("P2", "accept p99, 5 ms a token", "ms", paced_p99, paced_run, floor_name="run p50", target=0.25),
        compared("P2", "accept p50, bursts", "ms", burst_p50, burst_run, floor_name="run p50", target=0.6),
    ]
