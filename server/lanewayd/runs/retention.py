"""Applies retention from time to time, one bounded step after the other, so that nothing waits long for it."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lanewayd.clock import Clock
from lanewayd.errors import StoreUnavailable
from lanewayd.runs.collaborators import BlobFiles
from lanewayd.store.interface import Prune, Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """What is kept, and how often that is looked at."""

    events_max_age: timedelta
    max_events_per_run: int
    events_max_bytes: int
    runs_max_age: timedelta
    interval_s: float = 60.0


class Retention:
    """Prunes the store for as long as `run` is running."""

    def __init__(
        self,
        settings: RetentionSettings,
        *,
        store: Store,
        blobs: BlobFiles,
        clock: Clock,
        more_sweeps: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """`more_sweeps`: called each time too, one after the other; they raise StoreUnavailable at most."""
        self._more_sweeps = more_sweeps
        self._settings = settings
        self._store = store
        self._blobs = blobs
        self._clock = clock

    async def run(self) -> None:
        """Prune now and at every interval, until cancelled. A store that cannot commit is tried next time."""
        while True:
            try:
                await self.prune()
            except StoreUnavailable as error:
                logger.warning("retention put off", extra={"error": error.message})
            await self._clock.sleep(self._settings.interval_s)

    async def prune(self) -> None:
        """Remove all that retention does not keep now, and files that no row names. Raises StoreUnavailable."""
        settings = self._settings
        is_done = False
        while not is_done:
            pruned = await self._store.prune(
                Prune(
                    self._clock.now(),
                    events_max_age=settings.events_max_age,
                    max_events_per_run=settings.max_events_per_run,
                    events_max_bytes=settings.events_max_bytes,
                    runs_max_age=settings.runs_max_age,
                )
            )
            is_done = pruned.is_done
            self._blobs.suspect(pruned.blobs)
            if pruned.events or pruned.runs:
                logger.info("pruned", extra={"events": pruned.events, "runs": pruned.runs, "keys": pruned.keys})
        await self._blobs.sweep(self._store.unnamed_blobs)
        for sweep in self._more_sweeps:
            await sweep()
