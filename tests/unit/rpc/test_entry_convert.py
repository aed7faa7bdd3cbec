"""rpc/entry_convert.py: the bodies of entries, their limits, and reading them in pieces."""

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from tests.fakes.rpc_rows import ACCEPTED_AT

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.records import Entry, EntryKind
from lanewayd.rpc.entry_convert import entry_message, read_piece
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES, MAX_PIECE_BYTES

_TEXT = {"type": "text", "text": "Hü"}
_CALL = {"type": "tool_call", "call_id": "call_1", "name": "exec", "arguments_json": '{"a":1}'}
_FILE = {"type": "attachment", "name": "n" * 512, "mime_type": "m" * 512, "blob_hash": "a" * 64, "size_bytes": 2**62}
_USAGE = {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0}


def _entry(kind: EntryKind, body: dict[str, Any]) -> Entry:
    return Entry("ent_2", "ent_1", "session-1", "run_1", ACCEPTED_AT, kind, json.dumps(body))


def _assistant(*content: dict[str, Any], usage: dict[str, Any] | None = None) -> Entry:
    body = {
        "message_id": "msg_1",
        "content": list(content),
        "provider": "acme",
        "model": "m",
        "usage": usage,
        "stop_reason": "tool_use",
        "provider_stop": "",
    }
    return _entry(EntryKind.ASSISTANT, body)


def _dict(entry: Entry) -> dict[str, Any]:
    as_dict: dict[str, Any] = MessageToDict(entry_message(entry), preserving_proto_field_name=True)
    return as_dict


def test_an_entry_shows_where_it_stands() -> None:
    assert _dict(_entry(EntryKind.USER, {"content": [_TEXT]})) == {
        "entry_id": "ent_2",
        "parent_entry_id": "ent_1",
        "time": "2026-01-01T12:00:00.250Z",
        "run_id": "run_1",
        "user": {"content": [{"text": "Hü"}]},
        "total_bytes": "3",
    }


def test_an_assistant_entry_shows_its_blocks_in_order() -> None:
    reasoning = {"type": "reasoning", "text": "Hm", "field": "reasoning_content"}
    shown = _dict(_assistant(reasoning, _TEXT, _CALL, usage=_USAGE | {"unavailable": False}))
    assert shown["assistant"] == {
        "message_id": "msg_1",
        "content": [
            {"reasoning": "Hm"},
            {"text": "Hü"},
            {"tool_call": {"call_id": "call_1", "name": "exec", "arguments_json": '{"a":1}'}},
        ],
        "provider": "acme",
        "model": "m",
        "usage": {"input_tokens": "1", "output_tokens": "2", "total_tokens": "3"},
        "stop_reason": "tool_use",
    }
    assert shown["total_bytes"] == str(2 + 3 + 7)


@pytest.mark.parametrize("usage", [None, {"unavailable": True}, _USAGE | {"unavailable": True}])
def test_usage_that_the_provider_did_not_give_is_absent(usage: dict[str, Any] | None) -> None:
    assert "usage" not in _dict(_assistant(_TEXT, usage=usage))["assistant"]


def test_a_tool_result_shows_how_the_call_ended() -> None:
    body = {"call_id": "call_1", "name": "exec", "content": [_TEXT], "is_error": True, "outcome": "aborted"}
    assert _dict(_entry(EntryKind.TOOL_RESULT, body))["tool_result"] == {
        "call_id": "call_1",
        "name": "exec",
        "content": [{"text": "Hü"}],
        "is_error": True,
        "outcome": "TOOL_OUTCOME_ABORTED",
    }


def test_entries_without_content_still_say_what_they_are() -> None:
    assert "user" in _dict(_entry(EntryKind.USER, {"content": []}))
    assert "assistant" in _dict(_assistant())
    assert "reset" in _dict(_entry(EntryKind.RESET, {"first_kept_entry_id": ""}))
    assert _dict(_entry(EntryKind.RESET, {"first_kept_entry_id": "ent_1"}))["reset"] == {"first_kept_entry_id": "ent_1"}


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "ü" * 3_000_000}],
        [{"type": "text", "text": "x"}] * 100_000,
        [_CALL | {"call_id": "c" * 400, "name": "n" * 400}] * 3000,
        [{"type": "text", "text": "x" * 900_000}, _CALL | {"arguments_json": "{" + " " * 900_000 + "}"}, _TEXT],
    ],
)
def test_an_entry_stays_below_1_mib_and_says_what_it_lacks(content: list[dict[str, Any]]) -> None:
    shown = entry_message(_assistant(*content))
    whole = sum(len((block.get("text") or block.get("arguments_json", "")).encode()) for block in content)
    assert shown.ByteSize() <= MAX_MESSAGE_BYTES
    assert shown.truncated
    assert shown.total_bytes == whole


