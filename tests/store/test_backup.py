"""Copies of a store: whole, checked, of one instant, or not there at all."""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import TENANT, append_to, running, says

from lanewayd.store.backup import Backup, BackupFailed, OnProgress, back_up
from lanewayd.store.sqlite import SqliteStore


async def open_store(path: Path) -> SqliteStore:
    return await SqliteStore.open(path, codec=JsonCodec())


async def closed_store(folder: Path, *, events: int = 20) -> Path:
    """The path of a database with a run."""
    path = folder / "laneway.db"
    store = await open_store(path)
    await running(store, "r1")
    for step in range(events):
        await store.append(append_to("r1", 2 + step, says("x" * 500)))
    await store.close()
    return path


def take(source: Path, target: Path, *, replaces: bool = False, on_progress: OnProgress | None = None) -> Backup:
    watcher = {"on_progress": on_progress} if on_progress else {}
    return back_up(source, target, blobs=source.parent / "blobs", replaces=replaces, **watcher)


def files_in(folder: Path) -> list[str]:
    """Without the two that whoever reads a database leaves beside it."""
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return sorted(files - {"laneway.db-shm", "laneway.db-wal"})


async def last_seq(path: Path) -> int:
    """The run in it has no gap; its last seq."""
    store = await open_store(path)
    try:
        page = await store.run_events(TENANT, "r1", after_seq=0, limit=1_000_000)
    finally:
        await store.close()
    assert page is not None
    assert [event.seq for event in page.events] == list(range(1, page.latest + 1))
    return page.latest


