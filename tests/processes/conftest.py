"""Fixtures for tests with server processes."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.server_process import ServerProcess, compile_synced
from tests.fakes.service import toml_for
from tests.processes.server_entry import Extras

MakeServer = Callable[..., ServerProcess]


@pytest.fixture(scope="session")
def synced_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/synced.c, compiled."""
    return compile_synced(tmp_path_factory.mktemp("synced"))


@pytest.fixture
async def make_server(
    tmp_path: Path, model: ModelServer, synced_library: Path
) -> AsyncGenerator[Callable[..., ServerProcess], None]:
    """Makes servers that know the model; they are not started. `extras`: fields of Extras beside the ledger."""
    made: list[ServerProcess] = []

    def make(
        *, toml: str = "", listen: str = "", is_shadowed: bool = False, is_plain: bool = False, **extras: object
    ) -> ServerProcess:
        folder = tmp_path / f"server{len(made)}"
        folder.mkdir()
        server = ServerProcess(
            folder,
            toml=toml_for(model, toml),
            listen=listen,
            synced_library=synced_library if is_shadowed else None,
            extras=None if is_plain else Extras(ledger=str(folder / "ledger"), **extras),  # type: ignore[arg-type]
        )
        made.append(server)
        return server

    yield make
    for server in made:
        await server.close()
