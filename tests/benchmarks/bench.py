"""What every measure works with: the mock model, the load driver, servers, and how much is to be measured."""

import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tests.benchmarks.child_process import Child
from tests.benchmarks.profiling import Profiling
from tests.benchmarks.servers import Server, ServerPlan, floor_plan, product_plan

T = TypeVar("T")

ANSWER = "tokens-200-0"
"""The answer of the mock model unless a measure says otherwise: 200 tokens in one burst."""
PACED_ANSWER = "tokens-200-5"
"""200 tokens, 5 ms apart."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. `is_quick`: just enough to see that it works. `sessions`: finished ones of P8."""

    repetitions: int = 3
    is_quick: bool = False
    sessions: int = 3000


class Bench:
    """One run of the benchmarks, in a temporary folder on the disk that is measured."""

    def __init__(self, options: Options, folder: Path, profiling: Profiling) -> None:
        self.options = options
        self.folder = folder
        self.profiling = profiling
        self.model: Child
        self.driver: Child
        self.base_url = ""

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[Bench]":
        """Mock model and driver run inside."""
        self.model = await Child.start(["-m", "tests.benchmarks.mock_model"], log=self.folder / "model.log")
        self.driver = await self.new_driver()
        try:
            self.base_url = await self.model.line()
            yield self
        finally:
            await self.driver.end()
            await self.model.end()

    async def new_driver(self) -> Child:
        """Another load driver."""
        return await Child.start(["-m", "tests.benchmarks.driver"], log=self.folder / "driver.log")

    def repeat(self) -> range:
        """The repetitions; floor and product take turns in each."""
        return range(self.options.repetitions)

    def size(self, full: int, quick: int) -> int:
        """How many of something."""
        return quick if self.options.is_quick else full

    @asynccontextmanager
    async def server(self, plan: ServerPlan) -> AsyncIterator[Server]:
        """A server that runs inside; profiled when that was asked for and it is the product."""
        is_profiled = plan.name == "product"
        if is_profiled:
            plan = replace(plan, prefix=self.profiling.prefix())
        server = await Server.start(plan, self.folder)
        try:
            async with self.profiling.watching(server.child.pid if is_profiled else None):
                yield server
        finally:
            await server.stop()

    def product(self, *, width: int, delta_interval_ms: int | None = None) -> ServerPlan:
        """The plan of the product."""
        return product_plan(self.base_url, width=width, delta_interval_ms=delta_interval_ms)

    def f_aio(self) -> ServerPlan:
        """The plan of the floor F-aio."""
        return floor_plan("F-aio", "f_aio", "--base-url", self.base_url)

    def f_naive(self) -> ServerPlan:
        """The plan of the floor F-naive."""
        return floor_plan("F-naive", "f_naive", "--base-url", self.base_url)

    async def runs(self, server: Server, *, sessions: int, model: str, count: int, stagger_s: float = 0.0) -> "Loaded":
        """Keep a server busy with `count` runs."""
        job = self.driver.ask(
            "runs", target=server.target, sessions=sessions, model=model, count=count, stagger_s=stagger_s
        )
        driver_s, model_s = self.driver.cpu_s(), self.model.cpu_s()
        used_s, result = await cpu_during(server, job)
        if result["failed"]:
            print(f"{server.name}: {result['failed']} of {count} runs failed", file=sys.stderr)
        elapsed_s = result["elapsed_s"]
        return Loaded(
            accept_ms=result["accept_ms"],
            run_ms=result["run_ms"],
            runs_per_s=result["runs_per_s"],
            characters_per_run=result["characters_per_run"],
            messages_per_run=result["messages_per_run"],
            failed=result["failed"],
            cpu_ms_per_run=used_s * 1000 / count,
            server_load=used_s / elapsed_s,
            driver_load=(self.driver.cpu_s() - driver_s) / elapsed_s,
            model_load=(self.model.cpu_s() - model_s) / elapsed_s,
        )

    async def warm_up(self, *servers: Server, sessions: int = 4, model: str = ANSWER) -> None:
        """Connections, caches and code paths."""
        for server in servers:
            await self.runs(server, sessions=sessions, model=model, count=max(sessions, self.size(50, 4)))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a server did under load. Loads are shares of one core."""

    accept_ms: list[float]
    run_ms: list[float]
    runs_per_s: float
    characters_per_run: float
    messages_per_run: float
    failed: int
    cpu_ms_per_run: float
    server_load: float
    driver_load: float
    model_load: float


async def cpu_during(server: Server, work: Awaitable[T]) -> tuple[float, T]:
    """CPU seconds of the server's process tree while `work` was done, and what came of it."""
    before_s = server.child.cpu_s()
    result = await work
    return server.child.cpu_s() - before_s, result


async def ceiling(bench: Bench) -> dict[str, Any]:
    """What the mock model can do by itself; measured through the driver, which may be the slower of the two."""
    fields = {"base_url": bench.base_url, "model": ANSWER, "connections": 16, "seconds": bench.size(2, 1) / 2}
    before_s = bench.model.cpu_s()
    result = await bench.driver.ask("ceiling", **fields)
    cpu_ms = (bench.model.cpu_s() - before_s) * 1000 / result["answers"]
    return {"answers_per_s": result["answers_per_s"], "cpu_ms_per_answer": cpu_ms}
