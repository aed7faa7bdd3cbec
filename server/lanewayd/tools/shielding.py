"""Awaiting what must not be left half done."""

import asyncio
from typing import TypeVar

_T = TypeVar("_T")


async def end_of(future: asyncio.Future[_T]) -> _T:
    """The outcome of `future`, waited for also while the caller is being cancelled; then CancelledError goes out.

    For work that ends by itself: it is never cancelled from here.
    """
    was_cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            was_cancelled = True
    if was_cancelled:
        if not future.cancelled():
            # Seen, so that asyncio does not log it as lost.
            future.exception()
        raise asyncio.CancelledError
    return future.result()
