"""What tests of the session lock ask of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.errors import LanewayError
from lanewayd.transcript.lock import SessionLocks

SESSION = "agent:main:talk"
T = TypeVar("T")
MakeLocks = Callable[..., SessionLocks]


async def soon(what: "asyncio.Future[T] | asyncio.Task[T]") -> T:
    async with asyncio.timeout(10):
        return await what


async def check_free(locks: SessionLocks) -> None:
    """The session's lock can be had at once."""
    await locks.release(await locks.acquire("default", SESSION, run_id="run_check", timeout_s=0))


async def check_busy(locks: SessionLocks) -> LanewayError:
    """The session's lock cannot be had; what that says."""
    with pytest.raises(LanewayError) as raised:
        await locks.acquire("default", SESSION, run_id="run_check", timeout_s=0)
    assert raised.value.code == "SESSION_BUSY"
    return raised.value


async def until_waiting(clock: FakeClock) -> None:
    async with asyncio.timeout(10):
        await clock.wait_for_sleepers(1)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
