-- Which runs came with which files.

-- name: insert_blob
-- Its file is there and synced. One file may belong to many messages.
INSERT OR IGNORE INTO blobs (blob_hash, size_bytes, created_at) VALUES (?, ?, ?);

-- name: insert_attachment
-- Stored with the message that it came with.
INSERT INTO attachments (run_id, attachment_index, blob_hash, name, mime_type) VALUES (?, ?, ?, ?, ?);

-- name: select_hashes_of_run
-- What a run came with.
SELECT DISTINCT blob_hash FROM attachments WHERE run_id = ?;

-- name: delete_attachments
-- With their run, or with its session.
DELETE FROM attachments WHERE run_id = ?;

-- name: insert_session_blob
-- Named by the copied entries of a forked session.
INSERT OR IGNORE INTO session_blobs (session_id, blob_hash) VALUES (?, ?);

-- name: select_hashes_of_transcript
-- What its copied entries name.
SELECT blob_hash FROM session_blobs WHERE session_id = ?;

-- name: delete_session_blobs
-- With their transcript.
DELETE FROM session_blobs WHERE session_id = ?;

-- name: delete_blob_without_reference
-- Nothing happens while a run or a forked session has it.
DELETE FROM blobs
WHERE blob_hash = :blob_hash
    AND NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.blob_hash = :blob_hash)
    AND NOT EXISTS (SELECT 1 FROM session_blobs AS s WHERE s.blob_hash = :blob_hash);

-- name: select_unnamed_hashes
-- Those of a JSON list that no row names.
SELECT value FROM json_each(?) WHERE value NOT IN (SELECT blob_hash FROM blobs);

-- name: select_hashes_of_tenant
-- Those of a JSON list that a run or a forked session of the tenant names.
SELECT each.value
FROM json_each(:hashes) AS each
WHERE
    EXISTS (
        SELECT 1 FROM attachments AS a INNER JOIN runs AS r ON r.run_id = a.run_id
        WHERE a.blob_hash = each.value AND r.tenant = :tenant
    )
    OR EXISTS (
        SELECT 1 FROM session_blobs AS b INNER JOIN sessions AS s ON s.session_id = b.session_id
        WHERE b.blob_hash = each.value AND s.tenant = :tenant
    );
