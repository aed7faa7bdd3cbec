"""Lock services over one folder, as of several processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock
from tests.unit.transcript.lock_checks import MakeLocks

from lanewayd.transcript.lock import SessionLocks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def make(folder: Path, clock: FakeClock) -> AsyncIterator[MakeLocks]:
    """Makes lock services as of several processes; all are closed at the end."""
    made: list[SessionLocks] = []

    def make_one(acquire_timeout_s: float = 60.0) -> SessionLocks:
        made.append(SessionLocks(folder, clock=clock, acquire_timeout_s=acquire_timeout_s))
        return made[-1]

    yield make_one
    for locks in made:
        locks.close()
