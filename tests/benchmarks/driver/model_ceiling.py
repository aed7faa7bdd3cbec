"""How much the mock model can do: answers read as raw bytes over many connections."""

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit


async def ceiling(*, base_url: str, model: str, connections: int, seconds: float) -> dict[str, Any]:
    """Whole answers per second."""
    url = urlsplit(base_url)
    body = b'{"model":"%b","messages":[{"role":"user","content":"hello"}]}' % model.encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    until = time.perf_counter() + seconds
    answers = 0

    async def ask_again_and_again() -> None:
        nonlocal answers
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while time.perf_counter() < until:
            writer.write(request)
            await reader.readuntil(b"0\r\n\r\n")
            answers += 1
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(ask_again_and_again() for _ in range(connections)))
    return {"answers_per_s": answers / (time.perf_counter() - began), "answers": answers}
