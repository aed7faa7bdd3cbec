"""Whether a session that is at work gets on, is slow, or is stuck; and what to do about it. Pure.

Source: spec 02, 8. The activity clock starts again with every sign of life, a retry included; the progress clock only
with something new from the model or a tool (R-2.112, R-2.115). A session whose runs only wait for room in a lane is
healthy and never looked at (R-2.17).
"""

from dataclasses import dataclass
from enum import StrEnum

LEAST_ABORT_S = 300.0
WARNINGS_TO_ABORT = 3


class Work(StrEnum):
    """What the run at work in a session waits for."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    OTHER = "other"


class Health(StrEnum):
    """How a session does that has been silent for a while."""

    LONG_RUNNING = "session.long_running"
    """It is slow, and that is all."""
    STALLED = "session.stalled"
    """Somebody owns its work, which does not get on."""
    STUCK = "session.stuck"
    """Nobody will get it on."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Seconds. Source: spec 02, 8.1."""

    warn_s: float = 120.0
    abort_s: float = 360.0
    tool_abort_s: float = 900.0
    """Of a tool call, at least."""
    ownerless_s: float = 300.0
    """A place in a lane without an owner is given back after so long."""
    settle_s: float = 15.0
    """How long a stopped run may take to end."""


def abort_after_s(warn_s: float) -> float:
    """Where the settings do not say: max(5 min, 3 x warn)."""
    return max(LEAST_ABORT_S, WARNINGS_TO_ABORT * warn_s)


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool call that has not come back."""

    name: str
    call_id: str
    age_s: float
    limit_s: float = 0.0
    """After so long it ends by itself; 0 = it does not."""


@dataclass(frozen=True, slots=True)
class SessionLook:
    """A session at one moment."""

    tenant: str
    session_key: str
    run_id: str
    """At work; without one the first that waits."""
    generation: int
    """Another one than before: the lane has moved on."""
    has_owner: bool
    """Somebody supervises the run at work."""
    work: Work | None
    """None: nothing is at work."""
    age_s: float
    """Since the last sign of life."""
    progress_age_s: float
    """Since the last progress."""
    progress_reason: str = ""
    has_ended: bool = False
    """The run's end is written, but not all of it is gone."""
    queue_depth: int = 0
    """Runs that wait behind it."""
    tool: OpenTool | None = None
    """The oldest one that is open."""

    @property
    def state(self) -> str:
        """As events name it: `processing` or `idle`."""
        return "processing" if self.work is not None else "idle"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is the matter with a session."""

    health: Health
    reason: str
    classification: str


def diagnose(look: SessionLook, thresholds: Thresholds) -> Diagnosis | None:
    """The first row of spec 02, 8.2, that fits; None for a session that shows signs of life."""
    if look.age_s <= thresholds.warn_s:
        return None
    is_stale, is_queued = look.progress_age_s > thresholds.warn_s, look.queue_depth > 0
    if look.work is None:
        return _without_work(is_stale=is_stale, is_queued=is_queued)
    if look.tool is not None and min(look.tool.age_s, look.progress_age_s) > thresholds.warn_s:
        return Diagnosis(Health.STALLED, "blocked_tool_call", "blocked_tool_call")
    if is_queued and look.has_owner and look.has_ended:
        return Diagnosis(Health.STALLED, "queued_behind_terminal_active_work", "stalled_agent_run")
    if not is_stale:
        reason = "queued_behind_active_work" if is_queued else "active_work"
        return Diagnosis(Health.LONG_RUNNING, reason, "long_running")
    is_own_call = look.work is Work.MODEL_CALL and look.has_owner
    if is_own_call and look.progress_age_s < thresholds.abort_s:
        return Diagnosis(Health.LONG_RUNNING, "owned_silent_model_call", "long_running")
    return Diagnosis(Health.STALLED, "active_work_without_progress", "stalled_agent_run")


def _without_work(*, is_stale: bool, is_queued: bool) -> Diagnosis:
    if not is_stale:
        reason = "queued_behind_untracked_progress" if is_queued else "untracked_active_progress"
        return Diagnosis(Health.LONG_RUNNING, reason, "long_running")
    reason = "queued_work_without_active_run" if is_queued else "stale_session_state"
    return Diagnosis(Health.STUCK, reason, "stale_session_state")


def next_warning_s(thresholds: Thresholds, previous_s: float | None) -> float:
    """The age at which the session is told of next: `previous_s` is that of the last time since the last sign of life
    (R-2.117)."""
    return thresholds.warn_s if previous_s is None else max(previous_s + thresholds.warn_s, 2 * previous_s)


class Action(StrEnum):
    """What recovery does with a session."""

    OBSERVE_ONLY = "observe_only"
    KEEP_LANE = "keep_lane"
    ABORT_RUN = "abort_run"
    RELEASE_LANE = "release_lane"
    NONE = "none"


class Recovered(StrEnum):
    """What became of it."""

    SKIPPED = "skipped"
    ABORTED = "aborted"
    RELEASED = "released"
    NOOP = "noop"
    FAILED = "failed"


def abort_after_silence_s(look: SessionLook, thresholds: Thresholds) -> float:
    """How long a run may be silent before it is stopped: a tool call at least 15 minutes, and at least as long as the
    call ends by itself (R-2.118, R-2.124)."""
    if look.tool is None:
        return thresholds.abort_s
    own_s = look.tool.limit_s + thresholds.settle_s if look.tool.limit_s else 0.0
    return max(thresholds.abort_s, thresholds.tool_abort_s, own_s)


def action_for(look: SessionLook, diagnosis: Diagnosis, thresholds: Thresholds) -> Action:
    """Of spec 02, 8.3. Slow is not stuck: nothing is stopped that has shown progress within its limit."""
    if diagnosis.health is Health.LONG_RUNNING:
        return Action.NONE
    if look.work is None:
        return Action.RELEASE_LANE if look.queue_depth else Action.NONE
    if not look.has_owner:
        return Action.RELEASE_LANE if look.age_s >= thresholds.ownerless_s else Action.KEEP_LANE
    if look.progress_age_s < abort_after_silence_s(look, thresholds):
        return Action.OBSERVE_ONLY
    return Action.ABORT_RUN
