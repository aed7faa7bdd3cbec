-- The event log.

-- name: insert_event
-- A second event with the number of a stored one is refused.
INSERT INTO events (position, tenant, session_key, run_id, run_no, seq, kind, is_last, encoded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: select_run_log
-- Where a run's log begins and ends, and whether it may still grow.
SELECT accepted_no, first_seq, last_seq, ended_at IS NOT NULL AS has_ended FROM runs WHERE run_id = ? AND tenant = ?;

-- name: select_run_events
-- In the run's order.
SELECT position, run_id, session_key, tenant, seq, kind, is_last, encoded
FROM events
WHERE run_no = ? AND seq > ?
ORDER BY seq
LIMIT ?;

-- name: select_session_logs
-- The logs of a session that have events above a position, in the order of their first events.
SELECT accepted_no, first_seq, last_seq, first_position
FROM runs
WHERE
    tenant = :tenant AND session_key = :session_key
    AND ended_at IS NOT NULL AND event_bytes > 0 AND last_position > :after
UNION ALL
SELECT accepted_no, first_seq, last_seq, first_position
FROM runs
WHERE
    tenant = :tenant AND session_key = :session_key
    AND ended_at IS NULL AND event_bytes > 0 AND last_position > :after
ORDER BY first_position;

-- name: select_tenant_events
-- In the order of commits.
SELECT position, run_id, session_key, tenant, seq, kind, is_last, encoded
FROM events
WHERE tenant = ? AND position > ?
ORDER BY position
LIMIT ?;

-- name: select_last_position
-- Positions up to this one are stored, or will never be.
SELECT last_position FROM store;

-- name: select_tenant_pruned
-- The highest position that a tenant has lost.
SELECT coalesce(max(pruned_position), 0) FROM tenants WHERE tenant = ?;

-- name: select_session_pruned
-- The highest position that a session has lost, also when its row is gone and those of its runs are left.
SELECT max(
    coalesce((SELECT pruned_position FROM sessions WHERE tenant = :tenant AND session_key = :session_key), 0),
    coalesce((SELECT max(pruned_position) FROM runs WHERE tenant = :tenant AND session_key = :session_key), 0)
);

-- name: select_first_run_to_follow
-- The oldest run of a session that has not ended, else its last one.
SELECT accepted_no, first_seq, last_seq, pruned_position
FROM runs
WHERE accepted_no = coalesce(
    (
        SELECT min(accepted_no) FROM runs
        WHERE tenant = :tenant AND session_key = :session_key AND ended_at IS NULL
    ),
    (SELECT max(accepted_no) FROM runs WHERE tenant = :tenant AND session_key = :session_key)
);

-- name: select_event_position
-- Where an event stands in the order of commits.
SELECT position FROM events WHERE run_no = ? AND seq = ?;

-- name: select_terminal_event
-- The last event of a run that has ended.
SELECT position, seq, length(encoded) AS size_bytes FROM events WHERE run_no = ? AND seq = ? AND is_last = 1;

-- name: replace_encoded
-- The event keeps its number and its position.
UPDATE events SET encoded = ? WHERE position = ?;

-- name: measure_events
-- What a cut of a run's log up to a number removes.
SELECT count(*) AS events, coalesce(sum(length(encoded)), 0) AS size_bytes, coalesce(max(position), 0) AS last_position
FROM events
WHERE run_no = ? AND seq <= ?;

-- name: delete_events
-- The oldest events of a run.
DELETE FROM events WHERE run_no = ? AND seq <= ?;

-- name: update_run_cut
-- The log begins later; readers below the position have missed something.
UPDATE runs
SET first_seq = ?, event_bytes = event_bytes - ?, pruned_position = max(pruned_position, ?)
WHERE accepted_no = ?;

-- name: update_session_cut
-- As update_run_cut; the session outlives the rows of its runs.
UPDATE sessions SET pruned_position = max(pruned_position, ?) WHERE tenant = ? AND session_key = ?;

-- name: put_tenant_cut
-- As update_run_cut, for readers of everything.
INSERT INTO tenants (tenant, pruned_position) VALUES (?, ?)
ON CONFLICT (tenant) DO UPDATE SET pruned_position = max(pruned_position, excluded.pruned_position);

-- name: resize_run_events
-- After an event was replaced by a shorter one.
UPDATE runs SET event_bytes = event_bytes + ? WHERE accepted_no = ?;
