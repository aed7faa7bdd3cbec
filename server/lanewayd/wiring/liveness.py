"""Puts the look-out for stuck sessions together."""

from lanewayd.diagnostics.liveness import Thresholds, abort_after_s
from lanewayd.diagnostics.monitor import LivenessMonitor
from lanewayd.runs.liveness import LiveSessions
from lanewayd.settings.schema import Settings
from lanewayd.wiring.run_service import RunService


def make_liveness(settings: Settings, runs: RunService) -> LivenessMonitor | None:
    """The look-out of one process; None when the settings want none."""
    if not settings.diagnostics.enabled:
        return None
    collaborators = runs.collaborators
    clock = collaborators.clock
    return LivenessMonitor(
        LiveSessions(runs.scheduler, collaborators.watches, clock),
        thresholds(settings),
        clock,
        instruments=collaborators.telemetry.metrics,
    )


def thresholds(settings: Settings) -> Thresholds:
    """When a session is told of, and when something is done about it."""
    diagnostics = settings.diagnostics
    warn_s = diagnostics.stuck_session_warn_ms / 1000
    asked_ms = diagnostics.stuck_session_abort_ms
    own_abort_s = max(abort_after_s(warn_s), _asked_silence_s(settings, warn_s))
    return Thresholds(
        warn_s=warn_s,
        abort_s=own_abort_s if asked_ms is None else asked_ms / 1000,
        tool_abort_s=diagnostics.blocked_tool_abort_ms / 1000,
        ownerless_s=diagnostics.ownerless_release_ms / 1000,
        settle_s=diagnostics.abort_settle_ms / 1000,
    )


def _asked_silence_s(settings: Settings, warn_s: float) -> float:
    """A model service that may be silent for longer, as the settings say, has its own watchdog: that comes first."""
    asked = [provider.timeout_seconds for provider in settings.models.providers.values()]
    longest_s = max((each for each in [*asked, settings.models.idle_timeout_seconds] if each is not None), default=0.0)
    return longest_s + warn_s if longest_s else 0.0
