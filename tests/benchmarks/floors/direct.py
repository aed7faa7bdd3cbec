"""Floor "direct": a plain httpx call of the mock model, its stream read to the end. Runs in the load driver."""

import time
from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class DirectCall:
    """Seconds from the request to the first token and to the end of the stream."""

    first_s: float
    total_s: float


async def call_directly(client: httpx.AsyncClient, base_url: str, model: str) -> DirectCall:
    """One call with one user message."""
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": True}
    began = time.perf_counter()
    first_s = 0.0
    async with client.stream("POST", f"{base_url}/chat/completions", json=body) as response:
        async for chunk in response.aiter_bytes():
            if not first_s and b'"content"' in chunk:
                first_s = time.perf_counter() - began
    return DirectCall(first_s, time.perf_counter() - began)
