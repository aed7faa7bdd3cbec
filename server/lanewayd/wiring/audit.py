"""The audit ledger as the settings have it."""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lanewayd.audit.activity import Pseudonyms
from lanewayd.audit.interface import AuditStore
from lanewayd.audit.ledger import AuditLedger, LedgerLimits
from lanewayd.clock import Clock
from lanewayd.runs.auditing import Auditing, AuditScope, MessageAuditing
from lanewayd.settings.schema import AuditSettings
from lanewayd.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Audit:
    """The ledger, and what fills it."""

    ledger: AuditLedger
    auditing: Auditing


async def audit_pseudonyms(settings: AuditSettings, store: AuditStore) -> Pseudonyms | None:
    """What records of messages need; None: there will be none. Raises StoreUnavailable."""
    if not settings.enabled or settings.messages == MessageAuditing.OFF:
        return None
    secret = await store.audit_key(secrets.token_bytes(_SECRET_BYTES))
    if secret is None:
        logger.warning("audit: the key of the pseudonyms is lost; no messages are recorded until those it named expire")
        return None
    return Pseudonyms(secret)


def make_audit(
    settings: AuditSettings,
    pseudonyms: Pseudonyms | None,
    *,
    store: AuditStore,
    clock: Clock,
    metrics: Metrics,
    tool_of: Callable[[str], str],
) -> Audit:
    """Of one process. `tool_of`: see Auditing."""
    retention = settings.retention
    limits = LedgerLimits(timedelta(days=retention.max_age_days), retention.max_rows)
    ledger = AuditLedger(limits, store=store, clock=clock, on_dropped=metrics.audit_dropped)
    scope = AuditScope(settings.enabled, MessageAuditing(settings.messages), pseudonyms)
    return Audit(ledger, Auditing(scope, ledger=ledger, tool_of=tool_of))
