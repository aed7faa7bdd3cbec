-- The first schema. Times are microseconds since 1970-01-01 UTC, durations are seconds, both named so.
-- Every key that a caller gives is unique within its tenant only.

-- One row: who this database is, and the highest numbers its only writer has given.
-- `commit_no` tells after a failed COMMIT whether the group is stored. `event_bytes` is the size of all stored events.
CREATE TABLE store (
    row_no INTEGER PRIMARY KEY CHECK (row_no = 1),
    store_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    commit_no INTEGER NOT NULL DEFAULT 0,
    last_position INTEGER NOT NULL DEFAULT 0,
    last_accepted_no INTEGER NOT NULL DEFAULT 0,
    event_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The highest position of a tenant's events that is gone: a cursor below it has missed something.
CREATE TABLE tenants (
    tenant TEXT PRIMARY KEY,
    pruned_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    tenant TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT NOT NULL UNIQUE,
    agent_id TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_interaction_at INTEGER NOT NULL,
    leaf_entry_id TEXT NOT NULL DEFAULT '',
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    usage_unavailable INTEGER NOT NULL DEFAULT 0,
    context_tokens INTEGER NOT NULL DEFAULT 0,
    pruned_position INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, session_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_interaction ON sessions (tenant, last_interaction_at DESC, session_key);

-- The part of a run's row that changes while it runs: `first_position` and `last_position` are those of its first and its
-- last event, also when retention has removed them; 0 while it has none. Its texts are in run_texts: an append changes this row, and
-- SQLite rewrites a whole row, with its message of up to a megabyte.
CREATE TABLE runs (
    accepted_no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    parent_run_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    label TEXT NOT NULL,
    lane TEXT NOT NULL,
    priority INTEGER NOT NULL,
    model TEXT NOT NULL,
    timeout_s REAL NOT NULL,
    traceparent TEXT NOT NULL,
    state TEXT NOT NULL,
    disposition TEXT NOT NULL,
    queue_position INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    claim INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    charges INTEGER NOT NULL,
    handed_over INTEGER NOT NULL,
    used_s REAL NOT NULL,
    open_message_id TEXT NOT NULL,
    abort_requested_at INTEGER,
    abort_stop_reason TEXT NOT NULL,
    abort_reason TEXT NOT NULL,
    host_run_id TEXT NOT NULL,
    intake_open INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    event_bytes INTEGER NOT NULL,
    pruned_position INTEGER NOT NULL,
    first_position INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    stop_reason TEXT NOT NULL,
    truncated INTEGER NOT NULL
) STRICT;

-- An index ends with the rowid, here the accepted_no.
CREATE INDEX runs_by_tenant ON runs (tenant);
CREATE INDEX runs_by_session ON runs (tenant, session_key);
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_unended ON runs (tenant, session_key) WHERE ended_at IS NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_ended_with_events ON runs (ended_at) WHERE ended_at IS NOT NULL AND event_bytes > 0;
CREATE INDEX runs_ended_by_event_count ON runs (last_seq - first_seq) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_ended_of_session ON runs (tenant, session_key, last_position)
WHERE ended_at IS NOT NULL AND event_bytes > 0;
CREATE INDEX runs_hosted ON runs (host_run_id) WHERE host_run_id <> '' AND ended_at IS NULL;

CREATE TABLE run_texts (
    accepted_no INTEGER PRIMARY KEY,
    message TEXT NOT NULL,
    extra_system_prompt TEXT NOT NULL,
    request_json TEXT NOT NULL,
    error_json TEXT NOT NULL DEFAULT '',
    payloads_json TEXT NOT NULL DEFAULT '',
    usage_json TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE VIEW run_rows AS
SELECT
    r.*,
    t.message,
    t.extra_system_prompt,
    t.request_json,
    t.error_json,
    t.payloads_json,
    t.usage_json
FROM runs AS r
INNER JOIN run_texts AS t ON t.accepted_no = r.accepted_no;

-- `encoded` holds the wire form with its cursor; `run_no` is the accepted_no of the run. There is no index by session:
-- with many runs at once it would cost each append a page of its own. A session's events are found through its runs.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session_key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    run_no INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    is_last INTEGER NOT NULL,
    encoded BLOB NOT NULL,
    UNIQUE (run_no, seq)
) STRICT;

CREATE INDEX events_by_tenant ON events (tenant);

-- A tree for each session: the parent of the first entry is ''.
CREATE TABLE entries (
    entry_no INTEGER PRIMARY KEY,
    entry_id TEXT NOT NULL UNIQUE,
    parent_entry_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body_json TEXT NOT NULL
) STRICT;

CREATE INDEX entries_by_session ON entries (session_id);

CREATE TABLE tool_calls (
    call_no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    call_index INTEGER NOT NULL,
    name TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    state TEXT NOT NULL,
    approval_id TEXT NOT NULL DEFAULT '',
    result_text TEXT NOT NULL,
    is_error INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    UNIQUE (run_id, entry_id, call_id)
) STRICT;

CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    hash_version INTEGER NOT NULL,
    answer_json TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- A blob is a file named by its SHA-256, synced before the row that names it; it goes with its last attachment.
CREATE TABLE blobs (
    blob_hash TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
    run_id TEXT NOT NULL,
    attachment_index INTEGER NOT NULL,
    blob_hash TEXT NOT NULL,
    name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    PRIMARY KEY (run_id, attachment_index)
) STRICT, WITHOUT ROWID;

CREATE INDEX attachments_by_blob ON attachments (blob_hash);

-- Written and emptied by the trial commits of a store that could not commit.
CREATE TABLE trials (
    trial_no INTEGER PRIMARY KEY,
    filler BLOB NOT NULL
) STRICT;
