"""D1 to D5: CPU of a delta of a model's answer, for each language that the service speaks."""

import json
from collections.abc import Awaitable, Callable

from tests.benchmarks.bench import Bench
from tests.benchmarks.child_process import Child
from tests.benchmarks.decoding.answers import APIS
from tests.benchmarks.figures import Row, compared

MEASURES = {f"D{number}": api for number, api in enumerate(APIS, 1)}


def of(measure: str) -> Callable[[Bench], Awaitable[list[Row]]]:
    """The measure for one language."""

    async def decoding(bench: Bench) -> list[Row]:
        return [await _decoding(bench, measure, MEASURES[measure])]

    return decoding


async def _decoding(bench: Bench, measure: str, api: str) -> Row:
    """HttpProvider.stream over the plain loop (raw bytes, lines, JSON); both in one process that does nothing else."""
    deltas, answers = bench.size(5000, 50), bench.size(9, 1)
    log = bench.folder / "decoding.log"
    service = await Child.start(["-m", "tests.benchmarks.decoding.service", str(deltas)], log=log)
    try:
        base_url = await service.line()
        mine: list[float] = []
        plain: list[float] = []
        for _ in bench.repeat():
            arguments = ["-m", "tests.benchmarks.decoding.reading", base_url, api, str(deltas), str(answers)]
            reader = await Child.start(arguments, log=log)
            try:
                figures: dict[str, float] = json.loads(await reader.line())
            finally:
                await reader.end()
            mine.append(figures["product"])
            plain.append(figures["plain"])
    finally:
        await service.end()
    what = f"CPU per delta, {api}"
    return compared(measure, what, "us", mine, plain, floor_name="plain loop", target=1.5)
