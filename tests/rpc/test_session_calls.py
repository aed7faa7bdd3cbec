"""SessionService over a real channel."""

import json
from datetime import timedelta
from typing import Any

import grpc
import pytest
from tests.fakes.rpc_rows import ACCEPTED_AT, make_session
from tests.rpc.harness import Harness, refused

from laneway.v1 import session_pb2
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.records import Entry, EntryKind
from lanewayd.rpc.limits import MAX_MESSAGE_BYTES

_KEY = "agent:main:main"


def _user_entry(number: int, text: str) -> Entry:
    body = json.dumps({"content": [{"type": "text", "text": text}]})
    return Entry(f"ent_{number}", "", "session-1", "run_1", ACCEPTED_AT, EntryKind.USER, body)


async def test_a_session_is_shown(sessions: Any) -> None:
    session = await sessions.GetSession(session_pb2.GetSessionRequest(session_key=_KEY))
    assert (session.session_key, session.session_id, session.agent_id) == (_KEY, "session-1", "main")


@pytest.mark.parametrize(
    "call",
    [
        ("GetSession", session_pb2.GetSessionRequest),
        ("ResetSession", session_pb2.ResetSessionRequest),
        ("DeleteSession", session_pb2.DeleteSessionRequest),
        ("ListEntries", session_pb2.ListEntriesRequest),
        ("ReadEntry", session_pb2.ReadEntryRequest),
        ("ExportSession", session_pb2.ExportSessionRequest),
    ],
    ids=lambda call: call[0],
)
async def test_every_call_needs_a_well_formed_key(harness: Harness, sessions: Any, call: tuple[str, Any]) -> None:
    method, request_class = call
    for key, reason in (("", "FIELD_INVALID"), ("x" * 513, "SESSION_KEY_MALFORMED"), ("\x07", "SESSION_KEY_MALFORMED")):
        refusal = await refused(getattr(sessions, method)(request_class(session_key=key)))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
        assert refusal.fields == ["session_key"]
    assert harness.sessions.asked == []


async def test_a_session_that_nobody_knows_is_not_found(sessions: Any) -> None:
    for call in (
        sessions.GetSession(session_pb2.GetSessionRequest(session_key="x")),
        sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="x")),
        sessions.ReadEntry(session_pb2.ReadEntryRequest(session_key="x", entry_id="e")),
        sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="x")),
    ):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")


async def test_sessions_are_listed_in_pages_without_gap_or_repetition(harness: Harness, sessions: Any) -> None:
    harness.sessions.stored = [
        make_session(session_key=f"k:{number}", last_interaction_at=ACCEPTED_AT + timedelta(microseconds=number // 2))
        for number in range(7)
    ]
    seen: list[str] = []
    token = ""
    while True:
        page = await sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=2, page_token=token))
        seen += [session.session_key for session in page.sessions]
        token = page.next_page_token
        if not token:
            break
    assert seen == ["k:6", "k:4", "k:5", "k:2", "k:3", "k:0", "k:1"]


async def test_a_list_of_sessions_that_is_refused(sessions: Any) -> None:
    for request, reason in (
        (session_pb2.ListSessionsRequest(page_size=-1), "FIELD_INVALID"),
        (session_pb2.ListSessionsRequest(page_token="no token"), "PAGE_TOKEN_INVALID"),
    ):
        refusal = await refused(sessions.ListSessions(request))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)


async def test_reset_and_delete_answer_with_what_they_aborted(harness: Harness, sessions: Any) -> None:
    harness.sessions.aborted = ("run_1", "run_2")
    reset = await sessions.ResetSession(session_pb2.ResetSessionRequest(session_key=_KEY, force=True))
    deleted = await sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=_KEY))
    assert list(reset.aborted_run_ids) == list(deleted.aborted_run_ids) == ["run_1", "run_2"]
    assert ("reset", "tenant-a", _KEY, True) in harness.sessions.asked
    assert ("delete", "tenant-a", _KEY, False) in harness.sessions.asked


