"""Which queue mode a message has when neither it nor its session says so (D-7). Pure."""

from dataclasses import dataclass

from lanewayd.records import QueueMode


@dataclass(frozen=True, slots=True)
class QueueDefaults:
    """What the settings say."""

    mode: QueueMode | None = None
    """`queue.mode`; None = not set."""

    def mode_for(self, channel: str) -> QueueMode:
        """The mode of a message that came through `channel`, "" = through none.

        Without a setting every message is a follow-up; that those of a channel steer comes with steering.
        """
        return self.mode or QueueMode.FOLLOWUP
