"""Waiting for a store that does not work (D-19): 250 ms, doubled up to 5 s."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lanewayd.clock import Clock
from lanewayd.errors import StoreUnavailable

T = TypeVar("T")

FIRST_S = 0.25
LONGEST_S = 5.0


class Backoff:
    """Growing waits between tries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay_s = FIRST_S

    async def wait(self) -> None:
        """Wait once; the next wait is twice as long."""
        delay_s, self._delay_s = self._delay_s, min(self._delay_s * 2, LONGEST_S)
        await self._clock.sleep(delay_s)

    def reset(self) -> None:
        """A try succeeded: begin again with the shortest wait."""
        self._delay_s = FIRST_S


async def until_answered(question: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """The answer of the store, however long it takes: a run halts when the store does, and goes on with it."""
    backoff = Backoff(clock)
    while True:
        try:
            return await question()
        except StoreUnavailable:
            await backoff.wait()
