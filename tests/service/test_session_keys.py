"""Which session a message goes to, and that every call knows a session by any form of its key (spec 01, 1.3; D-21)."""

import re
from typing import Any

import grpc
import pytest
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import all_that_is_stored, refused
from tests.service.test_session_settings import update

from laneway.v1 import agent_pb2, session_pb2

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
KNOWN = "agent:main:known"


@pytest.fixture
async def service(tmp_path: Any, model: ModelServer) -> Any:
    """With an agent beside `main`, and a session of each."""
    toml = "\n[agents.list.research]\n"
    async with running_service(tmp_path / "home", model=model, toml=toml) as service:
        await service.finish(session_key="known")
        await service.finish(session_key="agent:research:theirs")
        yield service


async def id_of(service: RunningService, session_key: str) -> str:
    session = await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key=session_key))
    return session.session_id


async def test_a_message_finds_its_session(service: RunningService) -> None:
    known, theirs = await id_of(service, "known"), await id_of(service, "agent:research:theirs")
    for fields, session_key, session_id in (
        ({"session_key": "known"}, KNOWN, known),
        ({"session_key": " KNOWN "}, KNOWN, known),
        ({"session_key": "Agent:Main:Known"}, KNOWN, known),
        ({"session_key": "known", "session_id": known}, KNOWN, known),
        ({"session_key": "known", "agent_id": "Main"}, KNOWN, known),
        ({"session_id": known}, KNOWN, known),
        ({"session_id": theirs}, "agent:research:theirs", theirs),
        ({"session_id": theirs, "agent_id": "research"}, "agent:research:theirs", theirs),
        ({"session_key": "theirs", "agent_id": "research"}, "agent:research:theirs", theirs),
        ({"session_key": "main"}, "agent:main:main", None),
        ({"session_key": "MAIN", "agent_id": "research"}, "agent:research:main", None),
        ({"session_key": " ", "agent_id": "research"}, "agent:research:main", None),
        ({"session_key": "theirs"}, "agent:main:theirs", None),
        ({"session_key": "agent:research:slack:group:Team:thread:7"}, "agent:research:slack:group:team:thread:7", None),
        ({"to": KNOWN}, None, None),  # R-1.22 (2) is replaced: `to` is no key
        ({"channel": "mail", "to": "ann"}, None, None),  # and neither is a route (4)
        ({"agent_id": "research"}, None, None),  # nor an agent (5)
        ({}, None, None),
    ):
        answer = await service.accept(**fields, queue_mode=agent_pb2.QUEUE_MODE_FOLLOWUP)
        agent_id = "research" if "research" in (fields.get("agent_id"), answer.session_key.split(":")[1]) else "main"
        assert answer.agent_id == agent_id, fields
        if session_key is None:
            assert re.fullmatch(rf"agent:{agent_id}:run:[0-9a-f-]{{36}}", answer.session_key), fields
        else:
            assert answer.session_key == session_key, fields
        if session_id is not None:
            assert answer.session_id == session_id, fields
        await service.wait(answer.run_id)


async def test_a_message_without_a_session_it_may_use_is_refused_and_leaves_nothing(service: RunningService) -> None:
    known, theirs = await id_of(service, "known"), await id_of(service, "agent:research:theirs")
    before = await all_that_is_stored(service)
    for fields, status, reason, field in (
        ({"session_id": "nobody's"}, NOT_FOUND, "SESSION_NOT_FOUND", None),
        ({"session_key": "known", "session_id": theirs}, NOT_FOUND, "SESSION_NOT_FOUND", "session_id"),
        ({"session_key": "new", "session_id": known}, NOT_FOUND, "SESSION_NOT_FOUND", "session_id"),
        ({"session_id": theirs, "agent_id": "main"}, INVALID, "FIELD_INVALID", "agent_id"),
        ({"session_key": "agent:main:x", "agent_id": "research"}, INVALID, "FIELD_INVALID", "agent_id"),
        ({"session_key": "agent:nobody:x"}, NOT_FOUND, "AGENT_NOT_FOUND", None),
        ({"agent_id": "nobody"}, NOT_FOUND, "AGENT_NOT_FOUND", None),
        ({"session_key": "agent:"}, INVALID, "SESSION_KEY_MALFORMED", "session_key"),
        ({"session_key": "agent:main"}, INVALID, "SESSION_KEY_MALFORMED", "session_key"),
        ({"session_key": "agent:-:x"}, INVALID, "SESSION_KEY_MALFORMED", "session_key"),
    ):
        refusal = await refused(service.accept(**fields))
        assert (refusal.status, refusal.reason, refusal.metadata.get("field")) == (status, reason, field), fields
    assert await all_that_is_stored(service) == before


@pytest.mark.parametrize("alias", ["known", " Known ", "AGENT:MAIN:known", "agent:main:KNOWN"])
async def test_every_call_knows_a_session_by_any_form_of_its_key(service: RunningService, alias: str) -> None:
    sessions, agent = service.sessions, service.agent
    run = await service.accept(session_key=alias)
    assert run.session_key == KNOWN
    assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
    listed = await agent.ListRuns(agent_pb2.ListRunsRequest(session_key=alias))
    assert {each.session_key for each in listed.runs} == {KNOWN}
    assert not (await agent.Abort(agent_pb2.AbortRequest(session_key=alias))).aborted_run_ids
    subscription = agent.Subscribe(agent_pb2.SubscribeRequest(session_key=alias))
    assert (await subscription.read()).session_key == KNOWN
    subscription.cancel()
    assert await subscription.code() is grpc.StatusCode.CANCELLED
    assert (await sessions.GetSession(session_pb2.GetSessionRequest(session_key=alias))).session_key == KNOWN
    assert (await sessions.UpdateSession(update(session_key=alias, label="x"))).session_key == KNOWN
    entries = (await sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=alias))).entries
    piece = session_pb2.ReadEntryRequest(session_key=alias, entry_id=entries[0].entry_id)
    assert (await sessions.ReadEntry(piece)).text == "hello"
    export = sessions.ExportSession(session_pb2.ExportSessionRequest(session_key=alias))
    header, *_ = [piece.line async for piece in export]
    assert KNOWN in header
    fork = session_pb2.ForkSessionRequest(session_key=alias, new_session_key=" FORK ")
    assert (await sessions.ForkSession(fork)).session.session_key == "agent:main:fork"
    await sessions.ResetSession(session_pb2.ResetSessionRequest(session_key=alias))
    await sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=alias))
    assert (await refused(sessions.GetSession(session_pb2.GetSessionRequest(session_key=KNOWN)))).reason == (
        "SESSION_NOT_FOUND"
    )
