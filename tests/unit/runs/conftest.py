"""What the tests of followers begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.runs.follower_desk import Desk, a_desk


@pytest.fixture(params=[True, False], ids=["runs of this process", "runs of an earlier process"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """Followers over an empty store, of runs whose beginning they have heard or not."""
    async with a_desk(tmp_path, hears_beginnings=request.param) as made:
        yield made


@pytest.fixture
async def late_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """As `desk`, of runs of an earlier process only: who follows one begins in the store."""
    async with a_desk(tmp_path, hears_beginnings=False) as made:
        yield made
