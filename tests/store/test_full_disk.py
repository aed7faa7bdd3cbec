"""A disk without room: what was acknowledged stays, the rest is refused, and the store tries until it works."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.fakes.commit_listener import RecordingListener
from tests.fakes.store_codec import JsonCodec
from tests.fakes.store_commands import TENANT, a_request, accept_run

from lanewayd.errors import StoreUnavailable
from lanewayd.store.interface import RunFilter
from lanewayd.store.opening import OpenOptions
from lanewayd.store.sqlite import SqliteStore
from lanewayd.store.writer import WriterLimits

SOON = WriterLimits(first_retry_s=0.001, last_retry_s=0.004)


class SmallDatabase(sqlite3.Connection):
    """May not grow beyond 100 pages; the last one made can be told otherwise."""

    latest: "SmallDatabase"

    def __init__(self, path: Path, **options: object) -> None:
        super().__init__(path, **options)  # type: ignore[arg-type]
        self.execute("PRAGMA max_page_count = 100")
        SmallDatabase.latest = self


async def fill(store: SqliteStore, prefix: str) -> tuple[list[str], str]:
    """Accept until the store refuses: the accepted runs, and the refusal."""
    accepted: list[str] = []
    try:
        while len(accepted) < 5000:
            run_id = f"{prefix}{len(accepted)}"
            await store.accept(accept_run(run_id, f"s {run_id}", request=a_request(message="m" * 1000)))
            accepted.append(run_id)
    except StoreUnavailable as error:
        return accepted, str(error)
    raise AssertionError("there is no limit")


async def stored(store: SqliteStore) -> set[str]:
    return {run.run_id for run in await store.runs(TENANT, RunFilter(), before_no=None, limit=10_000)}


async def test_a_full_database_keeps_what_it_acknowledged_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    options = OpenOptions(connection_class=SmallDatabase)
    store = await SqliteStore.open(tmp_path / "laneway.db", codec=JsonCodec(), options=options, limits=SOON)
    listener = store.listener = RecordingListener()
    accepted, refusal = await fill(store, "r")
    assert "full" in refusal
    assert len(accepted) > 10
    assert len(listener.failures) == 1
    assert await stored(store) == set(accepted)
    SmallDatabase.latest.execute("PRAGMA max_page_count = 100000")
    await listener.is_working.wait()
    await store.accept(accept_run("more", "more"))
    assert await stored(store) == {*accepted, "more"}
    await store.close()


async def _in_a_process_with_small_files(home: Path) -> None:
    """Runs in a process of its own, because the limit is one of the process."""
    import resource  # noqa: PLC0415 - not on every platform

    store = await SqliteStore.open(home / "laneway.db", codec=JsonCodec(), limits=SOON)
    listener = store.listener = RecordingListener()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    accepted, refusal = await fill(store, "r")
    assert await stored(store) == set(accepted)
    await listener.is_failing.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await listener.is_working.wait()
    await store.accept(accept_run("more", "more"))
    print(json.dumps({"accepted": [*accepted, "more"], "refusal": refusal}), flush=True)
    # No close: as after a kill.


async def test_a_file_that_cannot_grow_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    program = "import asyncio, sys, pathlib\nfrom tests.store import test_full_disk as t\n"
    program += "asyncio.run(t._in_a_process_with_small_files(pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    root = Path(__file__).parents[2]
    done = await asyncio.to_thread(subprocess.run, command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "I/O error" in report["refusal"] or "full" in report["refusal"]
    assert len(report["accepted"]) > 10
    store = await SqliteStore.open(tmp_path / "laneway.db", codec=JsonCodec())
    assert await stored(store) == set(report["accepted"])
    await store.close()
