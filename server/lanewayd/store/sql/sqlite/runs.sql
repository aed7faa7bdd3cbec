-- Runs and their tool calls.

-- name: insert_run
-- One row per accepted message; its texts follow in the same savepoint.
INSERT INTO runs (
    accepted_no, run_id, tenant, session_key, session_id, agent_id, parent_run_id, depth, label, lane, priority, model,
    timeout_s, traceparent, state, disposition, queue_position, accepted_at, started_at, ended_at, claim, attempt,
    charges, handed_over, used_s, open_message_id, abort_requested_at, abort_stop_reason, abort_reason, host_run_id,
    intake_open, first_seq, last_seq, event_bytes, pruned_position, first_position, last_position, stop_reason, truncated
) VALUES (
    :accepted_no, :run_id, :tenant, :session_key, :session_id, :agent_id, :parent_run_id, :depth, :label, :lane,
    :priority, :model, :timeout_s, :traceparent, :state, :disposition, :queue_position, :accepted_at, :started_at, NULL,
    0, 0, 0, 0, 0, '', NULL, '', '', :host_run_id, 0, 1, :last_seq, :event_bytes, 0, :first_position, :last_position, '', 0
);

-- name: insert_run_texts
-- The message is stored with its run.
INSERT INTO run_texts (accepted_no, message, extra_system_prompt, request_json)
VALUES (:accepted_no, :message, :extra_system_prompt, :request_json);

-- name: select_run_of_tenant
-- Another tenant's run does not exist.
SELECT * FROM run_rows WHERE run_id = ? AND tenant = ?;

-- name: select_run_by_no
-- The whole row after a change.
SELECT * FROM run_rows WHERE accepted_no = ?;

-- name: select_run_head
-- What a write of a run's log is checked against and needs to know.
SELECT
    accepted_no, run_id, tenant, session_key, session_id, agent_id, state, claim, attempt, last_seq, abort_requested_at
FROM runs
WHERE run_id = ?;

-- name: select_parent
-- The run a child names as its parent.
SELECT depth, ended_at FROM runs WHERE run_id = ? AND tenant = ?;

-- name: select_ancestors
-- A run and all its ancestors; ancestors that retention has removed end the line.
WITH RECURSIVE line (run_id, parent_run_id, session_key) AS (
    SELECT run_id, parent_run_id, session_key FROM runs WHERE run_id = :run_id AND tenant = :tenant
    UNION
    SELECT r.run_id, r.parent_run_id, r.session_key
    FROM line INNER JOIN runs AS r ON r.run_id = line.parent_run_id AND r.tenant = :tenant
)
SELECT run_id, session_key FROM line;

-- name: select_unended_of_session
-- The runs that keep a session busy, oldest first.
SELECT accepted_no, run_id, state, host_run_id
FROM runs
WHERE tenant = ? AND session_key = ? AND ended_at IS NULL
ORDER BY accepted_no;

-- name: select_queued_of_session
-- The order in which they will start.
SELECT accepted_no
FROM runs
WHERE tenant = ? AND session_key = ? AND ended_at IS NULL AND state = 'queued' AND host_run_id = ''
ORDER BY accepted_no;

-- name: select_merged
-- The messages that a run took in, in the order in which they came.
SELECT run_id FROM runs WHERE host_run_id = ? AND host_run_id <> '' AND ended_at IS NULL AND state = 'merged'
ORDER BY accepted_no;

-- name: select_attached
-- The messages that wait to be taken in by a run, in the order in which they came.
SELECT run_id FROM runs WHERE host_run_id = ? AND host_run_id <> '' AND ended_at IS NULL AND state = 'queued'
ORDER BY accepted_no;

-- name: select_steerable
-- The run at work in a session, if messages may still go into it.
SELECT * FROM run_rows
WHERE
    tenant = ? AND session_key = ? AND ended_at IS NULL AND state = 'running' AND intake_open = 1
    AND abort_requested_at IS NULL;

-- name: select_waiting_steers
-- Messages of a session that were to steer and have no run to go into.
SELECT r.run_id
FROM runs AS r INNER JOIN run_texts AS t ON t.accepted_no = r.accepted_no
WHERE
    r.tenant = ? AND r.session_key = ? AND r.ended_at IS NULL AND r.state = 'queued' AND r.host_run_id = ''
    AND json_extract(t.request_json, '$.queue_mode') = 'steer'
