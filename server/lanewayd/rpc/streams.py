"""Reading of asynchronous iterators that hold something open."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def closed_at_the_end(items: AsyncIterator[Any]) -> AsyncIterator[None]:
    """Close `items`, when it is a generator, in this task: left to the garbage collector, its cleaning up would run in
    another one, and later."""
    try:
        yield
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
