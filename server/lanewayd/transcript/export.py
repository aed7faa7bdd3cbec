"""Transcripts in the exchange format: a header, then one JSON object a line (spec 03, 7.2). Pure."""

import hashlib
import json
from typing import Any

from lanewayd.messages import ToolOutcome, valid_text
from lanewayd.records import Entry, EntryKind, Session

EXPORT_VERSION = 3
END_MARK = "hasEnd"
"""Of a header: the last line is an end, so that a file without one is known to be cut."""
END_TYPE = "laneway.end"
"""`customType` of the last line."""


class ExportIds:
    """Gives entries the short ids of the format: 8 hex digits, the whole hash where two entries share those."""

    def __init__(self) -> None:
        self._short: dict[str, str] = {}
        self._taken: set[str] = set()

    def short(self, entry_id: str) -> str:
        """The id of an entry in this export; the same one each time."""
        known = self._short.get(entry_id)
        if known is not None:
            return known
        digest = hashlib.sha256(entry_id.encode()).hexdigest()
        short = digest if digest[:8] in self._taken else digest[:8]
        self._taken.add(short)
        self._short[entry_id] = short
        return short


def export_header(session: Session, workspace: str) -> dict[str, Any]:
    """The first line of an export."""
    return {
        "type": "session",
        "version": EXPORT_VERSION,
        "id": session.session_id,
        "timestamp": session.created_at.isoformat(),
        "cwd": workspace,
        "sessionKey": session.session_key,
        END_MARK: True,
    }


def export_end(last: Entry | None, entries: int, session: Session, ids: ExportIds) -> dict[str, Any]:
    """The last line of an export: an entry that models do not see (spec 03, 7.2), behind the `last` of `entries`."""
    return {
        "type": "custom",
        "id": ids.short(f"{END_TYPE} {session.session_id}"),
        "parentId": ids.short(last.entry_id) if last is not None else None,
        "timestamp": (last.time if last is not None else session.created_at).isoformat(),
        "customType": END_TYPE,
        "data": {"entries": entries},
    }


def export_line(entry: Entry, ids: ExportIds) -> dict[str, Any]:
    """One line of an export."""
    body = json.loads(entry.body_json)
    line: dict[str, Any] = {"id": ids.short(entry.entry_id)}
    line["parentId"] = ids.short(entry.parent_entry_id) if entry.parent_entry_id else None
    line["timestamp"] = entry.time.isoformat()
    if entry.kind is EntryKind.RESET:
        return {"type": "reset", **line, "firstKeptEntryId": body["first_kept_entry_id"] or None}
    return {"type": "message", **line, "message": _export_message(entry.kind, body)}


def _export_message(kind: EntryKind, body: dict[str, Any]) -> dict[str, Any]:
    if kind is EntryKind.USER:
        return {"role": "user", "content": [_export_said(part) for part in body["content"]]}
    if kind is EntryKind.TOOL_RESULT:
        result = {
            "role": "toolResult",
            "toolCallId": body["call_id"],
            "toolName": body["name"],
            "content": body["content"],
            "isError": body["is_error"],
        }
        is_plain = body["outcome"] == (ToolOutcome.ERROR if body["is_error"] else ToolOutcome.OK)
        return result if is_plain else {**result, "details": {"outcome": body["outcome"]}}
    return {
        "role": "assistant",
        "content": [_export_block(block) for block in body["content"]],
        "provider": body["provider"],
        "model": body["model"],
        **({"responseModel": body["response_model"]} if body.get("response_model") else {}),
        "stopReason": {"tool_use": "toolUse"}.get(body["stop_reason"], body["stop_reason"]),
    }


def _export_said(part: dict[str, Any]) -> dict[str, Any]:
    """A text as it is; of a file everything but its bytes."""
    if part["type"] != "attachment":
        return part
    names = {"name": "name", "mimeType": "mime_type", "hash": "blob_hash", "size": "size_bytes"}
    return {"type": "attachment", **{name: part[column] for name, column in names.items()}}


def _export_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "reasoning":
        thinking = {"type": "thinking", "thinking": block["text"]}
        return {**thinking, "thinkingSignature": block["field"]} if block.get("field") else thinking
    if block["type"] == "tool_call":
        call = {
            "type": "toolCall",
            "id": block["call_id"],
            "name": block["name"],
            "arguments": _arguments(block["arguments_json"]),
        }
        return {**call, "thoughtSignature": block["signature"]} if block.get("signature") else call
    return block


def _arguments(arguments_json: str) -> Any:
    """The object; escaped halves of characters become U+FFFD, and what is no JSON stays a text."""
    try:
        arguments = json.loads(arguments_json)
    except ValueError:
        return arguments_json
    return json.loads(valid_text(json.dumps(arguments, ensure_ascii=False)))
