"""Archived and pinned sessions through the whole service: what they take, how they are listed (R-1.20)."""

from pathlib import Path

import grpc
import pytest
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import all_that_is_stored, refused
from tests.service.test_session_settings import session_of, update

from laneway.v1 import agent_pb2, session_pb2


async def test_an_archived_session_takes_no_message_until_it_is_taken_back(service: RunningService) -> None:
    run = await service.accept(session_key="s", idempotency_key="key")
    await service.wait(run.run_id)
    await service.sessions.UpdateSession(update(archived=True))
    before = await all_that_is_stored(service)
    for fields in ({"session_key": "s"}, {"session_id": run.session_id}, {"session_key": "s", "queue_mode": "STEER"}):
        mode = agent_pb2.QUEUE_MODE_STEER if fields.pop("queue_mode", "") else agent_pb2.QUEUE_MODE_UNSPECIFIED
        refusal = await refused(service.accept(**fields, queue_mode=mode))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ARCHIVED")
    assert await all_that_is_stored(service) == before
    again = await service.accept(session_key="s", idempotency_key="key")
    assert (again.run_id, again.duplicate) == (run.run_id, True)
    await service.sessions.UpdateSession(update(label="still there"))
    assert (await session_of(service)).archived
    await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
    await service.sessions.UpdateSession(update(archived=False))
    assert (await service.finish(session_key="s")).status == agent_pb2.WAIT_STATUS_OK


async def test_runs_that_were_accepted_before_go_on(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        runs = [await service.accept(session_key="s"), await service.accept(session_key="s")]
        call = await tool.asked.get()
        await service.sessions.UpdateSession(update(archived=True))
        call.answer.set_result(DONE)
        for run in runs:
            assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK


@pytest.mark.parametrize(
    ("which", "keys"),
    [
        ({}, "abcd"),
        ({"archived": True}, "cd"),
        ({"archived": False}, "ab"),
        ({"pinned": True}, "bd"),
        ({"pinned": False}, "ac"),
        ({"archived": True, "pinned": True}, "d"),
    ],
)
async def test_lists_show_those_that_are_asked_for_in_pages(
    service: RunningService, which: dict[str, bool], keys: str
) -> None:
    for key in "abcd":
        await service.finish(session_key=key)
    for key, marks in (("b", {"pinned": True}), ("c", {"archived": True}), ("d", {"pinned": True, "archived": True})):
        await service.sessions.UpdateSession(update(session_key=key, **marks))
    seen, token = "", ""
    while True:
        request = session_pb2.ListSessionsRequest(page_size=1, page_token=token, **which)
        page = await service.sessions.ListSessions(request)
        seen += "".join(session.session_key[-1] for session in page.sessions)
        token = page.next_page_token
        if not token:
            break
    assert seen == keys[::-1]
