"""What goes on beside the runs for as long as the service does: retention."""

from datetime import timedelta

from lanewayd.audit.ledger import AuditLedger
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.retention import Retention, RetentionSettings
from lanewayd.runs.session_upkeep import SessionBounds, SessionUpkeep
from lanewayd.settings.schema import Settings
from lanewayd.transcript.archives import Archives


def make_retention(settings: Settings, collaborators: Collaborators, ledger: AuditLedger) -> Retention:
    """The sweeps of one process."""
    events = settings.events.retention
    return Retention(
        RetentionSettings(
            events_max_age=timedelta(days=events.max_age_days),
            max_events_per_run=events.max_events_per_run,
            events_max_bytes=events.max_bytes,
            runs_max_age=timedelta(days=settings.runs.retention.max_age_days),
        ),
        store=collaborators.store,
        blobs=collaborators.blobs,
        clock=collaborators.clock,
        more_sweeps=(ledger.sweep, make_session_upkeep(settings, collaborators).sweep),
    )


def make_session_upkeep(settings: Settings, collaborators: Collaborators) -> SessionUpkeep:
    """The retention of sessions."""
    return SessionUpkeep(session_bounds(settings), collaborators, Archives(settings.home / "archives"))


def session_bounds(settings: Settings) -> SessionBounds:
    """What sessions may take; 0 in the settings is no bound."""
    wanted = settings.session.maintenance
    high_water = wanted.max_disk_bytes * 4 // 5 if wanted.high_water_bytes is None else wanted.high_water_bytes
    return SessionBounds(
        unused_for=_days(wanted.prune_after_days),
        max_sessions=wanted.max_entries or None,
        recent=timedelta(hours=wanted.preserve_recent_hours),
        archives_age=_days(wanted.reset_archive_retention_days),
        max_bytes=wanted.max_disk_bytes or None,
        high_water_bytes=min(high_water, wanted.max_disk_bytes),
        spares_external=wanted.preserve_external,
        only_warns=wanted.mode == "warn",
    )


def _days(days: float) -> timedelta | None:
    """0 = no bound."""
    return timedelta(days=days) if days else None
