"""A scripted service with a client that is quick to lose patience."""

from collections.abc import AsyncGenerator

import pytest
from tests.client.scripted_service import ScriptedService, serving

from laneway.calls import Loss, Timeouts
from laneway.client import LanewayClient

QUICK = Timeouts(patience_s=2.0, attempt_s=0.3, one_wait_s=0.5, silence_s=0.3)


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

    async def on_loss(loss: Loss) -> None:
        losses.append(loss)

    async with (
        serving(script) as address,
        LanewayClient(address, timeouts=QUICK, on_loss=on_loss, metadata=(("x-who", "me"),)) as connected,
    ):
        yield connected
