"""providers/watchdog.py: whose interruption it is."""

import asyncio

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.providers.watchdog import IdleExpired, IdleWatchdog


async def wait_under(watchdog: IdleWatchdog, event: asyncio.Event) -> None:
    with watchdog:
        await event.wait()


async def test_waiting_adds_up_until_it_is_reset() -> None:
    clock = FakeClock()
    watchdog = IdleWatchdog(clock, 2)
    for _ in range(2):
        event = asyncio.Event()
        waiting = asyncio.ensure_future(wait_under(watchdog, event))
        await clock.wait_for_timers(1)
        await clock.advance(0.9)
        event.set()
        await waiting
    await clock.advance(100)
    waiting = asyncio.ensure_future(wait_under(watchdog, asyncio.Event()))
    await clock.wait_for_timers(1)
    await clock.advance(0.3)
    with pytest.raises(IdleExpired):
        await waiting
    watchdog.reset(5)
    event = asyncio.Event()
    waiting = asyncio.ensure_future(wait_under(watchdog, event))
    await clock.wait_for_timers(1)
    await clock.advance(4.9)
    event.set()
    await waiting


async def test_a_cancellation_from_outside_stays_one_even_when_time_is_up() -> None:
    clock = FakeClock()
    waiting = asyncio.ensure_future(wait_under(IdleWatchdog(clock, 1), asyncio.Event()))
    await clock.wait_for_timers(1)
    waiting.cancel()
    await clock.advance(1)
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_task_that_somebody_else_has_cancelled_is_not_interrupted_on_its_way_out() -> None:
    clock, closing, closed = FakeClock(), asyncio.Event(), asyncio.Event()

    async def wait_and_close(watchdog: IdleWatchdog) -> None:
        with watchdog:
            try:
                await asyncio.Event().wait()
            finally:
                closing.set()
                await closed.wait()

    waiting = asyncio.ensure_future(wait_and_close(IdleWatchdog(clock, 1)))
    await clock.wait_for_timers(1)
    waiting.cancel()
    await closing.wait()
    await clock.advance(1)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    closed.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_other_exceptions_pass() -> None:
    watchdog = IdleWatchdog(FakeClock(), 1)
    with pytest.raises(KeyError), watchdog:
        raise KeyError
