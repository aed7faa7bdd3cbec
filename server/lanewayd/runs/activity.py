"""What a run at work is up to, and when it last showed a sign of life: what liveness looks at.

Written on the path of every delta, so it is plain attributes; read every half minute.
"""

from collections.abc import Sequence

from lanewayd.clock import Clock
from lanewayd.diagnostics.liveness import Work
from lanewayd.messages import ToolCall


class Activity:
    """One dispatch. Owner of its clocks: the recorder writes, liveness reads."""

    __slots__ = ("_clock", "alive_s", "has_ended", "progress_reason", "progressed_s", "tools", "work")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.alive_s = self.progressed_s = clock.monotonic()
        self.progress_reason = "started"
        self.work = Work.OTHER
        self.has_ended = False
        self.tools: dict[str, tuple[ToolCall, float]] = {}
        """Call id -> the call and when it was launched, of those that have not come back."""

    def progressed(self, reason: str) -> None:
        """Something new came from the model or a tool."""
        self.alive_s = self.progressed_s = self._clock.monotonic()
        self.progress_reason = reason

    def is_alive(self) -> None:
        """Something happened that is no progress, as another try (R-2.115)."""
        self.alive_s = self._clock.monotonic()

    def calls_model(self) -> None:
        """A model call begins."""
        self.work = Work.MODEL_CALL
        self.is_alive()

    def answered(self) -> None:
        """The model's message is complete."""
        self.work = Work.OTHER
        self.progressed("message")

    def launched(self, calls: Sequence[ToolCall]) -> None:
        """Tool calls begin."""
        self.work = Work.TOOL_CALL
        self.progressed("tool_started")
        for call in calls:
            self.tools[call.call_id] = (call, self.progressed_s)

    def came_back(self, call: ToolCall) -> None:
        """A tool call has its result."""
        self.tools.pop(call.call_id, None)
        if not self.tools:
            self.work = Work.OTHER
        self.progressed("tool_ended")

    def ended(self) -> None:
        """The run's end is written."""
        self.has_ended = True
        self.progressed("ended")
