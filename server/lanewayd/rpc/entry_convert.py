"""Transcript entries in wire form, and the pieces of their content. Pure. Each entry stays below 1 MiB."""

import json
from collections.abc import Mapping
from typing import Any

from laneway.v1 import run_pb2, session_pb2
from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import ToolOutcome, Usage, valid_text
from lanewayd.records import Entry, EntryKind
from lanewayd.rpc.convert import int64, name, timestamp, tool_outcome, usage
from lanewayd.rpc.limits import MAX_PIECE_BYTES, MAX_TEXT_BYTES
from lanewayd.rpc.wire_text import cut, is_continuation, size_bytes

_BLOCK_BYTES = 32
"""Reckoned for the framing of one block, so that many small ones cannot exceed the limit either."""
_LEFT_BY_FILES_BYTES = MAX_TEXT_BYTES // 2
"""Room that stays for the texts of an entry, however many files it names."""


class _Room:
    """What is left for the texts of one entry. Notes the whole length of all texts, and whether one was cut."""

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes
        self.total_bytes = 0
        self.truncated = False

    def fit(self, text: str) -> str:
        """As much of `text` as there is room for."""
        return self._take(text, cut(text, self._left))

    def fit_whole(self, text: str) -> str:
        """`text`, or nothing when there is no room for all of it."""
        return self._take(text, valid_text(text) if size_bytes(valid_text(text)) <= self._left else "")

    def has_block(self, *names: str) -> bool:
        """Take the room that a block needs beside its text; False when there is none."""
        self._left -= _BLOCK_BYTES + sum(size_bytes(word) for word in names)
        self.truncated = self.truncated or self._left < 0
        return self._left >= 0

    def has_file(self, *names: str) -> bool:
        """As `has_block`, for a file; leaves room for texts."""
        size = _BLOCK_BYTES + sum(size_bytes(word) for word in names)
        if self._left - size < _LEFT_BY_FILES_BYTES:
            self.truncated = True
            return False
        self._left -= size
        return True

    def _take(self, whole: str, part: str) -> str:
        whole_bytes, part_bytes = size_bytes(valid_text(whole)), size_bytes(part)
        self.total_bytes += whole_bytes
        self.truncated = self.truncated or part_bytes < whole_bytes
        self._left -= part_bytes
        return part


def entry_message(entry: Entry) -> session_pb2.Entry:
    """`entry` with its texts cut so that it stays below 1 MiB."""
    body = _body(entry)
    room = _Room(MAX_TEXT_BYTES)
    converted = session_pb2.Entry(
        entry_id=entry.entry_id,
        parent_entry_id=entry.parent_entry_id,
        time=timestamp(entry.time),
        run_id=entry.run_id,
    )
    match entry.kind:
        case EntryKind.USER:
            converted.user.content.extend(_text_blocks(body, room))
            converted.user.SetInParent()
        case EntryKind.ASSISTANT:
            converted.assistant.CopyFrom(_assistant(body, room))
        case EntryKind.TOOL_RESULT:
            converted.tool_result.CopyFrom(_tool_result(body, room))
        case EntryKind.RESET:
            converted.reset.CopyFrom(session_pb2.ResetEntry(first_kept_entry_id=body.get("first_kept_entry_id") or ""))
    converted.truncated = room.truncated
    converted.total_bytes = int64(room.total_bytes)
    return converted


def read_piece(entry: Entry, *, part: int, offset: int) -> session_pb2.ReadEntryResponse:
    """The text of content block `part` from `offset`, at most 512 KiB. Raises FieldError (FIELD_INVALID)."""
    text = _part_text(_body(entry), part)
    if text is None:
        raise FieldError(ErrorCode.FIELD_INVALID, "part", "The entry has no text with this number.")
    encoded = valid_text(text).encode()
    if not 0 <= offset <= len(encoded):
        raise FieldError(ErrorCode.FIELD_INVALID, "offset", f"offset must be between 0 and {len(encoded)}.")
    if is_continuation(encoded, offset):
        raise FieldError(ErrorCode.FIELD_INVALID, "offset", "offset lies within a character.")
    piece = encoded[offset : offset + MAX_PIECE_BYTES].decode(errors="ignore")
    return session_pb2.ReadEntryResponse(text=piece, next_offset=offset + size_bytes(piece), total_bytes=len(encoded))


