"""T1: what a dead, slow or lying telemetry collector changes of P1, P4 and P6, compared with one that works."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from tests.benchmarks.bench import ANSWER, PACED_ANSWER, Bench
from tests.benchmarks.child_process import Child
from tests.benchmarks.figures import Row, compared, percentile
from tests.benchmarks.mock_model import tokens_in
from tests.benchmarks.servers import Server, ServerPlan

SESSIONS = 8
PACED_SESSIONS = 64
AT_MOST = 1.05
FAULTY = ("dead", "slow", "lying")
OFF, HEALTHY = "off", "healthy"
EXPORT_EVERY = {"OTEL_BSP_SCHEDULE_DELAY": "500", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
"""Milliseconds; more often than by default, so that exports fall into each measurement."""

P1, P4, P6 = "accept, idle, p50", "server CPU per run", "server CPU per token at 64 sessions"
UNITS = {P1: "ms", P4: "ms", P6: "us"}


async def faulty_collectors(bench: Bench) -> list[Row]:
    """Servers with each kind of collector, in turns; telemetry that is off stands beside them for orientation."""
    figures: dict[tuple[str, str], list[float]] = {}
    async with AsyncExitStack() as stack:
        servers = {mode: await stack.enter_async_context(_server(bench, mode)) for mode in (OFF, HEALTHY, *FAULTY)}
        await bench.warm_up(*servers.values())
        for repetition in bench.repeat():
            turns = list(servers.items())
            for mode, server in turns if repetition % 2 == 0 else reversed(turns):
                for what, value in (await _measure(bench, server)).items():
                    figures.setdefault((what, mode), []).append(value)
    rows = []
    for what, unit in UNITS.items():
        rows += [
            compared(
                "T1",
                f"{what}, {mode} collector",
                unit,
                figures[what, mode],
                figures[what, HEALTHY],
                floor_name="healthy collector",
                target=AT_MOST,
            )
            for mode in FAULTY
        ]
        on, off = figures[what, HEALTHY], figures[what, OFF]
        rows.append(compared("T1", f"{what}, telemetry on", unit, on, off, floor_name="telemetry off"))
    return rows


async def _measure(bench: Bench, server: Server) -> dict[str, float]:
    accepted = await bench.driver.ask("accept", target=server.target, model=ANSWER, calls=bench.size(100, 5))
    burst = await bench.runs(server, sessions=SESSIONS, model=ANSWER, count=bench.size(240, 8))
    sessions = bench.size(PACED_SESSIONS, 4)
    paced = await bench.runs(server, sessions=sessions, model=PACED_ANSWER, count=2 * sessions, stagger_s=1.0)
    tokens, _, _ = tokens_in(PACED_ANSWER)
    return {
        P1: percentile(accepted["ms"], 0.5),
        P4: burst.cpu_ms_per_run,
        P6: paced.cpu_ms_per_run * 1000 / tokens,
    }


@asynccontextmanager
async def _server(bench: Bench, mode: str) -> AsyncIterator[Server]:
    """The product that exports to a collector of this kind."""
    async with _collector(bench, mode) as port, bench.server(_plan(bench, port)) as server:
        yield server


@asynccontextmanager
async def _collector(bench: Bench, mode: str) -> AsyncIterator[int | None]:
    """Its port; None = nothing is exported."""
    if mode == OFF:
        yield None
    elif mode == "dead":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, and never listening: whoever connects is refused
            yield taken.getsockname()[1]
    else:
        log = bench.folder / f"collector-{mode}.log"
        child = await Child.start(["-m", "tests.benchmarks.collector", mode], log=log)
        try:
            yield int(await child.line())
        finally:
            await child.end()


def _plan(bench: Bench, port: int | None) -> ServerPlan:
    plan = bench.product(width=PACED_SESSIONS)
    if port is None:
        return plan
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    return replace(plan, settings={**plan.settings, **endpoint, **EXPORT_EVERY})
