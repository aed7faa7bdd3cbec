"""Reading the metrics that a server serves over HTTP."""

import asyncio
import urllib.request


def metrics_port(log: str) -> str:
    """The port that the log names."""
    return log.partition('"message": "metrics served"')[2].partition('"port": ')[2].partition("}")[0]


async def scraped_text(port: str) -> str:
    """What a scrape gets."""

    def get() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            return str(response.read().decode())

    return await asyncio.to_thread(get)


async def scraped(port: str) -> dict[str, float]:
    """Sample with its labels -> value."""
    lines = (await scraped_text(port)).splitlines()
    samples = [line.rpartition(" ") for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}
