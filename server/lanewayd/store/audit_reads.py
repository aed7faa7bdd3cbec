"""What is asked of the audit ledger."""

from dataclasses import fields

from lanewayd.audit_records import AuditAction, AuditActor, AuditFilter, AuditPage, AuditRecord, AuditStatus
from lanewayd.store.audit_commands import AUDIT_WINDOW_ROWS
from lanewayd.store.reader import Snapshot
from lanewayd.store.run_rows import to_json
from lanewayd.store.times import from_us, to_us
from lanewayd.store.transaction import Row

_ABOVE_ALL = 2**63 - 1
_COLUMNS = tuple(field.name for field in fields(AuditRecord))


def audit_page(
    snapshot: Snapshot, tenant: str, which: AuditFilter, before_no: int | None, limit: int, max_rows: int
) -> AuditPage:
    """One window of the ledger below `before_no`, newest first. A tenant sees at most its `max_rows` newest records."""
    ledger = snapshot.one("select_audit_ledger", (tenant,))
    if ledger is None:
        return AuditPage((), 0)
    first_no = max(ledger["first_no"], ledger["last_no"] - max_rows + 1)
    end_no = min(ledger["last_no"] + 1, _ABOVE_ALL if before_no is None else before_no)
    from_no = max(first_no, end_no - AUDIT_WINDOW_ROWS)
    names = {
        "tenant": tenant,
        "from_no": from_no,
        "before_no": end_no,
        "after": to_us(which.after),
        "until": _ABOVE_ALL if which.before is None else to_us(which.before),
        "agent_id": which.agent_id,
        "session_key": which.session_key,
        "run_id": which.run_id,
        "status": which.status.value if which.status is not None else "",
        "channel": which.channel,
        "actions": to_json([action.value for action in which.actions]),
        "limit": limit,
    }
    records = tuple(_record(row) for row in snapshot.all("select_audit_records", names))
    if len(records) == limit:
        return AuditPage(records, records[-1].ledger_no if limit else end_no)
    return AuditPage(records, from_no if from_no > first_no else 0)


def _record(row: Row) -> AuditRecord:
    values = {name: row[name] for name in _COLUMNS}
    values["at"] = from_us(row["at"])
    values["actor"] = AuditActor(row["actor"])
    values["action"] = AuditAction(row["action"])
    values["status"] = AuditStatus(row["status"])
    return AuditRecord(**values)
