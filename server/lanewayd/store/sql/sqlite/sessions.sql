-- Sessions and their transcripts.

-- name: select_session
-- A session with the figures of its runs. Runs of an earlier session of the same key do not count.
SELECT
    s.*,
    coalesce((
        SELECT r.run_id FROM runs AS r
        WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL AND r.state = 'running'
    ), '') AS active_run_id,
    (
        SELECT count(*) FROM runs AS r
        WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL AND r.state = 'queued'
            AND r.host_run_id = ''
    ) AS queued_runs,
    coalesce(last_run.run_id, '') AS last_run_id,
    coalesce(last_run.state, '') AS last_state
FROM sessions AS s
LEFT JOIN runs AS last_run ON last_run.accepted_no = (
    SELECT max(r.accepted_no) FROM runs AS r WHERE r.tenant = s.tenant AND r.session_key = s.session_key
) AND last_run.session_id = s.session_id
WHERE s.tenant = ? AND s.session_key = ?;

-- name: select_sessions
-- Newest interaction first, then by key, from behind the given place in that order; rows as select_session.
SELECT
    s.*,
    coalesce((
        SELECT r.run_id FROM runs AS r
        WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL AND r.state = 'running'
    ), '') AS active_run_id,
    (
        SELECT count(*) FROM runs AS r
        WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL AND r.state = 'queued'
            AND r.host_run_id = ''
    ) AS queued_runs,
    coalesce(last_run.run_id, '') AS last_run_id,
    coalesce(last_run.state, '') AS last_state
FROM sessions AS s
LEFT JOIN runs AS last_run ON last_run.accepted_no = (
    SELECT max(r.accepted_no) FROM runs AS r WHERE r.tenant = s.tenant AND r.session_key = s.session_key
) AND last_run.session_id = s.session_id
WHERE
    s.tenant = :tenant
    AND s.last_interaction_at <= :before_at
    AND (s.last_interaction_at < :before_at OR s.session_key > :before_key)
    AND (:archived IS NULL OR (s.archived > 0) = :archived)
    AND (:pinned IS NULL OR s.pinned = :pinned)
ORDER BY s.last_interaction_at DESC, s.session_key
LIMIT :limit;

-- name: select_session_owner
-- Which session a key stands for, and what is set for it.
SELECT session_key, session_id, agent_id, settings_json FROM sessions WHERE tenant = ? AND session_key = ?;

-- name: select_session_by_id
-- Which key owns a session id; another tenant's session does not exist.
SELECT session_key, session_id, agent_id, settings_json FROM sessions WHERE session_id = ? AND tenant = ?;

-- name: select_dropped
-- What the cap has dropped and no turn was told of.
SELECT dropped_json FROM sessions WHERE tenant = ? AND session_key = ?;

-- name: update_dropped
-- With the runs that were dropped, or with the turn that tells of them.
UPDATE sessions SET dropped_json = ? WHERE tenant = ? AND session_key = ?;

-- name: insert_session
-- Takes over what readers of an earlier session of this key may have missed.
INSERT INTO sessions (
    tenant, session_key, session_id, agent_id, label, created_at, last_interaction_at, started_at, updated_at,
    channel, pruned_position
) VALUES (
    :tenant, :session_key, :session_id, :agent_id, :label, :created_at, :now, :now, :now, :channel,
    coalesce(
        (SELECT max(r.pruned_position) FROM runs AS r WHERE r.tenant = :tenant AND r.session_key = :session_key), 0
    )
);

-- name: touch_session
-- The last interaction never goes back; an empty label or channel leaves the one there is. What retention has put away
-- is in use again.
UPDATE sessions
SET
    last_interaction_at = CASE WHEN :is_interaction THEN max(last_interaction_at, :now) ELSE last_interaction_at END,
    updated_at = max(updated_at, :now),
    channel = CASE WHEN :channel = '' THEN channel ELSE :channel END,
    archived = 0,
    label = CASE WHEN :label = '' THEN label ELSE :label END
WHERE tenant = :tenant AND session_key = :session_key;

-- name: select_renewal
-- What says whether a message goes on with a session.
SELECT session_id, archived, started_at, last_interaction_at, leaf_entry_id
FROM sessions WHERE tenant = ? AND session_key = ?;

-- name: keep_past_transcript
-- Before the key goes on to another id.
INSERT INTO past_transcripts (session_id, tenant, session_key, agent_id, started_at, ended_at)
SELECT session_id, tenant, session_key, agent_id, started_at, :now
FROM sessions WHERE tenant = :tenant AND session_key = :session_key;

-- name: select_past_of_session
-- The earlier transcripts of a key.
SELECT session_id FROM past_transcripts WHERE tenant = ? AND session_key = ?;

-- name: delete_past_transcript
-- With its entries.
DELETE FROM past_transcripts WHERE session_id = ?;

-- name: renew_session
-- A new transcript under the same key, which has used nothing; what was set stays, what waited to be told goes (R-3.44).
UPDATE sessions
SET
    session_id = :session_id,
    started_at = :now,
    last_interaction_at = max(last_interaction_at, :now),
    leaf_entry_id = '',
    input_tokens = 0,
    output_tokens = 0,
    cache_read_tokens = 0,
    cache_write_tokens = 0,
    reasoning_tokens = 0,
    usage_unavailable = 0,
    cost_usd = NULL,
    lacks_prices = 0,
    context_tokens = 0,
    fallback_model = '',
    dropped_json = ''
WHERE tenant = :tenant AND session_key = :session_key;

