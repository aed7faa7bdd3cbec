"""The file tools on a real file system."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.tools.conftest import context_in

from lanewayd.tools.confinement import PathRefused, open_parent, resolve_path
from lanewayd.tools.file_access import FileAccess, replace_file
from lanewayd.tools.files import EditTool, ReadTool, WriteTool
from lanewayd.tools.interface import Tool, ToolContext, ToolResult


class Files:
    def __init__(self, workspace: Path, access: FileAccess) -> None:
        self.workspace = workspace
        self.access = access
        self.tools: dict[str, Tool] = {
            "read": ReadTool(access),
            "write": WriteTool(access),
            "edit": EditTool(access),
        }
        self._calls = 0

    async def run(self, name: str, path: str, *, window: int = 0, **arguments: object) -> ToolResult:
        self._calls += 1
        context = context_in(self.workspace, f"call_{self._calls}", window)
        return await self.tools[name].run({"path": path, **arguments}, context)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.workspace))  # noqa: PTH208


@pytest.fixture
def files(workspace: Path, tmp_path: Path) -> Iterator[Files]:
    access = FileAccess(home=tmp_path / "home")
    yield Files(workspace, access)
    access.close()


def test_only_reading_may_be_repeated_and_all_run_in_parallel(files: Files) -> None:
    assert {name: tool.is_idempotent for name, tool in files.tools.items()} == {
        "read": True,
        "write": False,
        "edit": False,
    }
    assert not any(tool.is_sequential for tool in files.tools.values())


async def test_what_is_written_is_read_and_edited(files: Files) -> None:
    written = await files.run("write", "deep/er/a.txt", content="one\ntwo\n")
    assert written == ToolResult("Created deep/er/a.txt, 8 bytes.")
    assert (await files.run("read", "deep/er/a.txt")).text == "one\ntwo"
    edited = await files.run("edit", "deep/er/a.txt", oldText="two", newText="three")
    assert edited == ToolResult("Replaced one occurrence in deep/er/a.txt, at line 2.")
    assert (files.workspace / "deep/er/a.txt").read_text() == "one\nthree\n"
    assert (await files.run("write", "deep/er/a.txt", content="")).text == "Replaced deep/er/a.txt, 0 bytes."
    assert os.listdir(files.workspace / "deep/er") == ["a.txt"]  # noqa: PTH208


@pytest.mark.parametrize(
    "spelling", ["a b.txt", "@a b.txt", "a\u00a0b.txt", "a\u202fb.txt", "./x/../a b.txt", " a b.txt "]
)
async def test_spellings_of_a_path(files: Files, spelling: str) -> None:
    (files.workspace / "a b.txt").write_text("found")
    assert (await files.run("read", spelling)).text == "found"
    assert (await files.run("read", str(files.workspace / "a b.txt"))).text == "found"


async def test_a_name_that_really_has_such_characters_is_found(files: Files) -> None:
    (files.workspace / "@a\u00a0b.txt").write_text("odd")
    assert (await files.run("read", "@a\u00a0b.txt")).text == "odd"


async def test_home_is_where_the_service_says(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a.txt").write_text("at home")
    access = FileAccess(home=tmp_path / "home", is_confined=False)
    try:
        assert (await Files(workspace, access).run("read", "~/a.txt")).text == "at home"
        assert (await Files(workspace, access).run("write", str(tmp_path / "b.txt"), content="out")).is_error is False
    finally:
        access.close()
    assert (tmp_path / "b.txt").read_text() == "out"


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "~/secret", "link", "links/secret", "chain", "../workspace2/x"]
)
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
async def test_what_lies_outside_the_workspace_is_refused(files: Files, tmp_path: Path, path: str, tool: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text("secret")
    (files.workspace / "link").symlink_to(tmp_path / "secret")
    (files.workspace / "links").symlink_to(tmp_path)
    (files.workspace / "chain").symlink_to("link")
    arguments: dict[str, Any] = {"read": {}, "write": {"content": "x"}, "edit": {"oldText": "secret", "newText": "x"}}[
        tool
    ]
    result = await files.run(tool, path, **arguments)
    assert result.is_error
    assert result.text == f"{path} is outside the workspace. File tools work inside it only."
    assert (tmp_path / "secret").read_text() == "secret"


async def test_links_inside_the_workspace_are_followed_and_stay(files: Files) -> None:
    (files.workspace / "real").mkdir()
    (files.workspace / "real" / "a.txt").write_text("old")
    (files.workspace / "link.txt").symlink_to("real/a.txt")
    assert (await files.run("read", "link.txt")).text == "old"
    await files.run("write", "link.txt", content="new")
    assert (files.workspace / "real" / "a.txt").read_text() == "new"
    assert (files.workspace / "link.txt").is_symlink()


def test_a_directory_that_becomes_a_link_after_it_was_checked_leads_nowhere(workspace: Path, tmp_path: Path) -> None:
    (workspace / "dir").mkdir()
    (tmp_path / "outside").mkdir()
    resolved = resolve_path("dir/a.txt", workspace=workspace, home=None, is_confined=True)
    (workspace / "dir").rmdir()
    (workspace / "dir").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="Not a directory"):
        open_parent(resolved, create=True)
    with pytest.raises(PathRefused, match="Not a directory"):
        replace_file(resolved, b"x", ".tmp")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.txt", "missing.txt does not exist."),
        ("dir", "is a directory"),
        (".", "is a directory"),
        ("pipe", "pipe is no regular file."),
        ("loop", "loop"),
        ("x" * 300, "File name too long"),
        ("a\x00b", "NUL"),
        ("a\ud83d", "not valid text"),
        ("  ", "empty"),
        ("text.txt/x", "Not a directory"),
    ],
)
async def test_what_cannot_be_read_is_an_error_that_says_why(files: Files, path: str, problem: str) -> None:
    (files.workspace / "dir").mkdir()
    (files.workspace / "text.txt").write_text("x")
    os.mkfifo(files.workspace / "pipe")
    (files.workspace / "loop").symlink_to("loop")
    result = await files.run("read", path)
    assert result.is_error
    assert problem in result.text


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is an image (PNG). Images cannot be read yet"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "is an image (JPEG)"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "is an image (WebP)"),
        (b"\x7fELF\x00\x01", "is a binary file"),
    ],
)
async def test_images_and_binary_files_are_named(files: Files, content: bytes, problem: str) -> None:
    (files.workspace / "named.txt").write_bytes(content)
    result = await files.run("read", "named.txt")
    assert result.is_error
    assert problem in result.text


async def test_text_that_begins_like_an_image_is_text(files: Files) -> None:
    (files.workspace / "a.txt").write_text("BMW and GIF89a\n")
    assert (await files.run("read", "a.txt")).text == "BMW and GIF89a"


async def test_a_long_file_comes_in_pages_that_the_result_limit_leaves_alone(files: Files) -> None:
    lines = [f"line {number}" for number in range(1, 5_001)]
    (files.workspace / "long.txt").write_text("\n".join(lines) + "\n")
    offset, seen = 1, []
    while True:
        result = (await files.run("read", "long.txt", offset=offset)).text
        assert len(result) <= 16_000
        text, _, notice = result.partition("\n\n[Lines ")
        seen += text.split("\n")
        if not notice:
            break
        assert notice.startswith(f"{offset}-{len(seen)} of 5000. Use offset={len(seen) + 1} ")
        offset = len(seen) + 1
    assert seen == lines


async def test_a_large_window_takes_more_at_once_and_a_limit_less(files: Files) -> None:
    (files.workspace / "long.txt").write_text("0123456789\n" * 20_000)
    small = (await files.run("read", "long.txt")).text
    large = (await files.run("read", "long.txt", window=1_000_000)).text
    assert len(small) < 16_000
    assert 60_000 < len(large) < 64_000
    some = (await files.run("read", "long.txt", offset=3, limit=2)).text
    assert some == "0123456789\n0123456789\n\n[Lines 3-4 of 20000. Use offset=5 to go on.]"


async def test_an_offset_beyond_the_end_is_empty_and_no_error(files: Files) -> None:
    (files.workspace / "a.txt").write_text("a\n")
    assert await files.run("read", "a.txt", offset=7) == ToolResult("")


async def test_a_line_over_the_limit_names_the_command_to_fetch_it(files: Files) -> None:
    (files.workspace / "wide.txt").write_text("a\n" + "x" * 300_000 + "\n")
    assert "Use offset=2 to go on" in (await files.run("read", "wide.txt")).text
    assert "sed -n '2p' 'wide.txt' | head -c" in (await files.run("read", "wide.txt", offset=2)).text


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "c\nd", b"\xef\xbb\xbfc\r\nd\r\n"),
        ("x \u2013 y\r\nrest\n".encode(), "x - y", "z", b"z\r\nrest\n"),
    ],
)
async def test_an_edit_keeps_byte_order_mark_and_line_ends(
    files: Files, before: bytes, old: str, new: str, after: bytes
) -> None:
    (files.workspace / "a.txt").write_bytes(before)
    assert not (await files.run("edit", "a.txt", oldText=old, newText=new)).is_error
    assert (files.workspace / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("content", "old", "problem"),
    [(b"a a", "a", "occurs 2 times"), (b"b", "a", "does not occur"), (b"a", "a", "nothing"), (b"a\xff", "a", "UTF-8")],
)
async def test_an_edit_that_is_refused_leaves_the_file(files: Files, content: bytes, old: str, problem: str) -> None:
    (files.workspace / "a.txt").write_bytes(content)
    inode = (files.workspace / "a.txt").stat().st_ino
    result = await files.run("edit", "a.txt", oldText=old, newText="a")
    assert result.is_error
    assert problem in result.text
    assert (files.workspace / "a.txt").read_bytes() == content
    assert (files.workspace / "a.txt").stat().st_ino == inode
    assert files.names() == ["a.txt"]


async def test_parallel_edits_of_one_file_all_happen(files: Files) -> None:
    (files.workspace / "a.txt").write_text("\n".join(f"<{n}>" for n in range(20)))
    results = await asyncio.gather(*(files.run("edit", "a.txt", oldText=f"<{n}>", newText=f"[{n}]") for n in range(20)))
    assert not any(result.is_error for result in results)
    assert (files.workspace / "a.txt").read_text() == "\n".join(f"[{n}]" for n in range(20))


async def test_a_written_file_keeps_its_mode(files: Files) -> None:
    script = files.workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await files.run("write", "run.sh", content="new")
    assert script.stat().st_mode & 0o777 == 0o750


async def test_a_full_disk_leaves_the_old_content(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    (files.workspace / "a.txt").write_text("old")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", lambda _fd, _mode: full(0))
    result = await files.run("write", "a.txt", content="new")
    assert result == ToolResult("a.txt: No space left on device.", is_error=True)
    assert (files.workspace / "a.txt").read_text() == "old"
    assert files.names() == ["a.txt"]


async def test_a_file_that_a_crash_left_half_written_is_in_nobodys_way(files: Files, workspace: Path) -> None:
    resolved = resolve_path("a.txt", workspace=workspace, home=None, is_confined=True)
    (workspace / ".laneway-x").write_text("half")
    assert replace_file(resolved, b"whole", ".laneway-x")
    assert files.names() == ["a.txt"]


async def test_lone_surrogates_in_content_become_valid_text_and_nul_is_written(files: Files) -> None:
    await files.run("write", "a.txt", content="a\ud83d\x00b")
    assert (files.workspace / "a.txt").read_bytes() == "a\ufffd\x00b".encode()


async def test_a_cancelled_call_that_has_begun_ends_before_cancellation_goes_out(files: Files) -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        begun.set()
        go.wait(10)
        done.append("done")

    call = asyncio.create_task(files.access.in_thread(work))
    await asyncio.to_thread(begun.wait, 10)
    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.sleep(0)
    assert not call.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert done == ["done"]


async def test_a_cancelled_call_that_waits_for_a_thread_never_begins(files: Files, context: ToolContext) -> None:
    go = threading.Event()
    busy = [asyncio.create_task(files.access.in_thread(lambda: go.wait(10))) for _ in range(4)]
    await asyncio.sleep(0)
    write = asyncio.create_task(files.tools["write"].run({"path": "late.txt", "content": "x"}, context))
    await asyncio.sleep(0)
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    go.set()
    await asyncio.gather(*busy)
    assert files.names() == []
