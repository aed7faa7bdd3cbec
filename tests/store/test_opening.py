"""What the store refuses to open, leaving it as it is, and how it brings a database to its schema."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import NOW, append_to, running, says

from lanewayd.errors import StartupError
from lanewayd.store.migrate import Migration, load_migrations, migrate
from lanewayd.store.opening import OpenOptions, open_database
from lanewayd.store.sqlite import SqliteStore


async def a_database(home: Path) -> Path:
    """A closed database with some content."""
    path = home / "laneway.db"
    store = await SqliteStore.open(path, codec=JsonCodec())
    await running(store, "r1")
    for number in range(50):
        await store.append(append_to("r1", 2 + 10 * number, says(*("x" * 500 for _ in range(10)))))
    await store.close()
    return path


async def refused(path: Path) -> str:
    """The advice with which `path` is refused; its bytes stay."""
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StartupError) as caught:
        await SqliteStore.open(path, codec=JsonCodec())
    assert (path.read_bytes() if path.is_file() else b"") == before
    return str(caught.value)


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = await a_database(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES (999, '0999_future', 0)")
    advice = await refused(path)
    assert "schema 999" in advice
    assert "newer version" in advice


def _cut_off_the_end(content: bytes) -> bytes:
    return content[: len(content) // 2 + 100]


def _overwrite_the_middle(content: bytes) -> bytes:
    middle = len(content) // 2 // 4096 * 4096
    return content[:middle] + b"\xff" * 8192 + content[middle + 8192 :]


def _overwrite_the_header(content: bytes) -> bytes:
    return b"not a database at all" + content[21:]


@pytest.mark.parametrize("damage", [_cut_off_the_end, _overwrite_the_middle, _overwrite_the_header])
async def test_a_damaged_database_is_refused_with_advice(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = await a_database(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    advice = await refused(path)
    assert "damaged" in advice
    assert "Restore a backup" in advice


async def test_a_large_database_is_opened_without_reading_it_whole(tmp_path: Path) -> None:
    path = await a_database(tmp_path)
    path.write_bytes(_overwrite_the_middle(path.read_bytes()))
    opened = open_database(path, OpenOptions(quick_check_max_bytes=0), NOW)
    opened.reading.close()
    opened.writing.close()


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "not one of Laneway" in await refused(path)


async def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = await a_database(tmp_path)
    path.chmod(0o444)
    assert f"{path} cannot be written to" in await refused(path)
    path.chmod(0o644)
    tmp_path.chmod(0o555)
    try:
        assert f"{tmp_path} cannot be written to" in await refused(path)
    finally:
        tmp_path.chmod(0o755)


async def test_a_home_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in await refused(tmp_path / "nowhere" / "laneway.db")


async def test_a_database_that_another_process_writes_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(sqlite3.Connection):
        def __init__(self, path: Path, **options: object) -> None:
            super().__init__(path, **options, timeout=0)  # type: ignore[arg-type]

    path = await a_database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StartupError, match="locked"):
            open_database(path, OpenOptions(connection_class=Impatient), NOW)


async def test_what_a_killed_server_left_in_the_log_is_found(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    killed = open_database(path, OpenOptions(), NOW)  # never closed, as by a kill
    killed.writing.execute("UPDATE store SET last_position = 77")
    assert path.with_name("laneway.db-wal").stat().st_size > 0
    store = await SqliteStore.open(path, codec=JsonCodec())
    assert await store.last_position() == 77
    await store.close()
    killed.reading.close()
    killed.writing.close()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    path.touch()
    store = await SqliteStore.open(path, codec=JsonCodec(), options=OpenOptions(new_store_id=lambda: "home"))
    assert store.store_id == "home"
    await store.close()
    again = await SqliteStore.open(path, codec=JsonCodec(), options=OpenOptions(new_store_id=lambda: "another"))
    assert again.store_id == "home"
    await again.close()


# --- migrations ---


FIRST = Migration(
    1, "0001_first", "CREATE TABLE a (x TEXT); -- with a comment; and a semicolon\nCREATE TABLE b (y TEXT);"
)
SECOND = Migration(2, "0002_second", "ALTER TABLE a ADD COLUMN z TEXT;\nCREATE TABLE b (y TEXT);\n")


def tables(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_each_migration_is_applied_once(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as connection:
        sql = open_database(tmp_path / "laneway.db", OpenOptions(), NOW)
        for _ in range(2):
            migrate(connection, sql.sql, (FIRST,), NOW)
        assert tables(connection) == {"migrations", "a", "b"}
        applied = connection.execute("SELECT migration_no, name, applied_at FROM migrations").fetchall()
        assert applied == [(1, "0001_first", 1_767_225_600_000_000)]
        sql.reading.close()
        sql.writing.close()


def test_a_migration_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as connection:
        opened = open_database(tmp_path / "laneway.db", OpenOptions(), NOW)
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            migrate(connection, opened.sql, (FIRST, SECOND), NOW)
        assert connection.execute("SELECT migration_no FROM migrations").fetchall() == [(1,)]
        assert [row[1] for row in connection.execute("PRAGMA table_info(a)")] == ["x"]
        opened.reading.close()
        opened.writing.close()


def test_migrations_are_numbered_without_gaps(tmp_path: Path) -> None:
    (tmp_path / "0001_first.sql").write_text("SELECT 1;")
    (tmp_path / "0003_third.sql").write_text("SELECT 1;")
    with pytest.raises(ValueError, match="0003_third"):
        load_migrations(tmp_path)


async def test_only_the_owner_can_read_what_is_stored(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "laneway.db", codec=JsonCodec())
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    await store.close()
    assert modes["laneway.db"] == 0o600
    assert set(modes.values()) == {0o600}
