-- The audit ledger: records are appended, read newest first, and removed oldest first.

-- name: select_audit_ledger
-- The numbers of a tenant's records.
SELECT first_no, last_no FROM audit_ledgers WHERE tenant = ?;

-- name: select_audit_ledgers
-- Those of all tenants, the longest ledger first.
SELECT tenant, first_no, last_no FROM audit_ledgers ORDER BY last_no - first_no DESC;

-- name: count_audit_records
-- Of all tenants.
SELECT coalesce(sum(last_no - first_no + 1), 0) FROM audit_ledgers;

-- name: take_audit_numbers
-- The next numbers of a tenant.
INSERT INTO audit_ledgers (tenant, first_no, last_no) VALUES (:tenant, 1, :records)
ON CONFLICT (tenant) DO UPDATE SET last_no = last_no + :records;

-- name: insert_audit_record
-- Its number has been taken.
INSERT INTO audit_records (
    ledger_no, at, tenant, event_id, actor, action, status, code, schema_version, source_seq, agent_id, session_key,
    session_id, run_id, tool_name, tool_call, channel, account, conversation, thread
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: select_audit_records
-- Those between two numbers that pass the filters, newest first; '' and [] do not filter.
SELECT *
FROM audit_records
WHERE
    tenant = :tenant
    AND ledger_no >= :from_no
    AND ledger_no < :before_no
    AND at >= :after
    AND at <= :until
    AND (:agent_id = '' OR agent_id = :agent_id)
    AND (:session_key = '' OR session_key = :session_key)
    AND (:run_id = '' OR run_id = :run_id)
    AND (:status = '' OR status = :status)
    AND (:channel = '' OR channel = :channel)
    AND (:actions = '[]' OR action IN (SELECT value FROM json_each(:actions)))
ORDER BY ledger_no DESC
LIMIT :limit;

-- name: select_first_kept_audit_no
-- The number of the first of a tenant's records that is not older than a time, among its oldest ones.
SELECT coalesce(min(ledger_no), :end_no) FROM audit_records
WHERE tenant = :tenant AND ledger_no < :end_no AND at >= :oldest;

-- name: delete_audit_records
-- The oldest ones of a tenant.
DELETE FROM audit_records WHERE tenant = :tenant AND ledger_no < :first_no;

-- name: move_audit_ledger
-- After its oldest records have gone.
UPDATE audit_ledgers SET first_no = :first_no WHERE tenant = :tenant;

-- name: select_audit_pseudonym
-- Whether a record has a pseudonym.
SELECT 1 FROM audit_records WHERE account <> '' OR conversation <> '' OR thread <> '' LIMIT 1;

-- name: select_audit_key
-- The key of the pseudonyms.
SELECT secret FROM audit_keys WHERE key_no = 0;

-- name: put_audit_key
-- A new one, when no record has a pseudonym of another.
INSERT OR REPLACE INTO audit_keys (key_no, secret) VALUES (0, ?);
