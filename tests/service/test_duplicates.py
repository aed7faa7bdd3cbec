"""A repeated call gets its stored answer, whatever has changed since (D-6)."""

from pathlib import Path

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.service import refusal_of, running_service


async def test_a_duplicate_is_answered_although_its_model_is_no_longer_configured(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path / "home", model=model) as service:
        first = await service.accept("hi", idempotency_key="k")
        await service.wait(first.run_id)
    async with running_service(tmp_path / "home") as service:
        again = await service.accept("hi", idempotency_key="k")
        with pytest.raises(grpc.aio.AioRpcError) as reused:
            await service.accept("something else", idempotency_key="k")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await service.accept("hi", idempotency_key="another")
    assert again.duplicate
    assert again.run_id == first.run_id
    assert again.accepted_at == first.accepted_at
    assert refusal_of(reused.value).reason == "IDEMPOTENCY_KEY_REUSED"
    assert refusal_of(refused.value).reason == "MODEL_UNKNOWN"
