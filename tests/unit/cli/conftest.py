import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.unit.cli.fake_service import FakeService, serving
from tests.unit.cli.real_servers import end_server_of, write_scripts


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


@pytest.fixture
async def environ(home: Path) -> AsyncIterator[dict[str, str]]:
    """Of a user with a home that has scripts in it; a server that a command starts there ends with the test."""
    write_scripts(home)
    yield {"LANEWAY_HOME": str(home)}
    await end_server_of(home)