async def test_an_active_session_is_a_failed_precondition(harness: Harness, sessions: Any) -> None:
    harness.sessions.error = LanewayError(ErrorCode.SESSION_ACTIVE, "A run is active.", metadata={"run_id": "run_1"})
    for call in (
        sessions.ResetSession(session_pb2.ResetSessionRequest(session_key=_KEY)),
        sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=_KEY)),
    ):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ACTIVE")
        assert refusal.metadata == {"run_id": "run_1"}


async def test_entries_are_listed_oldest_first_in_pages_below_1_mib(harness: Harness, sessions: Any) -> None:
    texts = ["short", "x" * 600_000, "y" * 600_000, "ü" * 1_000_000, "end"]
    harness.sessions.stored_entries = [_user_entry(number, text) for number, text in enumerate(texts)]
    entries: list[session_pb2.Entry] = []
    token = ""
    while True:
        request = session_pb2.ListEntriesRequest(session_key=_KEY, page_token=token)
        page = await sessions.ListEntries(request)
        assert page.ByteSize() <= MAX_MESSAGE_BYTES
        entries += page.entries
        token = page.next_page_token
        if not token:
            break
    assert [entry.entry_id for entry in entries] == [f"ent_{number}" for number in range(5)]
    assert [entry.truncated for entry in entries] == [False, False, False, True, False]
    assert [entry.total_bytes for entry in entries] == [len(text.encode()) for text in texts]


async def test_a_token_of_another_session_is_refused(harness: Harness, sessions: Any) -> None:
    harness.sessions.stored_entries = [_user_entry(number, "x") for number in range(3)]
    page = await sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=_KEY, page_size=1))
    request = session_pb2.ListEntriesRequest(session_key="other", page_token=page.next_page_token)
    assert (await refused(sessions.ListEntries(request))).reason == "PAGE_TOKEN_INVALID"


async def test_a_long_entry_is_read_whole_in_pieces(harness: Harness, sessions: Any) -> None:
    text = "aü😀" * 300_000
    harness.sessions.stored_entries = [_user_entry(1, text)]
    read, offset = "", 0
    while True:
        request = session_pb2.ReadEntryRequest(session_key=_KEY, entry_id="ent_1", part=0, offset=offset)
        piece = await sessions.ReadEntry(request)
        assert piece.ByteSize() <= MAX_MESSAGE_BYTES
        read, offset = read + piece.text, piece.next_offset
        if offset == piece.total_bytes:
            break
    assert read == text


async def test_a_piece_that_is_refused(harness: Harness, sessions: Any) -> None:
    harness.sessions.stored_entries = [_user_entry(1, "Hü")]
    for fields, expected in (
        ({"entry_id": ""}, ("FIELD_INVALID", "entry_id")),
        ({"entry_id": "ent_1", "part": 1}, ("FIELD_INVALID", "part")),
        ({"entry_id": "ent_1", "part": -1}, ("FIELD_INVALID", "part")),
        ({"entry_id": "ent_1", "offset": 2}, ("FIELD_INVALID", "offset")),
        ({"entry_id": "ent_1", "offset": 4}, ("FIELD_INVALID", "offset")),
        ({"entry_id": "ent_1", "offset": -1}, ("FIELD_INVALID", "offset")),
    ):
        request = session_pb2.ReadEntryRequest(session_key=_KEY, **fields)
        refusal = await refused(sessions.ReadEntry(request))
        assert (refusal.reason, refusal.metadata["field"]) == expected
    request = session_pb2.ReadEntryRequest(session_key=_KEY, entry_id="ent_2")
    assert (await refused(sessions.ReadEntry(request))).reason == "ENTRY_NOT_FOUND"


async def test_an_export_streams_lines_and_cuts_those_that_are_too_long(harness: Harness, sessions: Any) -> None:
    lines = ['{"type":"session"}', '{"text":"' + "ü" * 900_000 + '"}', '{"bad":"\udc80"}']
    harness.sessions.lines = lines
    read, current = [], ""
    async for piece in sessions.ExportSession(session_pb2.ExportSessionRequest(session_key=_KEY)):
        assert piece.ByteSize() <= MAX_MESSAGE_BYTES
        current += piece.line
        if not piece.line_continues:
            read.append(current)
            current = ""
    assert current == ""
    assert read == [*lines[:2], '{"bad":"\ufffd"}']
