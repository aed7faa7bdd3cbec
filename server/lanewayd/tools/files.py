"""The file tools `read`, `write` and `edit`, for text (spec 06, 1.1). Images are named and refused.

Paths are resolved in the agent's workspace and confined to it (D-22). What goes wrong is an error result that names
the path as the model gave it; a file that is not changed successfully is not changed at all.
"""

import hashlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from lanewayd.messages import ToolSpec
from lanewayd.tools.confinement import PathRefused
from lanewayd.tools.file_access import FileAccess, chunks_of, opened, replace_file
from lanewayd.tools.interface import ToolContext, ToolResult
from lanewayd.tools.result_limits import CHARS_PER_TOKEN, result_limit_chars
from lanewayd.tools.terminal_text import without_nul
from lanewayd.tools.text_edit import EditRefused, replace_once
from lanewayd.tools.text_pages import Page, PageLimits, PageReader

_PAGE_LINES = 2_000
_PAGE_BYTES = 50 * 1024
_MOST_PAGES = 4
_WINDOW_SHARE = 0.1
_AUTO_READ_BYTES = (32 * 1024, 128 * 1024)
_NOTICE_ROOM_CHARS = 600
_SNIFFED_BYTES = 8_192
_MOST_SCANNED_BYTES = 256 * 1024 * 1024
_MOST_EDITED_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_IMAGE_STARTS = {b"\x89PNG\r\n\x1a\n": "PNG", b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP"}

_PATH = {"type": "string", "minLength": 1, "description": "Relative to the workspace, or absolute inside it."}
_READ_SPEC = ToolSpec(
    name="read",
    description="Read a text file. A long file comes in pages; the notice at the end says how to go on.",
    schema={
        "type": "object",
        "properties": {
            "path": _PATH,
            "offset": {"type": "integer", "minimum": 1, "description": "The first line, counted from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines at most."},
        },
        "required": ["path"],
    },
)
_WRITE_SPEC = ToolSpec(
    name="write",
    description="Create a file or replace its whole content. Missing directories are made.",
    schema={
        "type": "object",
        "properties": {"path": _PATH, "content": {"type": "string", "description": "The whole new content."}},
        "required": ["path", "content"],
    },
)
_EDIT_SPEC = ToolSpec(
    name="edit",
    description="Replace one piece of a text file. oldText must occur exactly once.",
    schema={
        "type": "object",
        "properties": {
            "path": _PATH,
            "oldText": {"type": "string", "minLength": 1, "description": "What to replace, with enough around it."},
            "newText": {"type": "string", "description": "What to put there."},
        },
        "required": ["path", "oldText", "newText"],
    },
)


class _FileTool:
    """One tool: its spec, and its blocking work in a thread of `access`."""

    def __init__(self, access: FileAccess, spec: ToolSpec, *, is_idempotent: bool) -> None:
        self._access = access
        self._spec = spec
        self._is_idempotent = is_idempotent

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @property
    def is_idempotent(self) -> bool:
        return self._is_idempotent

    @property
    def is_sequential(self) -> bool:
        return False

    async def _result_of(self, work: Callable[[], str]) -> ToolResult:
        try:
            return ToolResult(await self._access.in_thread(work))
        except (PathRefused, EditRefused) as refusal:
            return ToolResult(without_nul(str(refusal)), is_error=True)


class ReadTool(_FileTool):
    """`read`. Changes nothing, so that it may run again after a crash."""

    def __init__(self, access: FileAccess) -> None:
        super().__init__(access, _READ_SPEC, is_idempotent=True)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await self._result_of(lambda: self._read(arguments, context))

    def _read(self, arguments: dict[str, Any], context: ToolContext) -> str:
        resolved = self._access.resolve(arguments["path"], context.workspace)
        limits = _page_limits(arguments.get("limit"), context.context_window_tokens)
        reader = PageReader(arguments.get("offset", 1), limits)
        read_bytes = 0
        with opened(resolved) as file_fd:
            for chunk in chunks_of(file_fd, _MOST_SCANNED_BYTES):
                if read_bytes == 0:
                    _refuse_what_is_no_text(chunk, resolved.shown)
                read_bytes += len(chunk)
                reader.feed(chunk)
        return _page_text(reader.page(), resolved.shown, limits, counted_all=read_bytes < _MOST_SCANNED_BYTES)


class WriteTool(_FileTool):
    """`write`."""

    def __init__(self, access: FileAccess) -> None:
        super().__init__(access, _WRITE_SPEC, is_idempotent=False)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await self._result_of(lambda: self._write(arguments, context))

    def _write(self, arguments: dict[str, Any], context: ToolContext) -> str:
        resolved = self._access.resolve(arguments["path"], context.workspace)
        content = _encodable(arguments["content"]).encode()
        with self._access.changing(resolved):
            is_new = replace_file(resolved, content, _temporary_name(context))
        return f"{'Created' if is_new else 'Replaced'} {resolved.shown}, {len(content)} bytes."


class EditTool(_FileTool):
    """`edit`. Keeps the byte-order mark and the line ends of the file."""

    def __init__(self, access: FileAccess) -> None:
        super().__init__(access, _EDIT_SPEC, is_idempotent=False)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await self._result_of(lambda: self._edit(arguments, context))

    def _edit(self, arguments: dict[str, Any], context: ToolContext) -> str:
        resolved = self._access.resolve(arguments["path"], context.workspace)
        with self._access.changing(resolved):
            with opened(resolved) as file_fd:
                content = b"".join(chunks_of(file_fd, _MOST_EDITED_BYTES + 1))
            if len(content) > _MOST_EDITED_BYTES:
                raise EditRefused(f"{resolved.shown} is too large to edit: over {_MOST_EDITED_BYTES} bytes.")
            mark = _BOM if content.startswith(_BOM) else b""
            try:
                text = content.removeprefix(mark).decode()
            except UnicodeDecodeError as error:
                raise EditRefused(f"{resolved.shown} is not valid UTF-8 and cannot be edited as text.") from error
            edited = replace_once(text, _encodable(arguments["oldText"]), _encodable(arguments["newText"]))
            replace_file(resolved, mark + edited.text.encode(), _temporary_name(context))
        return f"Replaced one occurrence in {resolved.shown}, at line {edited.line}."


def _page_limits(limit_lines: int | None, context_window_tokens: int) -> PageLimits:
    """One page for an explicit limit, else up to four within the share of the window (R-6.6)."""
    chars = result_limit_chars(context_window_tokens) - _NOTICE_ROOM_CHARS
    if limit_lines is not None:
        return PageLimits(min(limit_lines, _PAGE_LINES), _PAGE_BYTES, chars)
    least, most = _AUTO_READ_BYTES
    share = int(context_window_tokens * _WINDOW_SHARE * CHARS_PER_TOKEN)
    return PageLimits(_PAGE_LINES * _MOST_PAGES, min(max(least, min(share, most)), _PAGE_BYTES * _MOST_PAGES), chars)


def _page_text(page: Page, shown: str, limits: PageLimits, *, counted_all: bool) -> str:
    if page.too_long_line_bytes:
        limit = min(limits.size_bytes, limits.chars)
        return (
            f"[Line {page.first_line} has {page.too_long_line_bytes} bytes, over the limit of {limit}. Use exec: "
            f"sed -n '{page.first_line}p' '{PurePath(shown)}' | head -c {limit}]"
        )
    notices = []
    if page.line_count and not page.is_last:
        total = f"{page.total_lines}" if counted_all else f"more than {page.total_lines}"
        notices.append(
            f"[Lines {page.first_line}-{page.next_line - 1} of {total}. Use offset={page.next_line} to go on.]"
        )
    if not page.is_valid_utf8:
        notices.append("[The file is not valid UTF-8; bytes that are no text are shown as \ufffd.]")
    return "\n\n".join([page.text, *notices])


def _refuse_what_is_no_text(start: bytes, shown: str) -> None:
    image = next((kind for magic, kind in _IMAGE_STARTS.items() if start.startswith(magic)), None)
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        image = "WebP"
    is_binary = b"\x00" in start[:_SNIFFED_BYTES]
    if image is not None and (is_binary or not start[:_SNIFFED_BYTES].isascii()):
        raise PathRefused(f"{shown} is an image ({image}). Images cannot be read yet, only text.")
    if is_binary:
        raise PathRefused(f"{shown} is a binary file. Only text can be read.")


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which no file can hold; NUL stays, a file may hold it."""
    return "\x00".join(without_nul(part) for part in text.split("\x00"))


def _temporary_name(context: ToolContext) -> str:
    """A name no other call uses."""
    call = hashlib.sha256(f"{context.run_id}/{context.call_id}".encode("utf-8", "surrogatepass")).hexdigest()
    return f".laneway-{call[:24]}"
