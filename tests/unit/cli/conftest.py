import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.unit.cli.fake_service import FakeService, serving


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="lw") as folder:
        yield Path(folder)


@pytest.fixture
def address(home: Path) -> str:
    (home / "run").mkdir()
    return f"unix:{home}/run/laneway.sock"


@pytest.fixture
async def service(address: str) -> AsyncIterator[FakeService]:
    """Serves at `address`."""
    fake = FakeService()
    async with serving(fake, address):
        yield fake
