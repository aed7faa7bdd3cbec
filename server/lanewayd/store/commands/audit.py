"""Keeping the audit ledger: append at the end, remove at the beginning."""

from collections import defaultdict
from operator import attrgetter

from lanewayd.audit_records import AuditRecord
from lanewayd.store.audit_commands import AUDIT_STEP_ROWS, AppendAudit, ProvideAuditKey, PruneAudit
from lanewayd.store.times import to_us
from lanewayd.store.transaction import Row, Transaction

_COLUMNS = attrgetter(
    "tenant",
    "event_id",
    "actor",
    "action",
    "status",
    "code",
    "schema_version",
    "source_seq",
    "agent_id",
    "session_key",
    "session_id",
    "run_id",
    "tool_name",
    "tool_call",
    "channel",
    "account",
    "conversation",
    "thread",
)
"""As insert_audit_record has them, behind number and time; taken so because runs wait for the writer."""


def append_audit(transaction: Transaction, command: AppendAudit) -> None:
    """Each record takes the next number of its tenant."""
    by_tenant: dict[str, list[AuditRecord]] = defaultdict(list)
    for record in command.records:
        by_tenant[record.tenant].append(record)
    for tenant, records in by_tenant.items():
        transaction.execute("take_audit_numbers", {"tenant": tenant, "records": len(records)})
        first_no = transaction.one("select_audit_ledger", (tenant,))["last_no"] - len(records) + 1
        rows = [(first_no + index, to_us(record.at), *_COLUMNS(record)) for index, record in enumerate(records)]
        transaction.execute_many("insert_audit_record", rows)
    _cut_to_size(transaction, command.max_rows, AUDIT_STEP_ROWS)


def prune_audit(transaction: Transaction, command: PruneAudit) -> int:
    """First what is old, then what is too much."""
    left = AUDIT_STEP_ROWS
    for ledger in transaction.all("select_audit_ledgers"):
        end_no = min(ledger["last_no"] + 1, ledger["first_no"] + left)
        names = {"tenant": ledger["tenant"], "end_no": end_no, "oldest": to_us(command.oldest)}
        left -= _cut(transaction, ledger, transaction.one("select_first_kept_audit_no", names)[0])
    return AUDIT_STEP_ROWS - left + _cut_to_size(transaction, command.max_rows, left)


def provide_audit_key(transaction: Transaction, command: ProvideAuditKey) -> bytes | None:
    """See the command."""
    row = transaction.one("select_audit_key")
    if row is not None and len(row["secret"]) == len(command.new_secret):
        return bytes(row["secret"])
    if transaction.one("select_audit_pseudonym") is not None:
        return None
    transaction.execute("put_audit_key", (command.new_secret,))
    return command.new_secret


def _cut_to_size(transaction: Transaction, max_rows: int, left: int) -> int:
    """Remove up to `left` records that are too many; how many went."""
    excess = min(left, transaction.one("count_audit_records")[0] - max_rows)
    removed = 0
    while removed < excess:
        # The longest ledger pays, down to the length of the second: who does much does not push others out.
        longest, *others = transaction.all("select_audit_ledgers")
        ahead = _length(longest) - (_length(others[0]) if others else 0)
        share = -(-(excess - removed) // (1 + len(others)))
        removed += _cut(transaction, longest, longest["first_no"] + min(excess - removed, max(share, ahead)))
    return removed


def _length(ledger: Row) -> int:
    return int(ledger["last_no"] - ledger["first_no"] + 1)


def _cut(transaction: Transaction, ledger: Row, first_no: int) -> int:
    """Records of a ledger from `first_no` on stay; how many went."""
    removed = int(first_no - ledger["first_no"])
    if removed > 0:
        names = {"tenant": ledger["tenant"], "first_no": first_no}
        transaction.execute("delete_audit_records", names)
        transaction.execute("move_audit_ledger", names)
    return removed
