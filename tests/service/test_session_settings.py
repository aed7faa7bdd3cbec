"""UpdateSession through the whole service: what is set, what it does to later messages, what is refused (R-4.12)."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.model_answers import calls_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import all_that_is_stored, refused

from laneway.v1 import agent_pb2, session_pb2

ALL_SET: dict[str, Any] = {
    "model": "mock/other",
    "thinking": agent_pb2.THINKING_LEVEL_HIGH,
    "verbose": agent_pb2.VERBOSITY_FULL,
    "reasoning": session_pb2.REASONING_VISIBILITY_STREAM,
    "trace": True,
    "queue_mode": agent_pb2.QUEUE_MODE_COLLECT,
    "queue_debounce": Duration(seconds=1, nanos=500_000_000),
    "queue_cap": 7,
    "queue_drop": session_pb2.QUEUE_DROP_NEW,
    "label": "mine",
    "pinned": True,
    "archived": True,
}


def update(*paths: str, session_key: str = "s", **fields: Any) -> session_pb2.UpdateSessionRequest:
    """Set `fields`; what `paths` names beside them is cleared."""
    request = session_pb2.UpdateSessionRequest(session=session_pb2.Session(session_key=session_key, **fields))
    request.update_mask.paths.extend([*fields, *paths])
    return request


def shown(session: session_pb2.Session) -> dict[str, Any]:
    """What of all that can be set is set."""
    return {field.name: value for field, value in session.ListFields() if field.name in ALL_SET}


async def session_of(service: RunningService, session_key: str = "s") -> session_pb2.Session:
    return await service.sessions.GetSession(session_pb2.GetSessionRequest(session_key=session_key))


async def test_what_is_set_is_answered_shown_and_listed_and_is_cleared_field_by_field(service: RunningService) -> None:
    await service.finish(session_key="s")
    assert shown(await session_of(service)) == {}
    answer = await service.sessions.UpdateSession(update(session_key=" S ", **ALL_SET))
    assert shown(answer) == ALL_SET
    assert answer == await session_of(service)
    assert await service.sessions.UpdateSession(update(**ALL_SET)) == answer
    [listed] = (await service.sessions.ListSessions(session_pb2.ListSessionsRequest())).sessions
    assert listed == answer
    left = dict(ALL_SET)
    for path in ALL_SET:
        del left[path]
        assert shown(await service.sessions.UpdateSession(update(path))) == left
    off = await service.sessions.UpdateSession(update(trace=False))
    assert (off.HasField("trace"), off.trace) == (True, False)


async def test_what_is_set_survives_a_restart_and_a_reset_and_goes_with_the_session(
    tmp_path: Path, model: ModelServer
) -> None:
    async with running_service(tmp_path / "home", model=model) as service:
        await service.finish(session_key="s")
        await service.sessions.UpdateSession(update(**ALL_SET))
    async with running_service(tmp_path / "home", model=model) as service:
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
        assert shown(await session_of(service)) == ALL_SET
        await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s"))
        await service.finish(session_key="s")
        assert shown(await session_of(service)) == {}


async def test_a_session_at_work_is_updated_at_once(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        run = await service.accept(session_key="s")
        call = await tool.asked.get()
        session = await service.sessions.UpdateSession(update(**ALL_SET))
        assert (session.active_run_id, shown(session)) == (run.run_id, ALL_SET)
        call.answer.set_result(DONE)
        assert (await service.wait(run.run_id)).status == agent_pb2.WAIT_STATUS_OK
        assert shown(await session_of(service)) == ALL_SET


async def test_updates_of_different_fields_made_at_once_all_stand(service: RunningService) -> None:
    await service.finish(session_key="s")
    await service.sessions.UpdateSession(update(model="mock/first"))  # the levels of the embedded one are few
    updates = [update(**{path: value}) for path, value in ALL_SET.items()] * 5
    await asyncio.gather(*(service.sessions.UpdateSession(request) for request in updates))
    assert shown(await session_of(service)) == ALL_SET


NO_SUCH = update(label="x", session_key="nobody")
REFUSED = [
    (NO_SUCH, grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND", "", "nobody"),
    (update(label="x", session_key=""), grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "session_key", "required"),
    (update(), grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "update_mask", "empty; name what to set: model,"),
    (update("shoe"), grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "update_mask", "'shoe'"),
    (update("usage"), grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "update_mask", "'usage'"),
    (update(label="x" * 513), grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "label", "512"),
    (update(thinking=99), grpc.StatusCode.INVALID_ARGUMENT, "ENUM_UNKNOWN", "thinking", "99"),
    (update(model="mock"), grpc.StatusCode.INVALID_ARGUMENT, "MODEL_UNKNOWN", "model", "provider/model"),
    (update(model="nobody/m"), grpc.StatusCode.INVALID_ARGUMENT, "MODEL_UNKNOWN", "model", "unknown provider"),
    (update(model="openai/m"), grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_CONFIGURED", "", "OPENAI_API_KEY"),
]


@pytest.mark.parametrize(
    ("request_", "status", "reason", "field", "text"), REFUSED, ids=[f"{row[2]}-{row[3]}" for row in REFUSED]
)
async def test_an_update_that_cannot_be_is_refused_and_changes_nothing(
    service: RunningService,
    request_: session_pb2.UpdateSessionRequest,
    status: grpc.StatusCode,
    reason: str,
    field: str,
    text: str,
) -> None:
    await service.finish(session_key="s")
    request = session_pb2.UpdateSessionRequest()
    request.CopyFrom(request_)
    if request.update_mask.paths:
        request.update_mask.paths.append("pinned")  # all of it or nothing
        request.session.pinned = True
    before = await all_that_is_stored(service)
    refusal = await refused(service.sessions.UpdateSession(request))
    assert (refusal.status, refusal.reason, refusal.metadata.get("field", "")) == (status, reason, field)
    assert text in refusal.text
    assert await all_that_is_stored(service) == before


async def test_a_level_that_the_model_of_the_session_does_not_have_is_refused_with_those_it_has(
    service: RunningService,
) -> None:
    await service.finish(session_key="s")
    small: dict[str, Any] = {"model": "local/smollm2-135m-instruct"}
    high: dict[str, Any] = {"thinking": agent_pb2.THINKING_LEVEL_HIGH}
    refusal = await refused(service.sessions.UpdateSession(update(**small, **high)))
    assert (refusal.reason, refusal.metadata["field"]) == ("FIELD_INVALID", "thinking")
    assert "valid: off" in refusal.text
    assert shown(await session_of(service)) == {}
    await service.sessions.UpdateSession(update(model="mock/big", **high))
    # A level that was set before does not stand in the way of another model.
    assert shown(await service.sessions.UpdateSession(update(**small))) == small | high


async def test_a_session_whose_agent_is_gone_keeps_its_marks_but_gets_no_model(
    tmp_path: Path, model: ModelServer
) -> None:
    key = "agent:clerk:s"
    async with running_service(tmp_path / "home", model=model, toml="[agents.list.clerk]\n") as service:
        await service.finish(session_key=key)
    async with running_service(tmp_path / "home", model=model) as service:
        assert (await service.sessions.UpdateSession(update(session_key=key, label="old"))).label == "old"
        for fields in ({"model": "mock/m"}, {"thinking": agent_pb2.THINKING_LEVEL_LOW}):
            refusal = await refused(service.sessions.UpdateSession(update(session_key=key, **fields)))
            assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "AGENT_NOT_FOUND")
        assert not (await service.sessions.UpdateSession(update("model", session_key=key))).model


async def test_another_tenant_updates_nothing(service: RunningService) -> None:
    await service.finish(session_key="s")
    refusal = await refused(service.sessions.UpdateSession(update(label="x"), metadata=(("x-tenant", "two"),)))
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    assert (await session_of(service)).label == ""
