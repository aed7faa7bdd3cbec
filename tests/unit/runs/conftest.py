"""What the tests of followers begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.runs.follower_desk import Desk, a_desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """Followers over an empty store."""
    async with a_desk(tmp_path) as made:
        yield made
