"""What the ledger needs of the store."""

from datetime import datetime
from typing import Protocol

from lanewayd.audit_records import AuditFilter, AuditPage, AuditRecord


class AuditStore(Protocol):
    """Keeps the records. All raise StoreUnavailable."""

    async def append_audit(self, records: tuple[AuditRecord, ...], max_rows: int) -> None:
        """Add them; of all tenants together the newest `max_rows` stay."""

    async def prune_audit(self, oldest: datetime, max_rows: int) -> bool:
        """Remove records before `oldest` and those above `max_rows`, one bounded step; whether it found the last."""

    async def audit_key(self, new_secret: bytes) -> bytes | None:
        """The key of the pseudonyms: the stored one, else the new one. None: it is lost, and pseudonyms of it exist."""

    async def audit_page(
        self, tenant: str, which: AuditFilter, *, before_no: int | None, limit: int, max_rows: int
    ) -> AuditPage:
        """Records below `before_no`, newest first, out of a bounded part of the tenant's newest `max_rows`."""
