"""Archived transcripts: whole or not there, and gone with their session."""

import gzip
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lanewayd.transcript import archives as module
from lanewayd.transcript.archives import Archives

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def lines_of(lines: Iterable[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_transcript_is_kept_line_by_line_at_the_time_it_was_given(tmp_path: Path) -> None:
    archives, lines = Archives(tmp_path / "archives"), [f'{{"n":{number},"é":"{"x" * 9999}"}}' for number in range(300)]
    path = await archives.write("default", "agent:main:s", "id", lines_of(lines), now=NOW)
    assert gzip.decompress(path.read_bytes()).decode() == "".join(f"{line}\n" for line in lines)
    [listed] = await archives.oldest_first()
    assert (listed.path, listed.size_bytes, listed.written_at_s) == (path, path.stat().st_size, NOW.timestamp())
    assert await archives.write("default", "agent:main:s", "id", lines_of(["x"]), now=NOW) == path
    assert gzip.decompress(path.read_bytes()) == b"x\n"


async def test_what_cannot_be_read_back_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(path: Path) -> None:
        if path.is_file():
            path.write_bytes(gzip.compress(b"something else"))

    monkeypatch.setattr(module, "_sync", lose)
    with pytest.raises(OSError, match="read back"):
        await Archives(tmp_path).write("default", "s", "id", lines_of(["x"]), now=NOW)
    assert files_in(tmp_path) == []


async def test_a_transcript_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def breaks_off() -> AsyncIterator[str]:
        yield "x"
        raise RuntimeError("the store is gone")

    with pytest.raises(RuntimeError):
        await Archives(tmp_path).write("default", "s", "id", breaks_off(), now=NOW)
    assert files_in(tmp_path) == []


async def test_what_a_killed_process_left_unfinished_is_removed(tmp_path: Path) -> None:
    archives = Archives(tmp_path)
    path = await archives.write("default", "s", "id", lines_of(["x"]), now=NOW)
    path.with_name("other.jsonl.gz.unfinished").write_bytes(b"half")
    assert [file.path for file in await archives.oldest_first()] == [path]
    assert files_in(tmp_path) == [path]


async def test_the_files_of_one_key_of_one_tenant_go_together_and_leave_no_folder(tmp_path: Path) -> None:
    archives = Archives(tmp_path)
    for tenant, key, session_id in (("a", "s", "1"), ("a", "s", "2"), ("a", "t", "3"), ("b", "s", "4")):
        await archives.write(tenant, key, session_id, lines_of(["x"]), now=NOW)
    await archives.remove_all("a", "s")
    assert {path.name[0] for path in files_in(tmp_path)} == {"3", "4"}
    assert len(list(tmp_path.iterdir())) == 2
    await archives.remove_all("a", "nobody")
