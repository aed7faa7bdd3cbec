"""An answer read by the product's provider and by the plain loop, in one process over one kind of transport, in turns:
`python -m tests.benchmarks.decoding.reading BASE_URL API DELTAS ANSWERS` prints CPU microseconds per delta as JSON.
"""

import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import httpx
import uvloop

from lanewayd.clock import SystemClock
from lanewayd.messages import UserMessage
from lanewayd.providers.http_provider import HttpProvider, HttpService, make_transport
from lanewayd.providers.interface import Done, ModelRequest, TextDelta
from lanewayd.wiring.dialects import make_dialect

_REQUEST = ModelRequest("m", "", (UserMessage("hi"),))
_DATA = b"data: "


async def plainly(client: httpx.AsyncClient, url: str, deltas: int) -> None:
    """Raw bytes, cut into lines, each line parsed: what no reader of a stream can do without."""
    rest, values = b"", 0
    async with client.stream("POST", url, content=b"{}") as response:
        async for data in response.aiter_raw():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                line = line.removeprefix(_DATA)  # noqa: PLW2901 - as plain as can be
                if line.startswith(b"{"):
                    json.loads(line)
                    values += 1
    assert values >= deltas


async def with_provider(provider: HttpProvider, deltas: int) -> None:
    """All that the loop gets of an answer."""
    seen = 0
    async for event in provider.stream(_REQUEST):
        if isinstance(event, TextDelta):
            seen += 1
    assert isinstance(event, Done)
    assert seen == deltas


async def _cpu_us(read: Callable[[], Awaitable[None]], deltas: int) -> float:
    """CPU of this process per delta of one answer."""
    gc.collect()
    began_s = time.process_time()
    await read()
    return (time.process_time() - began_s) * 1e6 / deltas


async def _measured(base_url: str, api: str, deltas: int, answers: int) -> dict[str, float]:
    url = f"{base_url}/{api}"
    service, dialect = HttpService(api, url), make_dialect(api, provider=api)
    provider = HttpProvider(
        service=service, dialect=dialect, clock=SystemClock(), transport=make_transport("aiohttp", is_tls=False)
    )
    async with httpx.AsyncClient(transport=make_transport("aiohttp", is_tls=False)) as client:

        async def by_hand() -> None:
            await plainly(client, url, deltas)

        async def by_product() -> None:
            await with_provider(provider, deltas)

        reads = {"plain": by_hand, "product": by_product}
        spent: dict[str, list[float]] = {name: [] for name in reads}
        for read in reads.values():
            await read()
        for _ in range(answers):
            for name, read in reads.items():
                spent[name].append(await _cpu_us(read, deltas))
    await provider.close()
    return {name: statistics.median(values) for name, values in spent.items()}


def main() -> None:
    """Measure and print."""
    base_url, api, deltas, answers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_measured(base_url, api, deltas, answers))))


if __name__ == "__main__":
    main()
