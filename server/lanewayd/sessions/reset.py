"""When a message begins a new session under its key (spec 03, 7.4). Pure; the clock and its zone are handed in.

Asked when a message comes, never by a timer (R-3.39).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo
from enum import StrEnum

DEFAULT_AT_HOUR = 4
DEFAULT_IDLE = timedelta(minutes=60)

_GROUP_WORDS = frozenset({"group", "channel"})


class ResetMode(StrEnum):
    """What ends a session by itself."""

    NONE = "none"
    DAILY = "daily"
    IDLE = "idle"


class SessionType(StrEnum):
    """What kind of conversation a key stands for."""

    DIRECT = "direct"
    GROUP = "group"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """DAILY with `idle` set ends a session by whichever comes first (R-3.40)."""

    mode: ResetMode = ResetMode.NONE
    at_hour: int = DEFAULT_AT_HOUR
    """0 to 23, in the zone of the host."""
    idle: timedelta | None = None
    """None: not set; mode IDLE then takes DEFAULT_IDLE."""


@dataclass(frozen=True, slots=True)
class ResetRules:
    """The policies of the settings: that of the channel, else of the type, else `default` (R-3.41)."""

    default: ResetPolicy = ResetPolicy()
    by_type: Mapping[SessionType, ResetPolicy] = field(default_factory=dict)
    by_channel: Mapping[str, ResetPolicy] = field(default_factory=dict)
    """By the name in lower case."""
    zone: tzinfo | None = None
    """None: that of the host."""

    def policy_for(self, session_key: str, *, channel: str, thread_id: str) -> ResetPolicy:
        """What holds for a message; `session_key` in canonical form, the others empty when it names none."""
        of_channel = self.by_channel.get(channel.strip().lower())
        if of_channel is not None:
            return of_channel
        return self.by_type.get(session_type(session_key, thread_id), self.default)

    def is_stale(self, policy: ResetPolicy, now: datetime, started_at: datetime, last_interaction_at: datetime) -> bool:
        """Whether a message at `now` begins a new session; `started_at` is when the present one began."""
        if policy.mode is ResetMode.NONE:
            return False
        if policy.mode is ResetMode.DAILY and started_at < last_hour(policy.at_hour, now, self.zone):
            return True
        idle = policy.idle if policy.mode is ResetMode.DAILY else policy.idle or DEFAULT_IDLE
        return idle is not None and now - last_interaction_at > idle


NO_RESETS = ResetRules()
"""Sessions go on until somebody resets them."""


def session_type(session_key: str, thread_id: str = "") -> SessionType:
    """By the words of the canonical key (R-1.28), or the thread that a message names."""
    words = session_key.split(":")[2:]
    if thread_id or "thread" in words[:-1]:
        return SessionType.THREAD
    return SessionType.GROUP if _GROUP_WORDS.intersection(words[:-1]) else SessionType.DIRECT


def last_hour(at_hour: int, now: datetime, zone: tzinfo | None) -> datetime:
    """The latest moment, at or before `now`, at which clocks in `zone` showed the full hour `at_hour`."""
    day = now.astimezone(zone).date()
    moment = _on_clock(datetime.combine(day, time(at_hour)), zone)
    if moment > now:
        moment = _on_clock(datetime.combine(day - timedelta(days=1), time(at_hour)), zone)
    return moment


def _on_clock(local: datetime, zone: tzinfo | None) -> datetime:
    """Local time of a zone, with its offset on that day; without a zone the host's."""
    return local.astimezone() if zone is None else local.replace(tzinfo=zone)
