"""Messages that wait to go into one run, and how they do (D-7; spec 02, 5)."""

from collections.abc import Sequence

from lanewayd.events import NewEvent
from lanewayd.messages import UserMessage
from lanewayd.records import Run
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.recorder import RunRecorder
from lanewayd.runs.user_words import said, words_of
from lanewayd.store.interface import Injection


class Steering:
    """Implements loop.interface.Steering for one run. The scheduler adds and withdraws; the store has the last word on
    what still waits."""

    def __init__(self, collaborators: Collaborators) -> None:
        self._with = collaborators
        self._recorder: RunRecorder | None = None
        self._waiting: dict[str, Run] = {}

    @property
    def is_waiting(self) -> bool:
        """A message waits to go into the run."""
        return bool(self._waiting)

    def add(self, run: Run) -> None:
        """A message was accepted for this run."""
        self._waiting[run.run_id] = run

    def withdraw(self, run_id: str) -> None:
        """A message does not wait any more; harmless for one that did not."""
        self._waiting.pop(run_id, None)

    def write_to(self, recorder: RunRecorder) -> None:
        """The run is at work from here on, and writes down by this recorder."""
        self._recorder = recorder

    async def take(self) -> tuple[UserMessage, ...]:
        """What waited, in the order of arrival, stored as part of the run; not what was withdrawn. Raises ClaimLost."""
        waiting = list(self._waiting.values())
        if self._recorder is None or not waiting:
            return ()
        taken = set(await self._recorder.inject(self._injections(waiting)))
        for run in waiting:
            self._waiting.pop(run.run_id, None)
        return tuple(words_of(run) for run in waiting if run.run_id in taken)

    def _injections(self, waiting: Sequence[Run]) -> list[Injection]:
        now, ids, injections = self._with.clock.now(), self._with.ids, []
        for run in waiting:
            entry, shown = said(words_of(run), ids, now)
            injections.append(Injection(run.run_id, entry, NewEvent(now, shown)))
        return injections
