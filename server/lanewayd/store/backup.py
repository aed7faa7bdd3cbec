"""A copy of the store, taken while a server uses it: one state of the database and the blobs that it names.

The database is only read, by a connection that can neither write nor checkpoint (D-19). The copy appears under its
name when it is complete, checked and synced; what happens before leaves nothing, and what it replaces is whole until
then.
"""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lanewayd.store.blob_copies import BlobCopies
from lanewayd.store.named_queries import load_queries
from lanewayd.store.opening import SQL_FOLDER, read_only_uri

_PAGES_PER_STEP = 2_000
_INSTRUCTIONS_PER_LOOK = 20_000
_COMPANIONS = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, by the end of its name."""

OnProgress = Callable[[str, float | None], None]
"""Hears what is done, in a word, and how much of it is done, 0 to 1; None = not known."""


class BackupFailed(Exception):
    """There is no copy. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished copy."""

    path: Path
    store_id: str
    size_bytes: int
    """Of the database."""
    blobs_path: Path | None
    """The folder of the blobs; None = the store has none."""
    blob_count: int


def _ignore(_what: str, _done: float | None) -> None:
    """Nobody watches."""


def back_up(
    source: Path, target: Path, *, blobs: Path, replaces: bool = False, on_progress: OnProgress = _ignore
) -> Backup:
    """Copy the database `source` to the file `target`, and what is in the folder `blobs` to `target`.blobs.

    The copy has the state of one instant and passed SQLite's integrity check. Raises FileExistsError unless `replaces`,
    else BackupFailed.
    """
    sql = load_queries(SQL_FOLDER)
    _check_places(source, target, replaces=replaces)
    with _errors_as_failure(source, target):
        unfinished = _new_file_beside(target)
        copies = BlobCopies(blobs, target.with_name(target.name + ".blobs"))
        try:
            copies.copy_all()  # before the snapshot: what is removed meanwhile is there
            store_id = _copy_snapshot(source, unfinished, sql, on_progress)
            named = _verify(unfinished, store_id, sql, on_progress)
            if missing := copies.complete(named):
                raise BackupFailed(f"{len(missing)} attachments are missing in {blobs}, the first is {missing[0]}")
            if named:
                _sync(copies.target)
            _sync(unfinished)
            _put_in_place(unfinished, target, replaces=replaces)
        except BaseException:
            copies.undo()
            raise
        finally:
            for companion in _COMPANIONS:
                unfinished.with_name(unfinished.name + companion).unlink(missing_ok=True)
        _sync(target.parent)
        copies.forget_others(named)
        blobs_path = copies.target if named else None
        return Backup(target, store_id, target.stat().st_size, blobs_path, len(named))


def _check_places(source: Path, target: Path, *, replaces: bool) -> None:
    if not source.is_file():
        raise BackupFailed(f"there is no database {source}: a server that was never started has nothing to back up")
    if not target.parent.is_dir():
        raise BackupFailed(f"the folder {target.parent} does not exist")
    own = [source.with_name(source.name + companion) for companion in _COMPANIONS]
    if target.resolve() in [path.resolve() for path in own] or (target.exists() and target.samefile(source)):
        raise BackupFailed(f"{target} is the database itself: choose another file")
    if target.is_dir():
        raise BackupFailed(f"{target} is a folder: name a file")
    if os.path.lexists(target) and not replaces:
        raise FileExistsError(f"{target} exists")
    left_over = target.with_name(target.name + "-wal")
    if left_over.exists() and left_over.stat().st_size:
        raise BackupFailed(f"{left_over} exists: a program uses a database of this name, or did; choose another file")


def _new_file_beside(target: Path) -> Path:
    """An empty file for the owner's eyes."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".unfinished", dir=target.parent)
    os.close(descriptor)
    return Path(name)


def _copy_snapshot(source: Path, unfinished: Path, sql: Mapping[str, str], on_progress: OnProgress) -> str:
    """Copy the state of this instant; the id of the store."""
    reading = sqlite3.connect(read_only_uri(source), uri=True, isolation_level=None)
    with closing(reading), closing(sqlite3.connect(unfinished, isolation_level=None)) as writing:
        for query in ("forbid_writing", "forbid_checkpoints", "begin_snapshot"):
            reading.execute(sql[query])
        tables = {row[0] for row in reading.execute(sql["select_tables"])}
        if not {"migrations", "store"} <= tables:
            raise BackupFailed(f"{source} is not a database of Laneway")
        store_id = str(reading.execute(sql["select_store"]).fetchone()[0])
        # A file that is thrown away when anything fails needs no journal, and it is synced once, at the end.
        writing.execute(sql["journal_off"])
        writing.execute(sql["sync_off"])
        # The transaction keeps the snapshot from step to step: a busy writer does not make the copy begin again.
        reading.backup(
            writing,
            pages=_PAGES_PER_STEP,
            progress=lambda _status, left, total: on_progress("copying", 1 - left / max(total, 1)),
        )
        reading.execute(sql["end_snapshot"])
    return store_id


def _verify(copy: Path, store_id: str, sql: Mapping[str, str], on_progress: OnProgress) -> set[str]:
    """Check the copy whole; the hashes of the blobs that it names."""
    is_interrupted = False

    def look() -> int:
        nonlocal is_interrupted
        try:
            on_progress("checking", None)
        except KeyboardInterrupt:  # SQLite takes a number and no exception
            is_interrupted = True
        return is_interrupted

    # Immutable: nothing is made beside it.
    with closing(sqlite3.connect(f"{read_only_uri(copy)}&immutable=1", uri=True)) as connection:
        connection.set_progress_handler(look, _INSTRUCTIONS_PER_LOOK)
        try:
            fault = " ".join(str(connection.execute(sql["integrity_check"]).fetchone()[0]).split())
            if fault != "ok":
                raise BackupFailed(
                    f"the database is damaged ({fault}): the copy was not kept; `laneway doctor` says more"
                )
            copied_id = str(connection.execute(sql["select_store"]).fetchone()[0])
            if copied_id != store_id:
                raise BackupFailed(f"the copy has the store id {copied_id} instead of {store_id}")
            return {str(row[0]) for row in connection.execute(sql["select_blobs"])}
        except sqlite3.OperationalError:
            if is_interrupted:
                raise KeyboardInterrupt from None
            raise


def _put_in_place(unfinished: Path, target: Path, *, replaces: bool) -> None:
    """Give the copy its name, in one step."""
    if not replaces:
        try:
            os.link(unfinished, target)  # unlike a rename it fails when somebody else took the name
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise FileExistsError(f"{target} exists") from None
        else:
            return
    unfinished.rename(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors_as_failure(source: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} cannot be copied to {target}: {error}") from error
    except OSError as error:
        raise BackupFailed(f"{source} cannot be copied to {target}: {error.strerror or error}") from error
