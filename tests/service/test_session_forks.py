"""ForkSession through the whole service: what a fork takes over, what it leaves, what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import TENANT_KEY, RunningService, running_service
from tests.service.refusals import all_that_is_stored, refused
from tests.service.test_attachments import EYES, PNG, cat, files_at, name_of
from tests.service.test_sessions import entries_of, said_to_model

from laneway.v1 import agent_pb2, run_pb2, session_pb2
from lanewayd.runs import session_control

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND


def fork_of(session_key: str = "s", *, to: str = "fork", **fields: Any) -> session_pb2.ForkSessionRequest:
    return session_pb2.ForkSessionRequest(session_key=session_key, new_session_key=to, **fields)


async def delete(service: RunningService, session_key: str) -> None:
    await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=session_key))


async def talk(service: RunningService, model: ModelServer, *words: str) -> None:
    """A turn for each word in session `s`, answered with the word in capitals."""
    for word in words:
        model.answer(text_answer(word.upper()))
        await service.finish(word, session_key="s")


async def test_a_fork_goes_on_from_an_entry_and_leaves_the_other_session_alone(
    service: RunningService, model: ModelServer
) -> None:
    await talk(service, model, "one", "two")
    before = await entries_of(service)
    session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s"))
    answer = await service.sessions.ForkSession(fork_of(" S ", to="Fork", entry_id=before[1].entry_id, label="what if"))
    fork = answer.session
    assert (answer.entries, answer.duplicate) == (2, False)
    assert (fork.session_key, fork.parent_session_key, fork.label) == ("agent:main:fork", "agent:main:s", "what if")
    assert fork.session_id != session.session_id
    copied = await entries_of(service, "fork")
    assert [(entry.time, entry.run_id, entry.user, entry.assistant) for entry in copied] == [
        (entry.time, entry.run_id, entry.user, entry.assistant) for entry in before[:2]
    ]
    assert [entry.parent_entry_id for entry in copied] == ["", copied[0].entry_id]
    assert {entry.entry_id for entry in copied}.isdisjoint(entry.entry_id for entry in before)
    await service.finish("three", session_key="fork")
    assert await said_to_model(model) == [("user", "one"), ("assistant", "ONE"), ("user", "three")]
    assert await entries_of(service) == before
    assert await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="s")) == session


async def test_a_fork_has_the_settings_but_no_usage_no_marks_and_no_runs(
    service: RunningService, model: ModelServer
) -> None:
    await talk(service, model, "one")
    update = session_pb2.UpdateSessionRequest(
        session=session_pb2.Session(session_key="s", model="mock/other", pinned=True, archived=True, label="mine")
    )
    update.update_mask.paths.extend(["model", "pinned", "archived", "label"])
    source = await service.sessions.UpdateSession(update)
    assert source.usage.total_tokens > 0
    fork = (await service.sessions.ForkSession(fork_of())).session
    assert (fork.model, fork.pinned, fork.archived, fork.label) == ("mock/other", False, False, "")
    assert (fork.usage, fork.context_tokens, fork.last_run_id) == (run_pb2.Usage(), 0, "")
    run = await service.accept("two", session_key="fork", model="")
    assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
    fork = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key="fork"))
    assert (fork.last_run_id, fork.usage) == (run.run_id, (await service.wait(run.run_id)).usage)


async def test_repeating_a_fork_answers_the_same_session_however_it_went_on(
    service: RunningService, model: ModelServer
) -> None:
    await talk(service, model, "one")
    requests = [fork_of() for _ in range(5)]
    answers = await asyncio.gather(*(service.sessions.ForkSession(request) for request in requests))
    assert {answer.session.session_id for answer in answers} == {answers[0].session.session_id}
    assert sorted((answer.duplicate, answer.entries) for answer in answers) == [(False, 2)] + [(True, 0)] * 4
    await talk(service, model, "two")
    await service.finish("three", session_key="fork")
    again = await service.sessions.ForkSession(fork_of())
    assert (again.session.session_id, again.duplicate) == (answers[0].session.session_id, True)
    assert len(await entries_of(service, "fork")) == 4
    await delete(service, "s")
    assert (await service.sessions.ForkSession(fork_of())).duplicate


async def test_without_a_key_each_fork_is_another_session(service: RunningService, model: ModelServer) -> None:
    await talk(service, model, "one")
    keys = [(await service.sessions.ForkSession(fork_of(to=""))).session.session_key for _ in range(2)]
    assert keys[0] != keys[1]
    assert all(key.startswith("agent:main:fork:") for key in keys)


async def test_a_session_at_work_is_forked_as_it_stands(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        run = await service.accept("go", session_key="s")
        call = await tool.asked.get()
        assert (await service.sessions.ForkSession(fork_of())).entries == 2
        await service.finish("instead", session_key="fork")
        roles = [role for role, _ in await said_to_model(model)]
        assert roles == ["user", "assistant", "tool", "user"]  # the missing result is repaired in the request
        call.answer.set_result(DONE)
        assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_a_fork_keeps_the_files_that_it_names_when_the_other_session_is_deleted(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model, toml=EYES) as service:
        await service.finish("look", session_key="s", attachments=[cat()])
        await service.sessions.ForkSession(fork_of())
        await service.sessions.ForkSession(fork_of("fork", to="second"))
        await delete(service, "s")
        await delete(service, "fork")
        await service.finish("again", session_key="second")
        [text, image] = model.requests[-1].messages[1]["content"]
        assert (text["text"], image["type"]) == ("look", "image_url")
        assert files_at(home) == {name_of(PNG): PNG}
        await delete(service, "second")
        assert files_at(home) == {}


async def test_forks_that_are_refused_leave_nothing_behind(
    service: RunningService, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(service, model, "one", "two")
    await service.finish("x", session_key="taken")
    [first, *_] = await entries_of(service)
    await service.sessions.ForkSession(fork_of(to="forked", entry_id=first.entry_id))
    other = [entry.entry_id for entry in await entries_of(service, "taken")]
    before = await all_that_is_stored(service)
    for request, status, reason, field in (
        (fork_of(""), INVALID, "FIELD_INVALID", "session_key"),
        (fork_of("nobody"), NOT_FOUND, "SESSION_NOT_FOUND", None),
        (fork_of(entry_id="ent_none"), NOT_FOUND, "ENTRY_NOT_FOUND", "entry_id"),
        (fork_of(entry_id=other[0]), NOT_FOUND, "ENTRY_NOT_FOUND", "entry_id"),
        (fork_of(entry_id="x" * 513), INVALID, "FIELD_INVALID", "entry_id"),
        (fork_of(label="x" * 513), INVALID, "FIELD_INVALID", "label"),
        (fork_of(to="s"), INVALID, "FIELD_INVALID", "new_session_key"),
        (fork_of(to="taken"), INVALID, "FIELD_INVALID", "new_session_key"),
        (fork_of(to="forked", entry_id=other[0]), INVALID, "FIELD_INVALID", "new_session_key"),
        (fork_of("taken", to="forked"), INVALID, "FIELD_INVALID", "new_session_key"),
        (fork_of(to="agent:other:x"), INVALID, "FIELD_INVALID", "new_session_key"),
        (fork_of(to="agent:"), INVALID, "SESSION_KEY_MALFORMED", "new_session_key"),
        (fork_of(to="a\x00b"), INVALID, "SESSION_KEY_MALFORMED", "new_session_key"),
        (fork_of(to="x" * 513), INVALID, "SESSION_KEY_MALFORMED", "new_session_key"),
        (fork_of(to="x" * 510), INVALID, "SESSION_KEY_MALFORMED", "new_session_key"),
    ):
        refusal = await refused(service.sessions.ForkSession(request))
        assert (refusal.status, refusal.reason, refusal.metadata.get("field")) == (status, reason, field), request
    for limit in ("MAX_FORK_ENTRIES", "MAX_FORK_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(session_control, limit, 3)
            refusal = await refused(service.sessions.ForkSession(fork_of()))
            assert (refusal.reason, refusal.metadata["field"]) == ("FIELD_INVALID", "entry_id")
    assert await all_that_is_stored(service) == before
    monkeypatch.setattr(session_control, "MAX_FORK_ENTRIES", 4)
    assert (await service.sessions.ForkSession(fork_of())).entries == 4


async def test_sessions_of_another_tenant_are_not_forked(service: RunningService, model: ModelServer) -> None:
    await talk(service, model, "one")
    [first, *_] = await entries_of(service)
    them = [(TENANT_KEY, "them")]
    assert (await refused(service.sessions.ForkSession(fork_of(), metadata=them))).reason == "SESSION_NOT_FOUND"
    await service.agent.Agent(agent_pb2.AgentRequest(message="x", session_key="s", model="mock/any"), metadata=them)
    theirs = service.sessions.ForkSession(fork_of(entry_id=first.entry_id), metadata=them)
    assert (await refused(theirs)).reason == "ENTRY_NOT_FOUND"


async def test_a_fork_of_an_imported_transcript_does_not_show_files_of_others(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path / "home", model=model, toml=EYES) as service:
        await service.finish("look", session_key="s", attachments=[cat()])
        them = [(TENANT_KEY, "them")]
        call = service.sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="s"))
        lines = [session_pb2.ImportSessionRequest(line=piece.line) async for piece in call]
        await service.sessions.ImportSession(iter(lines), metadata=them)
        await service.sessions.ForkSession(fork_of(), metadata=them)
        request = agent_pb2.AgentRequest(message="what is it?", session_key="fork", model="mock/any")
        run = await service.agent.Agent(request, metadata=them)
        await service.agent.Wait(agent_pb2.WaitRequest(run_id=run.run_id), metadata=them)
        assert "not available" in model.requests[-1].messages[1]["content"]
