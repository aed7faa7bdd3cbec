"""What goes on beside the runs for as long as the service does: retention."""

from datetime import timedelta

from lanewayd.audit.ledger import AuditLedger
from lanewayd.runs.collaborators import Collaborators
from lanewayd.runs.retention import Retention, RetentionSettings
from lanewayd.settings_schema import Settings


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
        more_sweeps=(ledger.sweep,),
    )