async def test_a_backup_of_a_stopped_store_opens_with_the_same_id_and_content(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    (tmp_path / "backups").mkdir()
    done = take(source, tmp_path / "backups" / "monday.db")
    copy = await open_store(done.path)
    assert copy.store_id == done.store_id
    await copy.close()
    assert await last_seq(done.path) == await last_seq(source) == 21
    assert files_in(tmp_path / "backups") == ["monday.db"]
    assert done.path.stat().st_mode & 0o777 == 0o600
    assert (done.blobs_path, done.blob_count) == (None, 0)


async def test_a_writer_that_never_rests_does_not_hold_up_the_copy(tmp_path: Path) -> None:
    source = await closed_store(tmp_path, events=3_000)
    store = await open_store(source)
    written = threading.Event()
    loop = asyncio.get_running_loop()
    steps: list[str] = []

    async def write(seq: int) -> None:
        await store.append(append_to("r1", seq, says("y")))
        written.set()

    def write_between_steps(what: str, _done: float | None) -> None:
        """Between any two steps of the copy something is committed."""
        if what == "copying":
            written.clear()
            asyncio.run_coroutine_threadsafe(write(3_002 + len(steps)), loop)
            assert written.wait(20)
            steps.append(what)

    done = await asyncio.to_thread(take, source, tmp_path / "b.db", on_progress=write_between_steps)
    await store.close()
    assert await last_seq(done.path) == 3_001, "the state of the instant at which the copy began"
    assert await last_seq(source) == 3_001 + len(steps)


async def test_an_existing_file_is_replaced_only_when_it_is_asked_for(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    target = tmp_path / "b.db"
    target.write_text("precious")
    with pytest.raises(FileExistsError):
        take(source, target)
    assert target.read_text() == "precious"
    take(source, target, replaces=True)
    assert await last_seq(target) == 21


async def test_a_name_that_is_taken_while_the_copy_is_made_is_not_replaced(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    target = tmp_path / "b.db"

    def take_the_name(_what: str, _done: float | None) -> None:
        target.write_text("precious")

    with pytest.raises(FileExistsError):
        take(source, target, on_progress=take_the_name)
    assert target.read_text() == "precious"
    assert files_in(tmp_path) == ["b.db", "laneway.db"]


@pytest.mark.parametrize("name", ["laneway.db", "laneway.db-wal", "linked.db"])
async def test_the_database_itself_is_never_overwritten(tmp_path: Path, name: str) -> None:
    source = await closed_store(tmp_path)
    (tmp_path / "linked.db").hardlink_to(source)
    before = source.read_bytes()
    with pytest.raises(BackupFailed, match="is the database itself"):
        take(source, tmp_path / name, replaces=True)
    assert source.read_bytes() == before


async def test_what_breaks_off_leaves_the_old_copy_and_nothing_else(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    take(source, tmp_path / "b.db")
    before = (tmp_path / "b.db").read_bytes()

    def break_off(what: str, _done: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(source, tmp_path / "b.db", replaces=True, on_progress=break_off)
    assert (tmp_path / "b.db").read_bytes() == before
    assert files_in(tmp_path) == ["b.db", "laneway.db"]


async def test_ctrl_c_while_the_copy_is_checked_ends_it(tmp_path: Path) -> None:
    source = await closed_store(tmp_path, events=3_000)

    def break_off(what: str, _done: float | None) -> None:
        if what == "checking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(source, tmp_path / "b.db", on_progress=break_off)
    assert files_in(tmp_path) == ["laneway.db"]


async def test_a_damaged_database_gives_no_backup(tmp_path: Path) -> None:
    source = await closed_store(tmp_path, events=500)
    content = source.read_bytes()
    middle = len(content) // 2 // 4096 * 4096
    source.write_bytes(content[:middle] + b"\xff" * 8192 + content[middle + 8192 :])
    with pytest.raises(BackupFailed, match=r"damaged|malformed"):
        take(source, tmp_path / "b.db")
    assert files_in(tmp_path) == ["laneway.db"]


def _no_database(folder: Path) -> Path:
    return folder / "laneway.db"


def _no_sqlite(folder: Path) -> Path:
    (folder / "laneway.db").write_text("some text")
    return folder / "laneway.db"


def _of_somebody_else(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "laneway.db")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    return folder / "laneway.db"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_no_database, "there is no database"),
        (_no_sqlite, "file is not a database"),
        (_of_somebody_else, "not a database of Laneway"),
    ],
)
def test_what_is_no_store_is_refused(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    with pytest.raises(BackupFailed, match=reason):
        take(make(tmp_path), tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.db-wal").write_text("log of another database")
    for target, reason in (
        ("none/b.db", "does not exist"),
        ("file/b.db", "does not exist"),
        ("folder", "is a folder"),
        ("old.db", "old.db-wal exists"),
    ):
        with pytest.raises(BackupFailed, match=reason):
            take(source, tmp_path / target)


def put_blob(home: Path, content: bytes, *, is_named: bool = True) -> str:
    """A blob as the service keeps it, with its row in a closed database."""
    name = hashlib.sha256(content).hexdigest()
    (home / "blobs" / name[:2]).mkdir(parents=True, exist_ok=True)
    (home / "blobs" / name[:2] / name).write_bytes(content)
    if is_named:
        with closing(sqlite3.connect(home / "laneway.db")) as connection, connection:
            connection.execute("INSERT INTO blobs VALUES (?, ?, 0)", (name, len(content)))
    return name


async def test_the_blobs_that_the_store_names_come_along_and_no_others(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    first = put_blob(tmp_path, b"one")
    put_blob(tmp_path, b"nobody's", is_named=False)
    done = take(source, tmp_path / "b.db")
    assert (done.blobs_path, done.blob_count) == (tmp_path / "b.db.blobs", 1)
    assert files_in(tmp_path / "b.db.blobs") == [first]
    second = put_blob(tmp_path, b"two")
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("DELETE FROM blobs WHERE blob_hash = ?", (first,))
    take(source, tmp_path / "b.db", replaces=True)
    assert files_in(tmp_path / "b.db.blobs") == [second]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"other")])
async def test_a_blob_that_is_lost_or_changed_fails_the_backup(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    source = await closed_store(tmp_path)
    name = put_blob(tmp_path, b"one")
    damage(tmp_path / "blobs" / name[:2] / name)
    with pytest.raises(BackupFailed, match="1 attachments are missing"):
        take(source, tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()
    assert not (tmp_path / "b.db.blobs").exists()


async def test_a_blob_that_goes_while_the_copy_is_made_is_in_it(tmp_path: Path) -> None:
    source = await closed_store(tmp_path)
    name = put_blob(tmp_path, b"one")
    blob = tmp_path / "blobs" / name[:2] / name
    done = take(source, tmp_path / "b.db", on_progress=lambda _what, _done: blob.unlink(missing_ok=True))
    assert not blob.exists()
    assert done.blobs_path is not None
    assert (done.blobs_path / name).read_bytes() == b"one"
