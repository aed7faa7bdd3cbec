"""What holds for a message in a session at work when neither it nor its session says so (D-7). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewayd.records import DropPolicy, QueueMode, QueueRules


@dataclass(frozen=True, slots=True)
class QueueDefaults:
    """What the settings say."""

    mode: QueueMode | None = None
    """`queue.mode`; None = not set."""
    by_channel: Mapping[str, QueueMode] = field(default_factory=dict)
    cap: int = 20
    drop: DropPolicy = DropPolicy.SUMMARIZE
    quiet_s: float = 0.5
    """Messages are collected until none has come for so long (`queue.debounce_ms`)."""

    def rules_for(self, channel: str) -> QueueRules:
        """Of a message that came through `channel`, "" = through none.

        Without a setting every message is a follow-up; that those of a channel steer comes with steering.
        """
        return QueueRules(self.by_channel.get(channel) or self.mode or QueueMode.FOLLOWUP, self.cap, self.drop)
