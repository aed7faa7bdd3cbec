"""Fixtures of the suites that share a stage."""

import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.service.provider_stage import ProviderStage, service_with_provider


@pytest.fixture(params=["aiohttp", "httpx"])
async def provider(
    request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> AsyncGenerator[ProviderStage, None]:
    caplog.set_level(logging.DEBUG)
    async with service_with_provider(tmp_path, model, model.base_url, request.param) as provider:
        provider.records = caplog.records
        yield provider
