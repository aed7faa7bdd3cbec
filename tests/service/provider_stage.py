"""A service with a model provider that needs a key, and a clock that stands still."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import Reading

from laneway.v1 import admin_pb2, agent_pb2
from lanewayd.app import Seams

KEY = "sk-canary-0123456789abcdef"
SESSION = "faults"


@dataclass
class ProviderStage:
    """A service with a provider `acme` that needs a key; its clock stands still."""

    service: RunningService
    model: ModelServer
    clock: FakeClock
    records: list[logging.LogRecord] = field(default_factory=list)

    async def accept(self, **fields: Any) -> str:
        """A message for the provider; its run."""
        return (await self.service.accept("hi", session_key=SESSION, model="acme/m1", **fields)).run_id

    async def in_backoff(self) -> None:
        """Return when the run waits for its next try."""
        await self.clock.wait_for_sleepers(1)

    async def lane_is_free(self) -> None:
        """The session goes on with its next message, and nothing of the failed run is left."""
        self.model.answer(text_answer("fine again"))
        waited = await self.service.wait((await self.service.accept("and now", session_key=SESSION)).run_id)
        assert waited.status == agent_pb2.WAIT_STATUS_OK
        await self.service.service.runs.scheduler.idle()  # the lane is given back after the end is told
        status = await self.service.admin.GetStatus(admin_pb2.GetStatusRequest())
        assert all(lane.active == lane.queued == 0 for lane in status.lanes)

    def key_is_nowhere(self, reading: Reading) -> None:
        """Neither whole nor its part that tells it: not in events, errors, logs or the store."""
        places = [str(reading.waited), str(reading.run), *map(str, reading.events)]
        places += [str(record.__dict__) for record in self.records]
        places += [path.read_bytes().decode("latin-1") for path in self.service.home.glob("laneway.db*")]
        assert not [place for place in places if "canary" in place]


@asynccontextmanager
async def service_with_provider(
    tmp_path: Path, model: ModelServer, base_url: str, transport: str
) -> AsyncGenerator[ProviderStage, None]:
    """A service with the provider `acme` at `base_url`."""
    key_file, clock = tmp_path / "key", FakeClock()
    key_file.write_text(KEY + "\n")
    toml = (
        f'[models]\ntransport = "{transport}"\nfirst_event_timeout_seconds = 7\n'
        f'[models.providers.acme]\nbase_url = "{base_url}"\napi_key_file = "{key_file}"\ntimeout_seconds = 30\n'
    )
    async with running_service(tmp_path / "home", model=model, toml=toml, seams=Seams(clock=clock)) as service:
        yield ProviderStage(service, model, clock)