LIMIT 1;

-- name: select_queued_behind
-- What waits in a session behind one of its runs, in the order in which it will start.
SELECT * FROM run_rows
WHERE tenant = ? AND session_key = ? AND ended_at IS NULL AND state = 'queued' AND host_run_id = '' AND accepted_no > ?
ORDER BY accepted_no
LIMIT ?;

-- name: select_collectable
-- The messages of a session that wait to be collected, oldest first.
SELECT r.run_id
FROM runs AS r INNER JOIN run_texts AS t ON t.accepted_no = r.accepted_no
WHERE
    r.tenant = ? AND r.session_key = ? AND r.ended_at IS NULL AND r.state = 'queued' AND r.host_run_id = ''
    AND json_extract(t.request_json, '$.queue_mode') = 'collect'
ORDER BY r.accepted_no;

-- name: update_run_detached
-- The message waits on its own again.
UPDATE runs
SET
    host_run_id = '',
    last_seq = last_seq + :events,
    event_bytes = event_bytes + :size_bytes,
    first_position = CASE WHEN last_seq = 0 THEN :first_position ELSE first_position END,
    last_position = max(last_position, :last_position)
WHERE accepted_no = :accepted_no;

-- name: update_run_merged
-- The message is part of another run from now on.
UPDATE runs
SET
    state = 'merged',
    host_run_id = :host_run_id,
    last_seq = last_seq + :events,
    event_bytes = event_bytes + :size_bytes,
    first_position = CASE WHEN last_seq = 0 THEN :first_position ELSE first_position END,
    last_position = max(last_position, :last_position)
WHERE accepted_no = :accepted_no;

-- name: select_unended
-- Everything that recovery has to classify, oldest first. The plus keeps SQLite from reading all runs in that order.
SELECT * FROM run_rows WHERE ended_at IS NULL ORDER BY +accepted_no;

-- name: select_runs
-- Newest first. The empty filter and the empty list of states leave everything in.
SELECT *
FROM run_rows
WHERE
    tenant = :tenant
    AND accepted_no < :before_no
    AND (:agent_id = '' OR agent_id = :agent_id)
    AND (:label = '' OR label = :label)
    AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states)))
ORDER BY accepted_no DESC
LIMIT :limit;

-- name: select_runs_of_session
-- As select_runs, for one session.
SELECT *
FROM run_rows
WHERE
    tenant = :tenant
    AND session_key = :session_key
    AND accepted_no < :before_no
    AND (:agent_id = '' OR agent_id = :agent_id)
    AND (:label = '' OR label = :label)
    AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states)))
ORDER BY accepted_no DESC
LIMIT :limit;

-- name: update_run_started
-- A new claim shuts out every earlier writer of this run. `started_at` is written once. The log's end moves with the
-- events stored beside it.
UPDATE runs
SET
    state = 'running',
    claim = claim + 1,
    attempt = attempt + 1,
    started_at = coalesce(started_at, :now),
    charges = charges + CASE WHEN :recovered AND NOT handed_over THEN 1 ELSE 0 END,
    handed_over = 0,
    intake_open = 1,
    last_seq = last_seq + :events,
    event_bytes = event_bytes + :size_bytes,
    first_position = CASE WHEN last_seq = 0 THEN :first_position ELSE first_position END,
    last_position = max(last_position, :last_position)
WHERE accepted_no = :accepted_no;

-- name: raise_claim
-- Whoever held the run cannot write to it any more.
UPDATE runs SET claim = claim + 1 WHERE accepted_no = ?;

-- name: update_run_grown
-- Moves the log's end with the events stored beside it. NULL leaves a value as it is.
UPDATE runs
SET
    used_s = coalesce(:used_s, used_s),
    open_message_id = coalesce(:open_message_id, open_message_id),
    charges = CASE WHEN :got_on THEN 0 ELSE charges END,
    handed_over = max(handed_over, :handed_over),
    last_seq = last_seq + :events,
    event_bytes = event_bytes + :size_bytes,
    first_position = CASE WHEN last_seq = 0 THEN :first_position ELSE first_position END,
    last_position = max(last_position, :last_position)
WHERE accepted_no = :accepted_no;

