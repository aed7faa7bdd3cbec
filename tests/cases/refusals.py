"""Calls and streams that must be refused."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc
import pytest
from tests.fakes.service import Refusal, refusal_of


async def refusal(call: Awaitable[Any]) -> Refusal:
    """How a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return refusal_of(caught.value)


async def stream_refusal(call: AsyncIterator[Any]) -> Refusal:
    """How a stream ends that must end with an error."""

    async def read() -> None:
        async for _ in call:
            pass

    return await refusal(read())


async def refused(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    """Status and reason of a call that must be refused."""
    refusal_seen = await refusal(call)
    return refusal_seen.status, refusal_seen.reason
