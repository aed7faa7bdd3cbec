-- How connections are set up, and what is checked before the database is written to.

-- name: use_wal
-- Readers see committed data while the writer writes.
PRAGMA journal_mode = WAL;

-- name: sync_full
-- A commit is on the disk when it returns.
PRAGMA synchronous = FULL;

-- name: sync_off
-- For the test that shows what is lost without syncing.
PRAGMA synchronous = OFF;

-- name: journal_off
-- For a file that is thrown away when anything fails.
PRAGMA journal_mode = OFF;

-- name: keep_undo_in_memory
-- Savepoints keep copies of pages: never in a file.
PRAGMA temp_store = MEMORY;

-- name: limit_idle_wal
-- A write-ahead log that has once grown is cut to this size when it starts over.
PRAGMA journal_size_limit = 16777216;

-- name: limit_writer_cache
-- 16 MiB.
PRAGMA cache_size = -16384;

-- name: limit_reader_cache
-- 4 MiB.
PRAGMA cache_size = -4096;

-- name: forbid_writing
-- A reading connection cannot change the database.
PRAGMA query_only = 1;

-- name: forbid_checkpoints
-- Only the writer checkpoints: two at one instant can corrupt the log (SQLite 3.40.1).
PRAGMA wal_autocheckpoint = 0;

-- name: checkpoint_all
-- Everything is in the database file and the log is empty, if no reader is at work.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: begin_snapshot
-- All statements up to the end of the snapshot see one state.
BEGIN;

-- name: end_snapshot
-- Nothing of the snapshot holds back a checkpoint.
COMMIT;

-- name: quick_check
-- The first fault of the file, or ok.
PRAGMA quick_check(1);

-- name: integrity_check
-- As quick_check, and that indexes and tables agree.
PRAGMA integrity_check(1);

-- name: select_tables
-- The names of all tables; none in a new file.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: select_migrations
-- The numbers of the migrations that were applied.
SELECT migration_no FROM migrations;

-- name: create_migrations
-- The list of applied migrations, made once.
CREATE TABLE IF NOT EXISTS migrations (
    migration_no INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- name: insert_migration
-- Stored in the transaction of the migration: each is applied once.
INSERT INTO migrations (migration_no, name, applied_at) VALUES (?, ?, ?);

-- name: insert_store
-- The identity of the database is made once.
INSERT OR IGNORE INTO store (row_no, store_id, created_at) VALUES (1, ?, ?);

-- name: select_store
-- The identity of the database.
SELECT store_id FROM store;

-- name: select_blobs
-- The names of all attachments' files.
SELECT blob_hash FROM blobs;
