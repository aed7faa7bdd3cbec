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

-- Sessions that are forked, begun anew by their reset policy, put away and removed.

-- `started_at`: when the current session id began, the clock of the daily reset. `updated_at`: when anything happened in
-- the session last, the clock of retention. `channel`: that of the last message that had one; '' = none ever had.
-- `archived`: 0 no, 1 by a user, 2 by retention.
ALTER TABLE sessions ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN channel TEXT NOT NULL DEFAULT '';
UPDATE sessions SET started_at = created_at, updated_at = last_interaction_at;

-- Where a forked session comes from: the key, and the entry up to which it was copied; '' = it is no fork.
ALTER TABLE sessions ADD COLUMN parent_session_key TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN forked_at_entry_id TEXT NOT NULL DEFAULT '';

-- Files that the copied entries of a fork name; those of its own messages are in `attachments`.
CREATE TABLE session_blobs (
    session_id TEXT NOT NULL,
    blob_hash TEXT NOT NULL,
    PRIMARY KEY (session_id, blob_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_blobs_by_blob ON session_blobs (blob_hash);

-- Transcripts whose key has gone on to another session id; they wait for retention.
CREATE TABLE past_transcripts (
    session_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX past_transcripts_by_key ON past_transcripts (tenant, session_key);
