"""A collector and real server processes that export to it."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.server_process import ServerProcess
from tests.fakes.service import toml_for
from tests.processes.server_entry import Extras

MakeServer = Callable[..., ServerProcess]


@pytest.fixture
async def receiver() -> AsyncGenerator[OtlpReceiver, None]:
    """A collector that behaves."""
    async with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
async def make_server(
    tmp_path: Path, model: ModelServer, receiver: OtlpReceiver
) -> AsyncGenerator[Callable[..., ServerProcess], None]:
    """Makes servers with the tool `ledger` that export to the collector; `variables` come on top. Not started."""
    made: list[ServerProcess] = []

    def make(*, toml: str = "", variables: dict[str, str] | None = None) -> ServerProcess:
        folder = tmp_path / f"server{len(made)}"
        folder.mkdir()
        server = ServerProcess(folder, toml=toml_for(model, toml), extras=Extras(ledger=str(folder / "ledger")))
        server.variables = receiver.variables | (variables or {})
        made.append(server)
        return server

    yield make
    for server in made:
        await server.close()
