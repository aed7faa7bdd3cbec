"""Reads transcripts in the exchange format back: a header, then one JSON object a line (spec 03, 7.2). Pure.

The counterpart of transcript/export.py. It is strict: a line that could not be kept whole is refused, with a text that
says which one and why, so that nobody finds out later that half of a conversation is missing.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import (
    AssistantBlock,
    AssistantMessage,
    Attachment,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.records import EntryKind, NewEntry
from lanewayd.transcript.entries import assistant_body, reset_body, tool_result_body, user_body
from lanewayd.transcript.export import END_MARK, END_TYPE, EXPORT_VERSION

_STOP_REASONS = {"toolUse": StopReason.TOOL_USE} | {
    reason.value: reason for reason in StopReason if reason is not StopReason.TOOL_USE
}
_OUTCOMES = [outcome.value for outcome in ToolOutcome]
_HASH = re.compile(r"[0-9a-f]{64}")
_MAX_NAME_CHARS = 512
_CUT_SHORT = (StopReason.ERROR, StopReason.ABORTED)


class _Refused(Exception):
    """What is wrong with a line."""


@dataclass(slots=True)
class TranscriptReader:
    """Takes the lines of an export in order; then it holds what they say.

    `new_entry_id` and `new_message_id` give what is unique in a store and so is never taken from a file.
    """

    new_entry_id: Callable[[], str]
    new_message_id: Callable[[], str]
    session_key: str = ""
    """Of the header; empty = it has none."""
    started_at: datetime | None = None
    """Of the header; None = no line was read."""
    entries: list[NewEntry] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _last_id: str | None = None
    _line_no: int = 0
    _has_end: bool = False
    """The header says that the last line is an end."""
    _is_ended: bool = False

    def feed(self, line: str) -> None:
        """The next line; a blank one says nothing. Raises FieldError (FIELD_INVALID, `line`)."""
        self._line_no += 1
        if not line.strip():
            return
        try:
            value = _json_object(line)
            if self.started_at is None:
                self._read_header(value)
            elif self._is_ended:
                raise _Refused("nothing follows the end of an export")
            elif value.get("type") == "custom" and value.get("customType") == END_TYPE:
                self._read_end(value)
            else:
                self._read_entry(value)
        except _Refused as refused:
            raise FieldError(ErrorCode.FIELD_INVALID, "line", f"line {self._line_no}: {refused}") from None

    def finish(self) -> datetime:
        """No more lines come; when the conversation began. Raises FieldError (FIELD_INVALID, `line`)."""
        if self.started_at is None:
            raise FieldError(ErrorCode.FIELD_INVALID, "line", "there are no lines; the first one is the header")
        if self._has_end and not self._is_ended:
            what = f"line {self._line_no + 1}: the last line is missing: the export was cut, export it again"
            raise FieldError(ErrorCode.FIELD_INVALID, "line", what)
        return self.started_at

    def _read_header(self, value: dict[str, Any]) -> None:
        if value.get("type") != "session":
            raise _Refused('the first line is the header of an export: {"type": "session", "version": 3, ...}')
        version = value.get("version", 1)
        if version != EXPORT_VERSION:
            raise _Refused(f"`version` is {_shown(version)}; only version {EXPORT_VERSION} can be imported")
        session_key = _text(value, "sessionKey", "")
        if any(character < " " or "\x7f" <= character <= "\x9f" for character in session_key):
            raise _Refused("`sessionKey` has control characters")
        self.session_key = session_key
        self._has_end = value.get(END_MARK) is True
        self.started_at = _time(value)

    def _read_end(self, value: dict[str, Any]) -> None:
        data = value.get("data")
        count = data.get("entries") if isinstance(data, dict) else None
        if count != len(self.entries):
            raise _Refused(f"the export had {_shown(count)} entries, but {len(self.entries)} stand before its end")
        self._is_ended = True

    def _read_entry(self, value: dict[str, Any]) -> None:
        kind, body_json = self._body(value)
        entry_id = _text(value, "id")
        if not entry_id or entry_id in self._ids:
            raise _Refused("`id` is empty" if not entry_id else f"the id {_shown(entry_id)} stands in an earlier line")
        if value.get("parentId") != self._last_id:
            raise _Refused(
                f"`parentId` is {_shown(value.get('parentId'))}, but the entry before is {_shown(self._last_id)}; "
                "branches cannot be imported"
            )
        self.entries.append(NewEntry(self.new_entry_id(), _time(value), kind, body_json))
        self._ids.add(entry_id)
        self._last_id = entry_id

    def _body(self, value: dict[str, Any]) -> tuple[EntryKind, str]:
        kind = _text(value, "type")
        if kind == "reset":
            if value.get("firstKeptEntryId") is not None:
                raise _Refused("a reset that keeps entries cannot be imported")
            return EntryKind.RESET, reset_body()
        if kind != "message":
            raise _Refused(f"entries of the type {_shown(kind)} cannot be imported; messages and resets can")
        message = value.get("message")
        if not isinstance(message, dict):
            raise _Refused("`message` is no object")
        match message.get("role"):
            case "user":
                return EntryKind.USER, user_body(_said(message))
            case "assistant":
                return EntryKind.ASSISTANT, assistant_body(_assistant(message), self.new_message_id())
            case "toolResult":
                return EntryKind.TOOL_RESULT, tool_result_body(_tool_result(message))
            case role:
                raise _Refused(f"`role` is {_shown(role)}; it is user, assistant or toolResult")


def _said(message: dict[str, Any]) -> UserMessage:
    """Texts, and mentions of files: their bytes are not in an export."""
    blocks = _blocks(message)
    files = [block for block in blocks if block.get("type") == "attachment"]
    texts = [block for block in blocks if block.get("type") != "attachment"]
    return UserMessage(_texts({"content": texts}), tuple(_attachment(block) for block in files))


def _attachment(block: dict[str, Any]) -> Attachment:
    name, mime_type, digest = _text(block, "name", ""), _text(block, "mimeType", ""), _text(block, "hash")
    size_bytes = block.get("size")
    if max(len(name), len(mime_type)) > _MAX_NAME_CHARS:
        raise _Refused(f"`name` and `mimeType` of an attachment have at most {_MAX_NAME_CHARS} characters")
    if not _HASH.fullmatch(digest):
        raise _Refused("`hash` of an attachment is no SHA-256 in 64 hex digits")
    if isinstance(size_bytes, bool) or not isinstance(size_bytes, int) or not 0 <= size_bytes < 2**63:
        raise _Refused("`size` of an attachment is no number of bytes")
    return Attachment(name, mime_type, digest, size_bytes)


def _assistant(message: dict[str, Any]) -> AssistantMessage:
    word = _text(message, "stopReason", StopReason.STOP.value)
    if word not in _STOP_REASONS:
        raise _Refused(f"`stopReason` is {_shown(word)}; it is one of {', '.join(_STOP_REASONS)}")
    stop_reason = _STOP_REASONS[word]
    return AssistantMessage(
        content=tuple(_assistant_block(block, stop_reason) for block in _blocks(message)),
        provider=_text(message, "provider", ""),
        model=_text(message, "model", ""),
        response_model=_text(message, "responseModel", ""),
        stop_reason=stop_reason,
        usage=Usage(unavailable=True),
    )


def _assistant_block(block: dict[str, Any], stop_reason: StopReason) -> AssistantBlock:
    match block.get("type"):
        case "text":
            return Text(_text(block, "text"))
        case "thinking":
            return Reasoning(_text(block, "thinking"), _text(block, "thinkingSignature", ""))
        case "toolCall":
            call_id, name = _text(block, "id"), _text(block, "name")
            if not call_id or not name:
                raise _Refused("a tool call has an `id` and a `name`")
            arguments = block.get("arguments")
            # A message that was cut short is not shown to models again, so that its calls may be incomplete.
            if isinstance(arguments, str) and stop_reason in _CUT_SHORT:
                arguments_json = arguments
            elif isinstance(arguments, dict):
                arguments_json = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            else:
                raise _Refused(f"`arguments` of the tool call {_shown(call_id)} is no object")
            return ToolCall(call_id, name, arguments_json, _text(block, "thoughtSignature", ""))
        case kind:
            raise _Refused(f"content of the type {_shown(kind)} cannot be imported; text, thinking and toolCall can")


def _tool_result(message: dict[str, Any]) -> ToolResultMessage:
    call_id, name = _text(message, "toolCallId"), _text(message, "toolName")
    if not call_id or not name:
        raise _Refused("a tool result has a `toolCallId` and a `toolName`")
    is_error = message.get("isError", False)
    if not isinstance(is_error, bool):
        raise _Refused("`isError` is neither true nor false")
    return ToolResultMessage(call_id, name, _texts(message), is_error, _outcome(message, is_error=is_error))


def _outcome(message: dict[str, Any], *, is_error: bool) -> ToolOutcome:
    """What our own exports say in `details`, else what `isError` says."""
    details = message.get("details")
    said = details.get("outcome") if isinstance(details, dict) else None
    if said in _OUTCOMES:
        return ToolOutcome(said)
    return ToolOutcome.ERROR if is_error else ToolOutcome.OK


def _texts(message: dict[str, Any]) -> str:
    """The text of a message that has nothing but text."""
    texts = []
    for block in _blocks(message):
        if block.get("type") != "text":
            raise _Refused(f"content of the type {_shown(block.get('type'))} cannot be imported here; text can")
        texts.append(_text(block, "text"))
    return "".join(texts)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):  # the short form of the format
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise _Refused("`content` is no list of objects")
    return content


def _text(value: dict[str, Any], name: str, default: str | None = None) -> str:
    text = value.get(name, default)
    if not isinstance(text, str):
        raise _Refused(f"`{name}` is missing" if text is None else f"`{name}` is no text")
    return text


def _time(value: dict[str, Any]) -> datetime:
    text = _text(value, "timestamp")
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _Refused(f"`timestamp` is {_shown(text)}; it is a date, a time and an offset as in 2026-01-31T12:00:00+00:00")


def _json_object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _Refused(f"it is no JSON ({str(error)[:100]})") from None
    if not isinstance(value, dict):
        raise _Refused("it is no JSON object")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)[:60]
