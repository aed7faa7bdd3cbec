"""Keeps the embedded model's process alive: started on first use, restarted when it dies, ended with the service."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from lanewayd.clock import Clock
from lanewayd.providers.local.process import ModelCommand, ModelProcess, StartFailed

logger = logging.getLogger(__name__)

START_LIMIT_S = 120.0
_FIRST_DELAY_S = 0.25
_LONGEST_DELAY_S = 30.0
_STEADY_S = 60.0


def restart_delay_s(deaths: int) -> float:
    """Seconds to wait before the next start, after so many early deaths in a row: 0.25, 0.5, 1 ... up to 30."""
    return min(_FIRST_DELAY_S * 2.0 ** min(deaths - 1, 16), _LONGEST_DELAY_S)


class ModelUnavailable(Exception):
    """The process cannot be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A process that serves. `start_number` counts the starts."""

    port: int
    start_number: int


class ModelSupervisor:
    """Owner of the process and of the task that watches it. `close` ends both.

    A process that does not come up is an answer to those who wait, and the next use starts it anew. One that dies later
    is restarted by itself: at once, then with growing pauses while it keeps dying within a minute.
    """

    def __init__(
        self, command: Callable[[], ModelCommand], *, clock: Clock, start_limit_s: float = START_LIMIT_S
    ) -> None:
        """`command`: what to start; called in a thread before each start. May raise StartFailed."""
        self._command = command
        self._clock = clock
        self._start_limit_s = start_limit_s
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Endpoint] | None = None
        self._process: ModelProcess | None = None
        self._starts = 0
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Of the process that lives now."""
        return self._process.pid if self._process is not None else None

    async def endpoint(self) -> Endpoint:
        """Where it serves; waits for a start that is under way. Raises ModelUnavailable."""
        if self._is_closed:
            raise ModelUnavailable("the service is leaving")
        if self._ready is None or self._task is None or self._task.done():
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._supervise(), name="embedded model")
        return await asyncio.shield(self._ready)

    def restart(self, endpoint: Endpoint) -> None:
        """The process behind `endpoint` does not answer: end it, so that another one is started."""
        if self._process is not None and endpoint.start_number == self._starts:
            self._process.kill()

    async def close(self) -> None:
        """End the process. Idempotent."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._refuse("the service is leaving")

    async def _supervise(self) -> None:
        deaths = 0
        try:
            while True:
                process, port = await self._started()
                began = self._clock.monotonic()
                exit_code = await self._served(process, Endpoint(port, self._starts))
                deaths = 1 if self._clock.monotonic() - began >= _STEADY_S else deaths + 1
                delay_s = restart_delay_s(deaths)
                logger.warning("embedded model died", extra={"exit_code": exit_code, "restart_in_s": delay_s})
                await self._clock.sleep(delay_s)
        except StartFailed as failure:
            logger.warning("embedded model does not start", extra={"reason": str(failure)})
            self._refuse(str(failure))
        finally:
            self._refuse("its process is not looked after any more")  # whoever waits is told, whatever happened

    async def _served(self, process: ModelProcess, endpoint: Endpoint) -> int:
        """Let it serve until it dies; its exit code. Nothing is left of it, also when this is cancelled."""
        self._process = process
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(endpoint)
        try:
            await process.death()
        finally:
            self._ready, self._process = asyncio.get_running_loop().create_future(), None
            exit_code = await process.end()
        return exit_code

    async def _started(self) -> tuple[ModelProcess, int]:
        """A process that serves, and its port. Raises StartFailed; nothing is left of it then."""
        began = self._clock.monotonic()
        process = await self._launched()
        self._starts += 1
        try:
            port = await process.port(clock=self._clock, limit_s=self._start_limit_s)
        except BaseException:
            await process.end()
            raise
        took_s = round(self._clock.monotonic() - began, 3)
        logger.info("embedded model serves", extra={"pid": process.pid, "port": port, "took_s": took_s})
        return process, port

    async def _launched(self) -> ModelProcess:
        launching = asyncio.ensure_future(asyncio.to_thread(lambda: ModelProcess(self._command())))
        try:
            return await asyncio.shield(launching)
        except OSError as error:
            raise StartFailed(f"its process cannot be started: {error.strerror or error}") from error
        except asyncio.CancelledError:
            # The thread may be past the point of no return; what it starts is then ours to end.
            await asyncio.wait([launching])
            if launching.exception() is None:
                await launching.result().end()
            raise

    def _refuse(self, why: str) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(ModelUnavailable(why))
            self._ready.exception()  # seen, so that asyncio does not log it when nobody waits any more
