-- Sessions that are not used any more.

-- name: select_unused
-- Those in which nothing has happened since, the longest unused first; rows as select_session, without its figures.
SELECT s.*, '' AS active_run_id, 0 AS queued_runs, '' AS last_run_id, '' AS last_state
FROM sessions AS s
WHERE
    s.updated_at < :since
    AND s.pinned = 0
    AND (:tenant = '' OR s.tenant = :tenant)
    AND (:session_key = '' OR s.session_key = :session_key)
    AND (NOT :spares_external OR s.channel = '')
    AND (:kind <> 'archived' OR s.archived > 0)
    AND (:kind <> 'one_off' OR substr(s.session_key, length(s.agent_id) + 8, 4) = 'run:')
    AND NOT EXISTS (
        SELECT 1 FROM runs AS r WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL
    )
ORDER BY s.updated_at, s.session_key
LIMIT :limit;

-- name: select_crowded_tenants
-- Who has more sessions that are not archived than allowed.
SELECT tenant, count(*) AS sessions FROM sessions WHERE archived = 0 GROUP BY tenant HAVING count(*) > ?;

-- name: count_ordinary
-- Those of a tenant that are not archived, without the one-off ones.
SELECT count(*) FROM sessions
WHERE tenant = ? AND archived = 0 AND substr(session_key, length(agent_id) + 8, 4) <> 'run:';

-- name: archive_unused
-- The longest unused first. 2: by retention, so that the next message takes it back.
UPDATE sessions SET archived = 2
WHERE tenant = :tenant AND session_key IN (
    SELECT s.session_key FROM sessions AS s
    WHERE
        s.tenant = :tenant
        AND s.archived = 0
        AND s.pinned = 0
        AND substr(s.session_key, length(s.agent_id) + 8, 4) <> 'run:'
        AND (NOT :spares_external OR s.channel = '')
        AND s.last_interaction_at <= :quiet_since
        AND NOT EXISTS (
            SELECT 1 FROM runs AS r WHERE r.tenant = s.tenant AND r.session_key = s.session_key AND r.ended_at IS NULL
        )
    ORDER BY s.updated_at, s.session_key
    LIMIT :limit
);

-- name: select_past_transcripts
-- Those whose key has gone on, the oldest first.
SELECT session_id, tenant, session_key, agent_id, started_at FROM past_transcripts ORDER BY ended_at, session_id LIMIT ?;

-- name: select_past_transcript
-- Whether it is still there.
SELECT session_id FROM past_transcripts WHERE session_id = ?;

-- name: select_transcript
-- All entries of a session id from behind a number, oldest first.
SELECT * FROM entries WHERE session_id = ? AND entry_no > ? ORDER BY entry_no LIMIT ?;

-- name: measure_store
-- Bytes that are in use: pages of the database that hold something, and the files of attachments.
SELECT
    (c.page_count - f.freelist_count) * s.page_size + (SELECT coalesce(sum(b.size_bytes), 0) FROM blobs AS b)
FROM pragma_page_count AS c, pragma_freelist_count AS f, pragma_page_size AS s;