def _body(entry: Entry) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(entry.body_json)
    return body


def _part_text(body: Mapping[str, Any], part: int) -> str | None:
    content = body.get("content") or []
    if not 0 <= part < len(content):
        return None
    block = content[part]
    text: str | None = block.get("arguments_json") if block.get("type") == "tool_call" else block.get("text")
    return text


def _text_blocks(body: Mapping[str, Any], room: _Room) -> list[session_pb2.ContentBlock]:
    content = body.get("content") or []
    # All files before the first text, which may take all the room there is: ReadEntry gives texts only.
    files = [_attachment(block, room) if block.get("type") == "attachment" else None for block in content]
    blocks = []
    for block, file in zip(content, files, strict=True):
        if file is not None:
            blocks.append(session_pb2.ContentBlock(attachment=file))
        if block.get("type") == "attachment":
            continue
        has_block = room.has_block()  # before the text, see above
        text = room.fit(block.get("text") or "")
        if has_block:
            blocks.append(session_pb2.ContentBlock(text=text))
    return blocks


def _attachment(block: Mapping[str, Any], room: _Room) -> session_pb2.AttachmentReference | None:
    """None: there is no room for it."""
    file_name, mime_type, blob_hash = name(block["name"]), name(block["mime_type"]), block["blob_hash"]
    if not room.has_file(file_name, mime_type, blob_hash):
        return None
    return session_pb2.AttachmentReference(
        name=file_name, mime_type=mime_type, hash=blob_hash, size=block["size_bytes"]
    )


def _assistant(body: Mapping[str, Any], room: _Room) -> session_pb2.AssistantEntry:
    converted = session_pb2.AssistantEntry(
        message_id=name(body.get("message_id") or ""),
        provider=name(body.get("provider") or ""),
        model=name(body.get("model") or ""),
        response_model=name(body.get("response_model") or ""),
        usage=_usage(body.get("usage")),
        stop_reason=name(body.get("stop_reason") or ""),
    )
    for block in body.get("content") or []:
        match block.get("type"):
            case "tool_call":
                call_id, tool_name = name(block.get("call_id") or ""), name(block.get("name") or "")
                has_block = room.has_block(call_id, tool_name)
                arguments = room.fit_whole(block.get("arguments_json") or "")
                if has_block:
                    call = session_pb2.ToolCall(call_id=call_id, name=tool_name, arguments_json=arguments)
                    converted.content.add(tool_call=call)
            case "reasoning":
                has_block = room.has_block()
                text = room.fit(block.get("text") or "")
                if has_block:
                    converted.content.add(reasoning=text)
            case _:
                has_block = room.has_block()
                text = room.fit(block.get("text") or "")
                if has_block:
                    converted.content.add(text=text)
    return converted


def _tool_result(body: Mapping[str, Any], room: _Room) -> session_pb2.ToolResultEntry:
    outcome = body.get("outcome")
    return session_pb2.ToolResultEntry(
        call_id=name(body.get("call_id") or ""),
        name=name(body.get("name") or ""),
        content=_text_blocks(body, room),
        is_error=bool(body.get("is_error")),
        outcome=tool_outcome(ToolOutcome(outcome) if outcome else None),
    )


def _usage(stored: Mapping[str, Any] | None) -> run_pb2.Usage | None:
    """Absent when the provider said nothing about this one call."""
    if not stored or stored.get("unavailable"):
        return None
    return usage(
        Usage(
            input_tokens=stored.get("input_tokens", 0),
            output_tokens=stored.get("output_tokens", 0),
            cache_read_tokens=stored.get("cache_read_tokens", 0),
            cache_write_tokens=stored.get("cache_write_tokens", 0),
            reasoning_tokens=stored.get("reasoning_tokens", 0),
            cost_usd=stored.get("cost_usd"),
        )
    )
