"""What most cases play on."""

from dataclasses import dataclass

from tests.cases.case_tools import NumberingTool
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService


@dataclass(frozen=True)
class Stage:
    """A service with `rec` and `now`. Its clock stands still on a timed stage, else `clock` is not used."""

    service: RunningService
    model: ModelServer
    rec: NumberingTool
    now: RecordingTool
    clock: FakeClock
