-- Group commit: one transaction for many commands; a savepoint where one of them must be undone alone.

-- name: begin_group
-- Takes the write lock at once, so that a command never finds it taken half-way.
BEGIN IMMEDIATE;

-- name: commit_group
-- Durable when it returns (WAL with synchronous = FULL).
COMMIT;

-- name: rollback_group
-- Nothing of the group is left.
ROLLBACK;

-- name: open_savepoint
-- What one command does can be undone alone.
SAVEPOINT command;

-- name: close_savepoint
-- The command stays part of the group.
RELEASE command;

-- name: undo_savepoint
-- The command leaves no trace; the savepoint is still open.
ROLLBACK TO command;

-- name: select_numbers
-- The highest numbers given, as of the last stored group.
SELECT commit_no, last_position, last_accepted_no, event_bytes FROM store;

-- name: update_numbers
-- Stored with the group that used the numbers: none is given twice.
UPDATE store SET commit_no = ?, last_position = ?, last_accepted_no = ?, event_bytes = ?;

-- name: insert_trial
-- Takes room in the file as real rows do: an update in place would succeed on a full disk.
INSERT INTO trials (filler) VALUES (zeroblob(65536));

-- name: delete_trials
-- Gives the room back.
DELETE FROM trials;