@pytest.mark.parametrize("text", ["all of these", "ü" * 3_000_000])
def test_an_entry_that_names_very_many_files_stays_below_1_mib_and_keeps_room_for_its_text(text: str) -> None:
    shown = entry_message(_entry(EntryKind.USER, {"content": [{"type": "text", "text": text}] + [_FILE] * 2000}))
    kinds = [block.WhichOneof("block") for block in shown.user.content]
    assert shown.ByteSize() <= MAX_MESSAGE_BYTES
    assert shown.truncated
    assert kinds == ["text"] + ["attachment"] * (len(kinds) - 1)
    assert 400 < len(kinds) < 2001
    assert len(shown.user.content[0].text.encode()) >= min(len(text.encode()), 450_000)


def test_the_files_of_a_message_are_shown_beside_a_text_that_is_cut() -> None:
    text = {"type": "text", "text": "x" * MAX_MESSAGE_BYTES}
    shown = entry_message(_entry(EntryKind.USER, {"content": [text] + [_FILE] * 20}))
    assert shown.ByteSize() <= MAX_MESSAGE_BYTES
    assert shown.truncated
    assert shown.total_bytes == MAX_MESSAGE_BYTES
    assert [block.WhichOneof("block") for block in shown.user.content] == ["text"] + ["attachment"] * 20
    assert len(shown.user.content[0].text) > 900_000


def test_names_of_absurd_length_are_cut() -> None:
    shown = entry_message(_assistant(*[_CALL | {"call_id": "c" * 100_000, "name": "n" * 100_000}] * 20))
    assert shown.ByteSize() <= MAX_MESSAGE_BYTES
    assert shown.assistant.content[0].tool_call.name == "n" * 512


def test_arguments_are_shown_whole_or_not_at_all() -> None:
    long_call = _CALL | {"arguments_json": "{" + " " * 900_000 + "}"}
    shown = entry_message(_assistant({"type": "text", "text": "x" * 900_000}, long_call, _TEXT)).assistant.content
    assert [block.WhichOneof("block") for block in shown] == ["text", "tool_call", "text"]
    assert shown[1].tool_call.arguments_json == ""
    assert shown[2].text == "Hü"


def test_lone_surrogates_are_shown_as_replacement_characters() -> None:
    entry = _entry(EntryKind.USER, {"content": [{"type": "text", "text": "a\udc80"}]})
    assert entry_message(entry).user.content[0].text == "a\ufffd"
    assert read_piece(entry, part=0, offset=0).text == "a\ufffd"


def test_a_text_is_read_in_pieces_that_together_are_the_text() -> None:
    text = "aü😀" * 200_000
    entry = _assistant({"type": "reasoning", "text": "x"}, {"type": "text", "text": text})
    read, offset = "", 0
    while True:
        piece = read_piece(entry, part=1, offset=offset)
        assert piece.total_bytes == len(text.encode())
        assert len(piece.text.encode()) <= MAX_PIECE_BYTES
        read += piece.text
        offset = piece.next_offset
        if offset == piece.total_bytes:
            break
    assert read == text
    end = read_piece(entry, part=1, offset=offset)
    assert (end.text, end.next_offset) == ("", offset)


def test_the_arguments_of_a_call_are_a_piece() -> None:
    assert read_piece(_assistant(_TEXT, _CALL), part=1, offset=0).text == '{"a":1}'
    assert read_piece(_assistant({"type": "text", "text": ""}), part=0, offset=0).total_bytes == 0


@pytest.mark.parametrize("part", [-1, 1, 2**31 - 1])
def test_a_piece_that_does_not_exist_is_refused(part: int) -> None:
    with pytest.raises(FieldError) as refused:
        read_piece(_assistant(_TEXT), part=part, offset=0)
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "part")


@pytest.mark.parametrize(
    ("kind", "body"),
    [(EntryKind.RESET, {"first_kept_entry_id": ""}), (EntryKind.USER, {"content": [{"type": "file"}]})],
)
def test_a_piece_without_text_is_refused(kind: EntryKind, body: dict[str, Any]) -> None:
    with pytest.raises(FieldError) as refused:
        read_piece(_entry(kind, body), part=0, offset=0)
    assert refused.value.field == "part"


@pytest.mark.parametrize("offset", [-1, 2, 4, 2**63 - 1])
def test_an_offset_outside_of_the_text_or_within_a_character_is_refused(offset: int) -> None:
    with pytest.raises(FieldError) as refused:
        read_piece(_assistant(_TEXT), part=0, offset=offset)
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "offset")
