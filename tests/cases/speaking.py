"""A stage whose model service speaks another language than chat completions, and one run on it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cases.case_tools import NumberingTool, now_tool
from tests.cases.observing import Observed, observe
from tests.cases.stage import Stage
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import Answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

from lanewayd.app import Seams

MODEL = "native/m"


@asynccontextmanager
async def stage_speaking(
    api: str, home: Path, model: ModelServer, *, is_timed: bool = False
) -> AsyncGenerator[Stage, None]:
    """The service with the provider `native`, which speaks `api`. `is_timed`: time moves only when the test says so."""
    rec, now, clock = NumberingTool(), now_tool(), FakeClock()
    base_url = model.base_url.removesuffix("/v1")
    toml = f'[models.providers.native]\napi = "{api}"\nbase_url = "{base_url}"\n'
    seams = Seams(clock=clock) if is_timed else None
    async with running_service(home, toml=toml, tools=[rec, now], seams=seams) as service:
        yield Stage(service, model, rec, now, clock)


async def play_native(stage: Stage, *answers: Answer, session_key: str = "s") -> Observed:
    """One run against these answers."""
    stage.model.answer(*answers)
    accepted = await stage.service.accept("go", session_key=session_key, model=MODEL)
    return await observe(stage.service, accepted.run_id)
