"""Hears of every commit and passes it on: first to the readers of logs, then to the run registry (D-1, D-3)."""

import logging
from collections.abc import Callable

from lanewayd.records import Run
from lanewayd.runs.auditing import Auditing
from lanewayd.runs.followers import Followers
from lanewayd.runs.looks import SessionLooks
from lanewayd.runs.registry import RunRegistry
from lanewayd.store.interface import AbortRequested, Accepted, Appended, Injected, Pruned, Started
from lanewayd.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)


class CommitFeed:
    """Implements store.writer_interface.CommitListener. Called on the event loop, in commit order."""

    def __init__(
        self,
        followers: Followers,
        registry: RunRegistry,
        *,
        looks: SessionLooks,
        on_store_works: Callable[[bool], None],
        metrics: Metrics | None = None,
        auditing: Auditing | None = None,
    ) -> None:
        """`on_store_works` hears False when a commit failed and True when one succeeds again. `metrics`, `auditing`:
        None = off."""
        self._followers = followers
        self._registry = registry
        self._looks = looks
        self._metrics = metrics or Metrics.off()
        self._auditing = auditing
        self._on_store_works = on_store_works

    def committed(self, command: object, result: object) -> None:
        """Readers see the events before anybody is told that a run has ended."""
        self._looks.committed(command)
        if isinstance(result, Accepted) and result.run is not None:
            self._followers.run_accepted(result.run)
        if isinstance(result, Accepted | Started | Appended | Injected | AbortRequested):
            self._followers.published(result.events)
            self._metrics.events_appended(len(result.events))
        ended = _ended_by(result) if isinstance(result, Accepted | Appended | AbortRequested) else ()
        for run in ended:
            self._followers.run_ended(run)
        if isinstance(result, Pruned):
            self._followers.run_logs_cut(result.run_ids)
        self._registry.committed(command, result)
        if self._auditing is not None:
            self._auditing.committed(command, result, ended)

    def store_failing(self, error: str) -> None:
        """Nothing can be stored: the service is not ready, and goes on trying (D-19)."""
        logger.error("store cannot commit", extra={"error": error})
        self._on_store_works(False)

    def store_working(self) -> None:
        """Commits succeed again."""
        logger.info("store commits again")
        self._on_store_works(True)


def _ended_by(result: Accepted | Appended | AbortRequested) -> tuple[Run, ...]:
    if isinstance(result, Accepted):
        return result.dropped if result.stopped is None else result.stopped.cancelled
    if isinstance(result, AbortRequested):
        return result.cancelled
    return (*result.settled, result.run) if result.run is not None else ()
