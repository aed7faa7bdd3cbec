"""Opening the database: what is there is checked before anything is written, and refused with advice."""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lanewayd.errors import StartupError
from lanewayd.store.migrate import check_not_newer, load_migrations, migrate
from lanewayd.store.named_queries import load_queries
from lanewayd.store.times import to_us

SQL_FOLDER = Path(__file__).parent / "sql" / "sqlite"
_CACHED_STATEMENTS = 512
_WRITE_BITS = 0o222
_PRIVATE = 0o600


def _random_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Opened:
    """A checked and migrated database with its two connections."""

    path: Path
    sql: Mapping[str, str]
    store_id: str
    writing: sqlite3.Connection
    reading: sqlite3.Connection


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """`synchronous=False` and another `connection_class` are for tests of what is lost and of failing disks.

    A file of at most `quick_check_max_bytes` is checked whole. A larger one is not: reading it would delay the start.
    """

    new_store_id: Callable[[], str] = _random_id
    synchronous: bool = True
    connection_class: type[sqlite3.Connection] = sqlite3.Connection
    quick_check_max_bytes: int = 256 * 2**20


def open_database(path: Path, options: OpenOptions, now: datetime) -> Opened:
    """Open, check and migrate. Raises StartupError; a file that is refused is left as it is."""
    sql = load_queries(SQL_FOLDER)
    _check_writable(path)
    with _errors_as_startup_error(path):
        if path.exists() and path.stat().st_size > 0:
            _check_content(path, sql, options)
        # Transcripts are for their owner's eyes; SQLite gives its other files the mode of this one.
        path.touch(mode=_PRIVATE, exist_ok=True)
        writing = _connect(path, options)
        try:
            _prepare_writing(writing, sql, options)
            migrate(writing, sql, load_migrations(SQL_FOLDER / "migrations"), now)
            writing.execute(sql["insert_store"], (options.new_store_id(), to_us(now)))
            store_id = str(writing.execute(sql["select_store"]).fetchone()[0])
            reading = _connect(path, OpenOptions())
        except BaseException:
            writing.close()
            raise
        for query in ("forbid_writing", "forbid_checkpoints", "limit_reader_cache"):
            reading.execute(sql[query])
    return Opened(path, sql, store_id, writing, reading)


def check_database(path: Path, *, quick_check_max_bytes: int) -> None:
    """Raises the StartupError with which `open_database` would refuse the file or its place. Reads only."""
    _check_writable(path)
    with _errors_as_startup_error(path):
        if path.exists() and path.stat().st_size > 0:
            _check_content(path, load_queries(SQL_FOLDER), OpenOptions(quick_check_max_bytes=quick_check_max_bytes))


def size_on_disk(path: Path) -> int:
    """Bytes of the database and its write-ahead log."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise StartupError(f"the folder of the database, {path.parent}, does not exist; create it or set another home")
    for place in (path.parent, path):
        # The mode counts for root too: who made the file read-only meant it.
        if place.exists() and not (place.stat().st_mode & _WRITE_BITS and os.access(place, os.W_OK)):
            raise StartupError(f"{place} cannot be written to; change its permissions or set another home")


def _check_content(path: Path, sql: Mapping[str, str], options: OpenOptions) -> None:
    """Reads only: a connection that may write would touch the file when it closes."""
    connection = sqlite3.connect(read_only_uri(path), uri=True, isolation_level=None)
    try:
        tables = {row[0] for row in connection.execute(sql["select_tables"])}
        if tables and "migrations" not in tables:
            raise StartupError(f"{path} is a database, but not one of Laneway; set another home")
        if tables:
            applied = {row[0] for row in connection.execute(sql["select_migrations"])}
            check_not_newer(applied, load_migrations(SQL_FOLDER / "migrations"))
        if path.stat().st_size <= options.quick_check_max_bytes:
            fault = str(connection.execute(sql["quick_check"]).fetchone()[0])
            if fault != "ok":
                raise _corrupt(path, fault)
    finally:
        connection.close()


def _connect(path: Path, options: OpenOptions) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
        factory=options.connection_class,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _prepare_writing(connection: sqlite3.Connection, sql: Mapping[str, str], options: OpenOptions) -> None:
    connection.execute(sql["use_wal"])
    connection.execute(sql["sync_full" if options.synchronous else "sync_off"])
    for query in ("keep_undo_in_memory", "limit_idle_wal", "limit_writer_cache"):
        connection.execute(sql[query])


def read_only_uri(path: Path) -> str:
    """For a connection that cannot change the database, whatever it is asked."""
    return path.absolute().as_uri() + "?mode=ro"


@contextmanager
def _errors_as_startup_error(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StartupError(f"the database {path} cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from error
    except OSError as error:
        raise StartupError(f"the database {path} cannot be opened: {error}") from error


def _corrupt(path: Path, fault: str) -> StartupError:
    """`fault` as SQLite says it, which may have several lines."""
    what = " ".join(fault.split())
    return StartupError(
        f"the database {path} is damaged ({what}) and was left as it is. Restore a backup in its place, or move it"
        f" and {path.name}-wal away to start with an empty one; `sqlite3 {path} .recover` may save what is readable"
    )
