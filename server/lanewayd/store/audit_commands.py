"""What the audit ledger asks of the store (spec 03, 10). Commands and answers like those of interface.py, of use to the
ledger only."""

from dataclasses import dataclass
from datetime import datetime

from lanewayd.audit_records import AuditRecord

AUDIT_STEP_ROWS = 1024
"""Records that one transaction removes at most (R-3.83)."""
AUDIT_WINDOW_ROWS = 4096
"""Records that one read looks at, so that a search for what is rare does not keep other readers waiting."""


@dataclass(frozen=True, slots=True)
class AppendAudit:
    """Add records, each to the ledger of its tenant. All ledgers together keep `max_rows`: the longest one loses its
    oldest first."""

    records: tuple[AuditRecord, ...]
    max_rows: int


@dataclass(frozen=True, slots=True)
class PruneAudit:
    """Remove what is older than `oldest`, and what is more than `max_rows`; one bounded step. Answers how many went; as
    many as AUDIT_STEP_ROWS: another step may find more."""

    oldest: datetime
    max_rows: int


@dataclass(frozen=True, slots=True)
class ProvideAuditKey:
    """Answers the key of the pseudonyms: the stored one, else `new_secret`, which is then stored. None: there are
    pseudonyms of a key that is lost, so no other may be used (R-3.79)."""

    new_secret: bytes