-- name: update_run_ended
-- As update_run_grown, and the state that the terminal event reports; a run ends once. One statement: these columns are
-- in indexes, which would be written twice. What ends while it waits for a host (D-7) was never taken in by it.
UPDATE runs
SET
    used_s = coalesce(:used_s, used_s),
    open_message_id = coalesce(:open_message_id, open_message_id),
    charges = CASE WHEN :got_on THEN 0 ELSE charges END,
    handed_over = max(handed_over, :handed_over),
    last_seq = last_seq + :events,
    event_bytes = event_bytes + :size_bytes,
    first_position = CASE WHEN last_seq = 0 THEN :first_position ELSE first_position END,
    last_position = max(last_position, :last_position),
    host_run_id = CASE WHEN state = 'queued' THEN '' ELSE host_run_id END,
    state = :state,
    ended_at = :ended_at,
    stop_reason = :stop_reason,
    truncated = :truncated
WHERE accepted_no = :accepted_no AND ended_at IS NULL;

-- name: update_run_result
-- The texts of the result, stored with the terminal event.
UPDATE run_texts
SET error_json = :error_json, payloads_json = :payloads_json, usage_json = :usage_json, output_json = :output_json
WHERE accepted_no = :accepted_no;

-- name: update_run_void_usage
-- What calls used that left no entry, so that a restart still knows it.
UPDATE run_texts SET void_usage_json = ? WHERE accepted_no = ?;

-- name: update_run_corrections
-- How often the answer did not fit its schema and was asked for again.
UPDATE run_texts SET corrections = ? WHERE accepted_no = ?;

-- name: update_run_answered_by
-- Stored with the message that another model gave than the selected one.
UPDATE runs SET answered_by = ? WHERE accepted_no = ?;

-- name: mark_abort
-- The first mark stays.
UPDATE runs
SET abort_requested_at = :now, abort_stop_reason = :stop_reason, abort_reason = :reason
WHERE accepted_no = :accepted_no AND abort_requested_at IS NULL;

-- name: select_ended_of_session
-- The runs that lose their texts with their session, those of earlier ids of its key too.
SELECT r.accepted_no, r.run_id, r.tenant, r.session_key, r.first_seq, r.last_seq, t.error_json
FROM runs AS r INNER JOIN run_texts AS t ON t.accepted_no = r.accepted_no
WHERE r.tenant = ? AND r.session_key = ?
ORDER BY r.accepted_no;

-- name: blank_run_texts
-- No text of the caller or the model is left.
UPDATE run_texts
SET
    message = '',
    extra_system_prompt = '',
    request_json = json_remove(json_set(request_json, '$.response_schema_json', ''), '$.attachments'),
    payloads_json = '',
    output_json = '',
    error_json = :error_json
WHERE accepted_no = :accepted_no;

-- name: insert_tool_call
-- A call that the model asked for.
INSERT INTO tool_calls (
    run_id, entry_id, call_id, call_index, name, arguments_json, state, result_text, is_error, outcome
) VALUES (:run_id, :entry_id, :call_id, :call_index, :name, :arguments_json, :state, :result_text, :is_error, :outcome);

-- name: update_tool_call
-- Its next state.
UPDATE tool_calls
SET state = :state, result_text = :result_text, is_error = :is_error, outcome = :outcome
WHERE run_id = :run_id AND entry_id = :entry_id AND call_id = :call_id;

-- name: select_tool_calls
-- In request order: as the assistant entries stand in the transcript, then as in their message.
SELECT c.*
FROM tool_calls AS c LEFT JOIN entries AS e ON e.entry_id = c.entry_id
WHERE c.run_id = ?
ORDER BY e.entry_no, c.call_index;

-- name: delete_tool_calls
-- They go with their run or its session.
DELETE FROM tool_calls WHERE run_id = ?;

-- name: count_runs_by_state
-- For the figures of the service.
SELECT state, count(*) AS runs FROM runs GROUP BY state;

-- name: select_key
-- The answer that a caller's key stands for.
SELECT request_hash, hash_version, answer_json, expires_at
FROM idempotency_keys
WHERE tenant = ? AND idempotency_key = ?;

-- name: put_key
-- Replaces a key that has expired.
INSERT OR REPLACE INTO idempotency_keys (
    tenant, idempotency_key, request_hash, hash_version, answer_json, expires_at
) VALUES (?, ?, ?, ?, ?, ?);
