"""What holds for a message in a session at work when neither it nor its session says so (D-7). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewayd.queueing.steering import can_join
from lanewayd.records import DropPolicy, QueueMode, QueueRules


@dataclass(frozen=True, slots=True)
class QueueDefaults:
    """What the settings say."""

    mode: QueueMode | None = None
    """`queue.mode`; None = not set."""
    by_channel: Mapping[str, QueueMode] = field(default_factory=dict)
    """By names of channels in lower case."""
    cap: int = 20
    drop: DropPolicy = DropPolicy.SUMMARIZE
    quiet_s: float = 0.5
    """Messages are collected until none has come for so long (`queue.debounce_ms`)."""
    quiet_s_by_channel: Mapping[str, float] = field(default_factory=dict)
    """The same of single channels, by names in lower case."""

    def rules_for(self, channel: str) -> QueueRules:
        """Of a message that came through `channel`, "" = through none. Without a setting those of a channel steer, the
        others are follow-ups."""
        name = channel.lower()
        mode = self.by_channel.get(name) or self.mode or (QueueMode.STEER if channel else QueueMode.FOLLOWUP)
        quiet_s = self.quiet_s_by_channel.get(name, self.quiet_s)
        return QueueRules(mode, self.cap, self.drop, quiet_s, can_join)
