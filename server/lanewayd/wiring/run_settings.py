"""What runs and their acceptance obey, out of the settings."""

from datetime import timedelta

from lanewayd.loop.limits import Allowance
from lanewayd.queueing.modes import QueueDefaults
from lanewayd.records import DropPolicy, QueueMode
from lanewayd.runs.collaborators import RunSettings
from lanewayd.runs.room import AcceptLimits
from lanewayd.sessions.reset import ResetMode, ResetPolicy, ResetRules, SessionType
from lanewayd.settings.schema import ResetSettings, Settings


def run_settings(settings: Settings) -> RunSettings:
    """The values that every run is given."""
    of_run, of_session = settings.limits, settings.limits.session
    return RunSettings(
        delta_interval_s=settings.events.delta_interval_ms / 1000,
        run_allowance=Allowance(of_run.max_tokens, of_run.max_cost_usd),
        session_allowance=Allowance(of_session.max_tokens, of_session.max_cost_usd),
    )


def accept_limits(settings: Settings) -> AcceptLimits:
    """The limits of acceptance."""
    limits = settings.limits
    return AcceptLimits(
        limits.max_queued_runs,
        limits.max_depth,
        limits.max_session_key_bytes,
        tenant_queued_runs=limits.tenant.max_queued_runs,
        tenant_active_runs=limits.tenant.max_active_runs,
    )


def queue_defaults(settings: Settings) -> QueueDefaults:
    """What holds for messages that say nothing of the queue."""
    queue = settings.queue
    return QueueDefaults(
        QueueMode(queue.mode) if queue.mode else None,
        by_channel={name.lower(): QueueMode(mode) for name, mode in queue.by_channel.items()},
        cap=queue.cap,
        drop=DropPolicy(queue.drop),
        quiet_s=queue.debounce_ms / 1000,
        quiet_s_by_channel={name.lower(): ms / 1000 for name, ms in queue.debounce_ms_by_channel.items()},
    )


def reset_rules(settings: Settings) -> ResetRules:
    """When sessions are begun anew."""
    session = settings.session
    return ResetRules(
        _policy(session.reset),
        by_type={SessionType(name): _policy(policy) for name, policy in session.reset_by_type.items()},
        by_channel={name.lower(): _policy(policy) for name, policy in session.reset_by_channel.items()},
    )


def _policy(reset: ResetSettings) -> ResetPolicy:
    idle = None if reset.idle_minutes is None else timedelta(minutes=reset.idle_minutes)
    return ResetPolicy(ResetMode(reset.mode), reset.at_hour, idle)
