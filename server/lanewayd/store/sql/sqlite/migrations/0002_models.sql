-- Settings of sessions, costs, structured answers, and the health of credentials.

-- What UpdateSession stored, as a JSON object; '' = nothing. `cost_usd` is that of the calls whose prices were known,
-- NULL = of none; `lacks_prices`: there were others. What was used before costs were noted has no known price.
-- `fallback_model` is the model that took over when the selected one failed, as watchers were last told; '' = none.
ALTER TABLE sessions ADD COLUMN settings_json TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost_usd REAL;
ALTER TABLE sessions ADD COLUMN lacks_prices INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET lacks_prices = 1
WHERE input_tokens + output_tokens + cache_read_tokens + cache_write_tokens > 0;
ALTER TABLE sessions ADD COLUMN fallback_model TEXT NOT NULL DEFAULT '';

-- Messages that the cap of the queue has dropped and that no turn was told of yet: how many, and the ids of the last, as a
-- JSON object; '' = none.
ALTER TABLE sessions ADD COLUMN dropped_json TEXT NOT NULL DEFAULT '';
-- The model that gave the run's last message, when it is not the selected one; '' = it is, or there is none.
ALTER TABLE runs ADD COLUMN answered_by TEXT NOT NULL DEFAULT '';

-- The structured answer of a run, '' = none; what calls used that left no entry, '' = nothing.
ALTER TABLE run_texts ADD COLUMN output_json TEXT NOT NULL DEFAULT '';
ALTER TABLE run_texts ADD COLUMN void_usage_json TEXT NOT NULL DEFAULT '';
ALTER TABLE run_texts ADD COLUMN corrections INTEGER NOT NULL DEFAULT 0;

DROP VIEW run_rows;

CREATE VIEW run_rows AS
SELECT
    r.*,
    t.message,
    t.extra_system_prompt,
    t.request_json,
    t.error_json,
    t.payloads_json,
    t.usage_json,
    t.void_usage_json,
    t.corrections,
    t.output_json
FROM runs AS r
INNER JOIN run_texts AS t ON t.accepted_no = r.accepted_no;

-- The failure windows of a provider's credentials (spec 04, 4.2), which outlive a restart.
CREATE TABLE credential_health (
    provider TEXT NOT NULL,
    profile TEXT NOT NULL,
    state_json TEXT NOT NULL,
    PRIMARY KEY (provider, profile)
) STRICT, WITHOUT ROWID;

-- Which credential of a provider a session stays with (R-4.41).
CREATE TABLE credential_pins (
    session_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    profile TEXT NOT NULL,
    PRIMARY KEY (session_id, provider)
) STRICT, WITHOUT ROWID;
