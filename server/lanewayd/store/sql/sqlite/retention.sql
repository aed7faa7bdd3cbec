-- What retention looks for, each with a limit.

-- name: delete_expired_keys
-- Keys that no caller may rely on any more.
DELETE FROM idempotency_keys
WHERE (tenant, idempotency_key) IN (
    SELECT tenant, idempotency_key FROM idempotency_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
);

-- name: select_expired_runs
-- Ended runs whose rows have been kept long enough, oldest first.
SELECT accepted_no, run_id, tenant, session_key, first_seq, last_seq, pruned_position
FROM runs
WHERE ended_at IS NOT NULL AND ended_at <= ?
ORDER BY ended_at
LIMIT ?;

-- name: delete_run
-- Its events are gone already.
DELETE FROM runs WHERE accepted_no = ?;

-- name: delete_run_texts
-- With its run.
DELETE FROM run_texts WHERE accepted_no = ?;

-- name: select_runs_with_old_events
-- Ended runs whose events have been kept long enough, oldest first.
SELECT accepted_no, run_id, tenant, session_key, first_seq, last_seq
FROM runs
WHERE ended_at IS NOT NULL AND event_bytes > 0 AND ended_at <= ?
ORDER BY ended_at
LIMIT ?;

-- name: select_ended_with_many_events
-- Ended runs with more than the allowed number of events.
SELECT accepted_no, run_id, tenant, session_key, first_seq, last_seq
FROM runs
WHERE ended_at IS NOT NULL AND last_seq - first_seq >= ?
LIMIT ?;

-- name: select_unended_with_many_events
-- The same for runs that go on.
SELECT accepted_no, run_id, tenant, session_key, first_seq, last_seq
FROM runs
WHERE ended_at IS NULL AND last_seq - first_seq >= ?
LIMIT ?;

-- name: select_oldest_with_events
-- What goes first when there are too many bytes.
SELECT accepted_no, run_id, tenant, session_key, first_seq, last_seq
FROM runs
WHERE ended_at IS NOT NULL AND event_bytes > 0
ORDER BY ended_at
LIMIT 1;
