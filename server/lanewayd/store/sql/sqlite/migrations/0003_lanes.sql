-- The audit ledger.

-- The numbers of each tenant's records: they have no gaps, and none is given twice, so there are
-- `last_no - first_no + 1` of them. A tenant without records keeps its row.
CREATE TABLE audit_ledgers (
    tenant TEXT PRIMARY KEY,
    first_no INTEGER NOT NULL,
    last_no INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was done, never what was said. `at` in microseconds; '' = not known or not of this action. `account`,
-- `conversation` and `thread` are pseudonyms.
CREATE TABLE audit_records (
    tenant TEXT NOT NULL,
    ledger_no INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    code TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    source_seq INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    tool_call TEXT NOT NULL,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    PRIMARY KEY (tenant, ledger_no)
) STRICT, WITHOUT ROWID;

-- The key of the pseudonyms, made when it is first needed: one row.
CREATE TABLE audit_keys (
    key_no INTEGER PRIMARY KEY CHECK (key_no = 0),
    secret BLOB NOT NULL
) STRICT;
