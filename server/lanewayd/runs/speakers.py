"""Which model speaks in a run, and when watchers are told that another one has taken over or the selected one is back:
each change once, over the runs of a session (R-4.79). Pure.

A model that takes over is announced when it is called. When an earlier run of the session has announced one, its word
stands until an answer shows that it does not hold any more.
"""

from dataclasses import replace

from lanewayd.events import Lifecycle, LifecyclePhase
from lanewayd.messages import RunError
from lanewayd.models.candidates import Candidate
from lanewayd.records import RunState
from lanewayd.store.interface import RunChange


class Speakers:
    """Owner of who speaks in a run, and of what watchers of its session were told last."""

    def __init__(self, *, selected: str, answered_by: str, told: str) -> None:
        """`selected`: `provider/model` of the run; `answered_by`: as in its row; `told`: as in its session's."""
        self._selected = selected
        self._answered_by = answered_by
        self._told = told
        self._is_of_earlier_run = bool(told)
        self._speaker = Candidate.of(selected)
        self._error: RunError | None = None

    @property
    def speaker(self) -> Candidate:
        """Whose message is in progress."""
        return self._speaker

    def begins(self, candidate: Candidate) -> None:
        """A call of this model begins."""
        self._speaker = candidate

    def takes_over(self, error: RunError) -> Lifecycle | None:
        """The speaker is called in place of another one, for `error`: the announcement, if there is one now."""
        self._error = error
        model = self._speaker.reference
        if self._is_of_earlier_run or model in (self._told, self._selected):
            return None
        self._told = model
        return self._event(LifecyclePhase.FALLBACK)

    def answered(self, change: RunChange) -> tuple[list[Lifecycle], RunChange]:
        """The speaker's message is whole: what is announced after it, and `change` with what its rows keep."""
        model = self._speaker.reference
        is_selected = model == self._selected
        answered_by = "" if is_selected else model
        if answered_by != self._answered_by:
            self._answered_by = answered_by
            change = replace(change, answered_by=answered_by)
        if answered_by == self._told:
            return [], change
        self._told, self._is_of_earlier_run = answered_by, False
        phase = LifecyclePhase.FALLBACK_CLEARED if is_selected else LifecyclePhase.FALLBACK
        return [self._event(phase)], replace(change, fallback_model=answered_by)

    def _event(self, phase: LifecyclePhase) -> Lifecycle:
        return Lifecycle(
            phase,
            RunState.RUNNING.value,
            error=self._error if phase is LifecyclePhase.FALLBACK else None,
            provider=self._speaker.provider,
            model=self._speaker.model,
        )
