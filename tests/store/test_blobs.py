"""The folder of attachments' files: whole or not there, and nothing half written is left."""

import asyncio
import os
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from lanewayd.errors import StoreUnavailable
from lanewayd.store.blobs import Blobs

NAME = "a" * 64


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def all_of(names: Collection[str]) -> Collection[str]:
    """No row names any."""
    return names


async def test_a_caller_that_goes_away_while_a_file_is_written_is_not_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = Blobs(tmp_path / "blobs")
    at_disk, goes_on = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow_fsync(descriptor: int) -> None:
        at_disk.set()
        goes_on.wait()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    with blobs.holding([NAME]):
        first = asyncio.ensure_future(blobs.put(NAME, b"milk"))
        await asyncio.to_thread(at_disk.wait)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    with blobs.holding([NAME]):
        second = asyncio.ensure_future(blobs.put(NAME, b"milk"))
        goes_on.set()
        await second
        assert files_in(tmp_path / "blobs") == {NAME: b"milk"}
        assert await blobs.sweep(all_of) == 0, "it is held"
    assert await blobs.sweep(all_of) == 1
    blobs.close()


async def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = Blobs(tmp_path / "blobs")

    def no_space(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(StoreUnavailable, match="No space left on device"):
            await blobs.put(NAME, b"milk")
    assert files_in(tmp_path / "blobs") == {}
    await blobs.put(NAME, b"milk")
    assert await blobs.read(NAME) == b"milk"
    blobs.close()


async def test_a_file_that_is_shorter_than_it_was_is_written_anew(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    await blobs.put(NAME, b"milk")
    (tmp_path / "blobs" / NAME).write_bytes(b"mi")
    await blobs.put(NAME, b"milk")
    assert await blobs.read(NAME) == b"milk"
    blobs.close()


async def test_the_first_sweep_looks_at_all_files_and_leaves_those_that_are_none_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    folder.mkdir()
    for name in (NAME, f"{NAME}.unfinished", "README", "b" * 64):
        (folder / name).write_bytes(b"x")
    blobs = Blobs(folder)

    async def not_named(names: Collection[str]) -> Collection[str]:
        assert set(names) == {NAME, "b" * 64}
        return [NAME]

    assert await blobs.sweep(not_named) == 1
    assert set(files_in(folder)) == {"README", "b" * 64}
    blobs.close()


async def test_later_sweeps_ask_for_what_was_held_or_lost_a_row_only(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    asked: list[set[str]] = []

    async def named(names: Collection[str]) -> Collection[str]:
        asked.append(set(names))
        return ()

    await blobs.sweep(named)
    await blobs.put(NAME, b"x")
    await blobs.sweep(named)
    assert asked == []
    with blobs.holding(["b" * 64]):
        pass
    blobs.suspect([NAME])
    await blobs.sweep(named)
    await blobs.sweep(named)
    assert asked == [{NAME, "b" * 64}]
    blobs.close()
