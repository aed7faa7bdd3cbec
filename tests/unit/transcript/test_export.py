"""Transcripts in the exchange format (spec 03, 7.2)."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.records import Entry, EntryKind, Session
from lanewayd.transcript.entries import assistant_body, reset_body, tool_result_body, user_body
from lanewayd.transcript.export import ExportIds, export_header, export_line

NOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


def line(kind: EntryKind, body_json: str, entry_id: str = "ent_2", parent: str = "ent_1") -> dict[str, Any]:
    return export_line(Entry(entry_id, parent, "s", "r", NOW, kind, body_json), ExportIds())


def test_the_header_names_the_session_and_its_version() -> None:
    session = Session("default", "agent:main:main", "0190", "main", NOW, NOW)
    assert export_header(session, "/ws") == {
        "type": "session",
        "version": 3,
        "id": "0190",
        "timestamp": "2026-01-01T12:30:00+00:00",
        "cwd": "/ws",
        "sessionKey": "agent:main:main",
        "hasEnd": True,
    }


def test_an_entry_names_itself_and_its_parent_by_8_hex_digits() -> None:
    exported = line(EntryKind.USER, user_body(UserMessage("hi")))
    assert re.fullmatch("[0-9a-f]{8}", exported["id"])
    assert re.fullmatch("[0-9a-f]{8}", exported["parentId"])
    assert exported["id"] != exported["parentId"]
    assert exported["timestamp"] == "2026-01-01T12:30:00+00:00"
    assert line(EntryKind.USER, user_body(UserMessage("hi")), parent="")["parentId"] is None


def test_an_id_is_the_same_wherever_it_stands() -> None:
    ids = ExportIds()
    first = export_line(Entry("a", "", "s", "r", NOW, EntryKind.USER, user_body(UserMessage("1"))), ids)
    second = export_line(Entry("b", "a", "s", "r", NOW, EntryKind.USER, user_body(UserMessage("2"))), ids)
    assert second["parentId"] == first["id"]


def test_two_entries_never_share_an_id() -> None:
    ids = ExportIds()
    made = {f"ent_{number}": ids.short(f"ent_{number}") for number in range(120_000)}
    assert len(set(made.values())) == len(made)
    assert any(len(short) > 8 for short in made.values())  # 120,000 of 4e9 meet
    assert all(ids.short(entry_id) == short for entry_id, short in list(made.items())[:100])


def test_messages_have_their_roles_and_blocks() -> None:
    user = line(EntryKind.USER, user_body(UserMessage("hi")))
    assert (user["type"], user["message"]) == ("message", {"role": "user", "content": [{"type": "text", "text": "hi"}]})

    content = (Reasoning("hm"), Text("see"), ToolCall("c1", "read", '{"path":"a","n":12345678901234567890}'))
    message = AssistantMessage(content, "acme", "m", StopReason.TOOL_USE)
    assert line(EntryKind.ASSISTANT, assistant_body(message, "msg"))["message"] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "see"},
            {
                "type": "toolCall",
                "id": "c1",
                "name": "read",
                "arguments": {"path": "a", "n": 12345678901234567890},
            },
        ],
        "provider": "acme",
        "model": "m",
        "stopReason": "toolUse",
    }

    result = ToolResultMessage("c1", "read", "text", True, ToolOutcome.ERROR)
    assert line(EntryKind.TOOL_RESULT, tool_result_body(result))["message"] == {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "read",
        "content": [{"type": "text", "text": "text"}],
        "isError": True,
    }


def test_a_reset_begins_a_window() -> None:
    exported = line(EntryKind.RESET, reset_body())
    assert (exported["type"], exported["firstKeptEntryId"]) == ("reset", None)


def test_a_line_is_valid_utf8_even_if_a_models_arguments_escape_half_a_character() -> None:
    message = AssistantMessage((ToolCall("c1", "read", '{"path":"\\ud800x"}'),), "acme", "m", StopReason.TOOL_USE)
    exported = line(EntryKind.ASSISTANT, assistant_body(message, "msg"))
    json.dumps(exported, ensure_ascii=False).encode("utf-8")


def test_arguments_that_are_no_json_are_exported_as_they_are() -> None:
    message = AssistantMessage((ToolCall("c1", "read", "{broken"),), "acme", "m", StopReason.TOOL_USE)
    exported = line(EntryKind.ASSISTANT, assistant_body(message, "msg"))
    assert exported["message"]["content"][0]["arguments"] == "{broken"
