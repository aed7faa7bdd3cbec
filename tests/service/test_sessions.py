"""Sessions through the whole service: reset, delete, entries in pieces, export, paging (D-21; spec 03, 7.2)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.fake_clock import FakeClock
from tests.fakes.model_answers import DONE as END_MARK
from tests.fakes.model_answers import Answer, calls_answer, delta, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run
from tests.service.refusals import refused, refused_stream

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams

KEY = "agent:main:s"
MIB = 1024 * 1024


async def entries_of(service: RunningService, session_key: str = "s", page_size: int = 3) -> list[session_pb2.Entry]:
    """All entries, in small pages."""
    entries: list[session_pb2.Entry] = []
    token = ""
    while True:
        page = await service.sessions.ListEntries(
            session_pb2.ListEntriesRequest(session_key=session_key, page_size=page_size, page_token=token)
        )
        assert len(page.entries) <= page_size
        entries += page.entries
        token = page.next_page_token
        if not token:
            return entries


async def said_to_model(model: ModelServer) -> list[tuple[str, Any]]:
    """The last conversation without its system prompt."""
    return [(message["role"], message["content"]) for message in model.requests[-1].messages[1:]]


async def test_a_session_shows_what_happened_in_it(service: RunningService, model: ModelServer) -> None:
    first = await service.accept("one", session_key="s", label="mine")
    await service.wait(first.run_id)
    session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key=" S "))
    assert (session.session_key, session.agent_id, session.label) == (KEY, "main", "mine")
    assert session.session_id == first.session_id
    assert (session.last_run_id, session.last_state) == (first.run_id, run_pb2.RUN_STATE_SUCCEEDED)
    assert (session.active_run_id, session.queued_runs) == ("", 0)
    run = await get_run(service, first.run_id)
    assert session.usage == run.usage
    assert session.context_tokens == run.usage.input_tokens
    assert session.created_at == session.last_interaction_at == run.accepted_at
    second = await service.accept("two", session_id=first.session_id)
    await service.wait(second.run_id)
    assert await said_to_model(model) == [("user", "one"), ("assistant", "ok"), ("user", "two")]
    assert (second.session_id, second.session_key) == (first.session_id, first.session_key)


async def test_a_reset_begins_a_fresh_window_under_the_same_id(service: RunningService, model: ModelServer) -> None:
    first = await service.accept("one", session_key="s")
    await service.wait(first.run_id)
    before = await entries_of(service)
    answer = await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
    assert list(answer.aborted_run_ids) == []
    second = await service.accept("two", session_key="s")
    await service.wait(second.run_id)
    assert second.session_id == first.session_id
    assert await said_to_model(model) == [("user", "two")]
    entries = await entries_of(service)
    assert entries[: len(before)] == before
    assert [entry.WhichOneof("body") for entry in entries] == ["user", "assistant", "reset", "user", "assistant"]
    assert [entry.parent_entry_id for entry in entries] == ["", *(entry.entry_id for entry in entries[:-1])]


async def test_a_deleted_session_is_gone_its_keys_still_answer_and_its_name_is_free(
    service: RunningService, model: ModelServer
) -> None:
    model.answer(text_answer("a secret"))
    first = await service.accept("one", session_key="s", idempotency_key="k")
    await service.wait(first.run_id)
    entry_id = (await entries_of(service))[0].entry_id
    await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
    for call in (
        service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s")),
        service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s")),
        service.sessions.ReadEntry(session_pb2.ReadEntryRequest(session_key="s", entry_id=entry_id)),
        service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s")),
        service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s", force=True)),
    ):
        refusal = await refused(call)
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    run = await get_run(service, first.run_id)
    assert (run.state, len(run.payloads)) == (run_pb2.RUN_STATE_SUCCEEDED, 0)
    duplicate = await service.accept("one", session_key="s", idempotency_key="k")
    assert (duplicate.duplicate, duplicate.run_id) == (True, first.run_id)
    fresh = await service.accept("two", session_key="s")
    await service.wait(fresh.run_id)
    assert fresh.session_id != first.session_id
    assert await said_to_model(model) == [("user", "two")]


async def test_force_aborts_all_runs_of_the_session_and_names_them(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        for method, request in (
            (service.sessions.ResetSession, session_pb2.ResetSessionRequest(session_key="s", force=True)),
            (service.sessions.DeleteSession, session_pb2.DeleteSessionRequest(session_key="s", force=True)),
        ):
            model.answer(calls_answer(("rec", {})))
            running = await service.accept(session_key="s")
            await tool.asked.get()
            queued = [await service.accept(session_key="s") for _ in range(2)]
            answer = await method(request)
            assert sorted(answer.aborted_run_ids) == sorted(run.run_id for run in (running, *queued))
            for run_id in answer.aborted_run_ids:
                assert (await service.wait(run_id, 0)).timeout_kind == agent_pb2.TIMEOUT_KIND_CANCELLED


# --- entries ---


@pytest.mark.parametrize("text", ["\u00e4\u20ac\U0001f600x" * 104_000, "x" * (MIB - 1)], ids=["all lengths", "ASCII"])
async def test_a_long_text_is_cut_in_lists_and_read_whole_in_pieces(service: RunningService, text: str) -> None:
    run = await service.accept(text, session_key="s")
    await service.wait(run.run_id)
    entry = (await entries_of(service))[0]
    listed = entry.user.content[0].text
    assert entry.truncated
    assert entry.total_bytes == len(text.encode())
    assert len(listed.encode()) > MIB * 9 // 10
    assert text.startswith(listed)
    assert entry.ByteSize() < MIB
    whole, offset = "", 0
    while offset < entry.total_bytes:
        piece = await service.sessions.ReadEntry(
            session_pb2.ReadEntryRequest(session_key="s", entry_id=entry.entry_id, offset=offset)
        )
        assert piece.total_bytes == entry.total_bytes
        assert piece.next_offset == offset + len(piece.text.encode()) > offset
        whole, offset = whole + piece.text, piece.next_offset
    assert whole == text
    end = await service.sessions.ReadEntry(
        session_pb2.ReadEntryRequest(session_key="s", entry_id=entry.entry_id, offset=offset)
    )
    assert (end.text, end.next_offset) == ("", offset)
    events = await service.events(run.run_id)
    said = next(event.message for event in events if event.message.role == "user")
    assert (said.truncated, said.total_bytes, said.entry_id) == (True, entry.total_bytes, entry.entry_id)
    assert text.startswith(said.text)


async def test_a_place_that_an_entry_does_not_have_is_refused(service: RunningService) -> None:
    await service.finish("\u00e4bc", session_key="s")
    await service.finish("other", session_key="t")
    entry_id = (await entries_of(service))[0].entry_id
    for fields, field in (
        ({"offset": -1}, "offset"),
        ({"offset": 1}, "offset"),
        ({"offset": 5}, "offset"),
        ({"part": 1}, "part"),
        ({"part": -1}, "part"),
        ({"entry_id": ""}, "entry_id"),
    ):
        request = session_pb2.ReadEntryRequest(**({"session_key": "s", "entry_id": entry_id} | fields))
        refusal = await refused(service.sessions.ReadEntry(request))
        assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": field})
    for session_key, wanted in (("t", entry_id), ("s", "ent_none")):
        request = session_pb2.ReadEntryRequest(session_key=session_key, entry_id=wanted)
        refusal = await refused(service.sessions.ReadEntry(request))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "ENTRY_NOT_FOUND")


# --- export ---


async def test_an_export_has_the_format_that_others_read(tmp_path: Path, model: ModelServer) -> None:
    async with running_service(tmp_path / "home", model=model, tools=[RecordingTool("rec")]) as service:
        model.answer(
            calls_answer(("rec", {"n": 9007199254740993}), text="Looking. "),
            Answer([delta(reasoning_content="hm"), delta(content="found"), delta("stop"), END_MARK]),
        )
        run = await service.accept("l\u00f6\u00f6k\u2028here", session_key="s")
        await service.wait(run.run_id)
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
        entries = await entries_of(service)
        lines = await _export(service)
        assert await _export(service) == lines
        workspace = str(service.home / "workspaces" / "main")
    header, *rest, end = [json.loads(line) for line in lines]
    assert "\n" not in "".join(lines)
    assert (header["type"], header["version"], header["id"]) == ("session", 3, run.session_id)
    assert (header["cwd"], header["sessionKey"]) == (workspace, KEY)
    assert header["timestamp"].startswith("20")
    assert [line["type"] for line in rest] == ["message"] * 4 + ["reset"]
    ids = [line["id"] for line in rest]
    assert all(len(each) == 8 and int(each, 16) >= 0 for each in ids)
    assert len(set(ids)) == len(ids) == len(entries)
    assert [line["parentId"] for line in rest] == [None, *ids[:-1]]
    assert (end["type"], end["customType"], end["data"]) == ("custom", "laneway.end", {"entries": 5})
    assert (end["parentId"], end["timestamp"]) == (ids[-1], rest[-1]["timestamp"])
    assert end["id"] not in ids
    user, calling, result, answer = [line["message"] for line in rest[:4]]
    assert user == {"role": "user", "content": [{"type": "text", "text": "l\u00f6\u00f6k\u2028here"}]}
    call_id = entries[1].assistant.content[1].tool_call.call_id
    assert calling["content"] == [
        {"type": "text", "text": "Looking. "},
        {"type": "toolCall", "id": call_id, "name": "rec", "arguments": {"n": 9007199254740993}},
    ]
    assert (calling["role"], calling["stopReason"]) == ("assistant", "toolUse")
    assert (calling["provider"], calling["model"]) == ("mock", "any")
    assert (result["role"], result["toolCallId"], result["toolName"]) == ("toolResult", call_id, "rec")
    assert (result["content"], result["isError"]) == ([{"type": "text", "text": "done"}], False)
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"}
    assert answer["content"] == [thinking, {"type": "text", "text": "found"}]
    assert answer["stopReason"] == "stop"


async def test_a_long_line_of_an_export_comes_in_pieces(service: RunningService) -> None:
    text = "\u20ac" * 300_000
    await service.finish(text, session_key="s")
    pieces = [piece async for piece in _exporting(service)]
    assert all(len(piece.line.encode()) <= MIB // 2 for piece in pieces)
    assert any(piece.line_continues for piece in pieces)
    lines = await _export(service)
    assert json.loads(lines[1])["message"]["content"][0]["text"] == text
    refusal = await refused_stream(service.sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="none")))
    assert refusal.reason == "SESSION_NOT_FOUND"


def _exporting(service: RunningService) -> Any:
    return service.sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="s"))


async def _export(service: RunningService) -> list[str]:
    lines, line = [], ""
    async for piece in _exporting(service):
        line += piece.line
        if not piece.line_continues:
            lines.append(line)
            line = ""
    assert not line
    return lines


# --- paging ---


async def test_runs_are_listed_in_pages_newest_first_while_new_ones_come(tmp_path: Path, model: ModelServer) -> None:
    toml = "[agents.list.other]\n"
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        ids = []
        for number in range(7):
            agent = "other" if number % 3 == 0 else "main"
            run = await service.accept(session_key=f"s{number % 2}", agent_id=agent, label=f"l{number % 2}")
            await service.wait(run.run_id)
            ids.append(run.run_id)
        newest_first = ids[::-1]

        async def listed(**fields: Any) -> list[str]:
            found: list[str] = []
            token = ""
            while True:
                request = agent_pb2.ListRunsRequest(page_size=2, page_token=token, **fields)
                page = await service.agent.ListRuns(request)
                assert 0 < len(page.runs) <= 2
                found += [run.run_id for run in page.runs]
                token = page.next_page_token
                if not token:
                    return found
                await service.finish(session_key="in between", agent_id="other", label="l9")

        assert await listed() == newest_first
        assert await listed(session_key="agent:other:s0") == [ids[6], ids[0]]
        assert await listed(label="l1") == [ids[5], ids[3], ids[1]]
        assert await listed(agent_id="main") == [ids[5], ids[4], ids[2], ids[1]]
        assert await listed(states=[run_pb2.RUN_STATE_SUCCEEDED], label="l0") == [ids[6], ids[4], ids[2], ids[0]]
        empty = await service.agent.ListRuns(agent_pb2.ListRunsRequest(states=[run_pb2.RUN_STATE_FAILED]))
        assert (len(empty.runs), empty.next_page_token) == (0, "")


async def test_sessions_are_listed_in_pages_newest_interaction_first(tmp_path: Path, model: ModelServer) -> None:
    clock = FakeClock()
    async with running_service(tmp_path / "home", model=model, seams=Seams(clock=clock)) as service:
        for key in ("a", "b", "c", "d"):
            await service.finish(session_key=key)
            if key != "c":
                await clock.advance(1)
        await service.finish(session_key="a")
        found: list[str] = []
        token = ""
        while True:
            page = await service.sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=1, page_token=token))
            found += [session.session_key for session in page.sessions]
            token = page.next_page_token
            if not token:
                break
        assert found == ["agent:main:a", "agent:main:c", "agent:main:d", "agent:main:b"]


async def test_a_token_is_good_for_its_own_list_only(service: RunningService) -> None:
    for _ in range(2):
        await service.finish(session_key="s")
    runs = await service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=1))
    entries = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s", page_size=1))
    token = runs.next_page_token
    for call in (
        service.agent.ListRuns(agent_pb2.ListRunsRequest(page_token=token, label="x")),
        service.agent.ListRuns(agent_pb2.ListRunsRequest(page_token=token + "A")),
        service.agent.ListRuns(agent_pb2.ListRunsRequest(page_token="garbage")),
        service.agent.ListRuns(agent_pb2.ListRunsRequest(page_token=entries.next_page_token)),
        service.sessions.ListSessions(session_pb2.ListSessionsRequest(page_token=token)),
        service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s", page_token=token)),
        service.agent.ListTools(agent_pb2.ListToolsRequest(page_token=token)),
    ):
        refusal = await refused(call)
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID")
        assert refusal.metadata == {"field": "page_token"}
    resized = await service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=5, page_token=token))
    assert len(resized.runs) == 1
    for call in (
        service.agent.ListRuns(agent_pb2.ListRunsRequest(page_size=-1)),
        service.sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=-1)),
        service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="s", page_size=-1)),
    ):
        refusal = await refused(call)
        assert (refusal.reason, refusal.metadata) == ("FIELD_INVALID", {"field": "page_size"})


async def test_of_two_forced_deletions_at_once_each_run_stands_in_an_answer(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        runs = [(await service.accept("hi", session_key="busy")).run_id for _ in range(3)]
        await tool.asked.get()
        request = session_pb2.DeleteSessionRequest(session_key="busy", force=True)
        calls = [service.sessions.DeleteSession(request) for _ in range(2)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    told = [answer.aborted_run_ids for answer in answers if not isinstance(answer, BaseException)]
    assert {run_id for run_ids in told for run_id in run_ids} == set(runs)
