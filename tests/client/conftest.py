"""A scripted service with clients that are quick to lose patience."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tests.client.scripted_service import ScriptedService, serving

from laneway.calls import Loss, Timeouts
from laneway.client import LanewayClient

QUICK = Timeouts(patience_s=10.0, attempt_s=1.5, one_wait_s=0.5, silence_s=1.5)
"""Long enough that only the script, and not a busy machine, makes a call repeat."""
HURRIED = Timeouts(patience_s=1.0, attempt_s=0.3, one_wait_s=0.5, silence_s=0.3)
"""For tests that do not count attempts."""


@pytest.fixture
def script() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def losses() -> list[Loss]:
    """What `client` was told."""
    return []


@pytest.fixture
async def client(script: ScriptedService, losses: list[Loss]) -> AsyncGenerator[LanewayClient, None]:
    """Connected to `script`."""
    async with _connected(script, QUICK, losses) as client:
        yield client


@pytest.fixture
async def hurried(script: ScriptedService, losses: list[Loss]) -> AsyncGenerator[LanewayClient, None]:
    """Connected to `script`, with hardly any patience."""
    async with _connected(script, HURRIED, losses) as client:
        yield client


@asynccontextmanager
async def _connected(
    script: ScriptedService, timeouts: Timeouts, losses: list[Loss]
) -> AsyncGenerator[LanewayClient, None]:
    async def on_loss(loss: Loss) -> None:
        losses.append(loss)

    async with (
        serving(script) as address,
        LanewayClient(address, timeouts=timeouts, on_loss=on_loss, metadata=(("x-who", "me"),)) as client,
    ):
        yield client
