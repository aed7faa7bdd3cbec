"""What a run has used so far: by the messages in its transcript, and by calls that left none there (R-5.98)."""

from lanewayd.messages import Usage

NOT_SAID = Usage(unavailable=True)
"""Of a call that ended before the service said what it used (R-8.75)."""


class Spending:
    """Owner of a run's usage in one dispatch. The void part has no entry to be read from again: the store keeps it."""

    def __init__(self, void: Usage) -> None:
        """`void` as the store has it."""
        self._kept = Usage()
        self._void = void
        self._open: Usage | None = None
        self._has_unstored = False

    @property
    def total(self) -> Usage:
        """All calls of all dispatches."""
        return self._kept + self._void + (self._open or Usage())

    @property
    def open(self) -> Usage | None:
        """Of a call that has failed while it is not decided what becomes of its message."""
        return self._open

    def resume(self, kept: Usage, *, was_cut: bool) -> None:
        """Go on from what the run's entries say. `was_cut`: a message was under way when the last dispatch ended."""
        self._kept = kept
        if was_cut:
            self._open = NOT_SAID
            self.void()

    def keep(self, usage: Usage) -> None:
        """A message that enters the transcript used this."""
        self._kept += usage

    def fail(self, usage: Usage) -> None:
        """A call without a whole message used this."""
        self._open = (self._open or Usage()) + usage

    def void(self) -> None:
        """The message of the failed call leaves no entry."""
        if self._open is not None and self._open != Usage():
            self._void += self._open
            self._has_unstored = True
        self._open = None

    def take_unstored(self) -> Usage | None:
        """The void part if it has grown since it was taken: it goes into the next change of the run's row."""
        if not self._has_unstored:
            return None
        self._has_unstored = False
        return self._void


def usage_before(kept: Usage, void: Usage, *, was_cut: bool) -> Usage:
    """What a run that nobody executes has used; arguments as in `Spending`."""
    spending = Spending(void)
    spending.resume(kept, was_cut=was_cut)
    return spending.total