-- name: update_session
-- Read before in the same transaction, so that nothing of another update is lost.
UPDATE sessions
SET
    settings_json = :settings_json,
    label = :label,
    pinned = :pinned,
    archived = coalesce(:archived, archived),
    updated_at = max(updated_at, :now)
WHERE tenant = :tenant AND session_key = :session_key;

-- name: mark_fork
-- Completes a session that was made in the same transaction.
UPDATE sessions
SET parent_session_key = :parent, forked_at_entry_id = :entry, leaf_entry_id = :leaf, settings_json = :settings
WHERE tenant = :tenant AND session_key = :session_key;

-- name: select_leaf
-- Where a session's transcript goes on.
SELECT leaf_entry_id FROM sessions WHERE tenant = ? AND session_key = ? AND session_id = ?;

-- name: select_session_at_start
-- As select_leaf, with what the session's runs have used so far, and which model watchers were last told of.
SELECT
    leaf_entry_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
    usage_unavailable, cost_usd, lacks_prices, fallback_model
FROM sessions
WHERE tenant = ? AND session_key = ? AND session_id = ?;

-- name: update_leaf
-- Stored with the entries it points at.
UPDATE sessions SET leaf_entry_id = ? WHERE tenant = ? AND session_key = ?;

-- name: update_fallback_model
-- Stored with the event that tells watchers.
UPDATE sessions SET fallback_model = ? WHERE tenant = ? AND session_key = ? AND session_id = ?;

-- name: add_usage
-- Sums over all runs of the session that have ended; NULL leaves the context size.
UPDATE sessions
SET
    input_tokens = input_tokens + :input_tokens,
    output_tokens = output_tokens + :output_tokens,
    cache_read_tokens = cache_read_tokens + :cache_read_tokens,
    cache_write_tokens = cache_write_tokens + :cache_write_tokens,
    reasoning_tokens = reasoning_tokens + :reasoning_tokens,
    usage_unavailable = max(usage_unavailable, :unavailable),
    cost_usd = CASE
        WHEN :cost_usd IS NULL THEN cost_usd
        ELSE coalesce(cost_usd, 0) + :cost_usd
    END,
    lacks_prices = max(lacks_prices, :lacks_prices),
    context_tokens = coalesce(:context_tokens, context_tokens)
WHERE tenant = :tenant AND session_key = :session_key AND session_id = :session_id;

-- name: clear_context_tokens
-- After a reset the context is empty.
UPDATE sessions SET context_tokens = 0 WHERE tenant = ? AND session_key = ?;

-- name: delete_session
-- The key is free again.
DELETE FROM sessions WHERE tenant = ? AND session_key = ?;

-- name: insert_entry
-- One entry; its number gives the order of writing.
INSERT INTO entries (entry_id, parent_entry_id, session_id, run_id, written_at, kind, body_json)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: delete_entries
-- A transcript goes with its session.
DELETE FROM entries WHERE session_id = ?;

-- name: select_context
-- From the leaf to the last reset or the root, read in the tree's order: oldest first.
WITH RECURSIVE path (entry_no, parent_entry_id, kind, depth) AS (
    SELECT e.entry_no, e.parent_entry_id, e.kind, 0
    FROM sessions AS s INNER JOIN entries AS e ON e.entry_id = s.leaf_entry_id
    WHERE s.session_id = ?
    UNION ALL
    SELECT e.entry_no, e.parent_entry_id, e.kind, path.depth + 1
    FROM path INNER JOIN entries AS e ON e.entry_id = path.parent_entry_id
    WHERE path.kind <> 'reset'
)
SELECT e.* FROM path INNER JOIN entries AS e ON e.entry_no = path.entry_no ORDER BY path.depth DESC;

-- name: select_path
-- From the root to an entry, oldest first.
WITH RECURSIVE path (entry_no, parent_entry_id, depth) AS (
    SELECT e.entry_no, e.parent_entry_id, 0 FROM entries AS e WHERE e.entry_id = ?
    UNION ALL
    SELECT e.entry_no, e.parent_entry_id, path.depth + 1
    FROM path INNER JOIN entries AS e ON e.entry_id = path.parent_entry_id
)
SELECT e.* FROM path INNER JOIN entries AS e ON e.entry_no = path.entry_no ORDER BY path.depth DESC;

-- name: measure_path
-- How much select_path would give; it stops counting one above the limit.
WITH RECURSIVE path (parent_entry_id, size_bytes, depth) AS (
    SELECT e.parent_entry_id, length(CAST(e.body_json AS BLOB)), 0 FROM entries AS e WHERE e.entry_id = :entry_id
    UNION ALL
    SELECT e.parent_entry_id, length(CAST(e.body_json AS BLOB)), path.depth + 1
    FROM path INNER JOIN entries AS e ON e.entry_id = path.parent_entry_id
    WHERE path.depth < :max_entries
)
SELECT count(*) AS entries, coalesce(sum(size_bytes), 0) AS size_bytes FROM path;

-- name: select_entries
-- All entries of a session from behind a number, oldest first.
SELECT e.*
FROM sessions AS s INNER JOIN entries AS e ON e.session_id = s.session_id
WHERE s.tenant = ? AND s.session_key = ? AND e.entry_no > ?
ORDER BY e.entry_no
LIMIT ?;

-- name: select_entry
-- An entry of this session only.
SELECT e.*
FROM sessions AS s INNER JOIN entries AS e ON e.session_id = s.session_id
WHERE s.tenant = ? AND s.session_key = ? AND e.entry_id = ?;

-- name: count_sessions
-- For the figures of the service.
SELECT count(*) FROM sessions;
