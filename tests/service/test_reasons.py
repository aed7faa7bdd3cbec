"""Refusals of `Agent`: status, reason, details, and that nothing changed (CONTRACT, Errors; D-16)."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.fakes.commit_gates import FailingGate
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.recording_tool import DONE, RecordingTool
from tests.fakes.service import TENANT_KEY, RunningService, running_service
from tests.service.refusals import all_that_is_stored, refused, refused_and_unchanged, refused_stream

from laneway.v1 import admin_pb2, agent_pb2, run_pb2, session_pb2
from lanewayd.app import Seams
from lanewayd.clock import SystemClock
from lanewayd.transcript.lock import SessionLocks

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
MIB = 1024 * 1024

Fields = dict[str, Any]

BAD_FIELDS: list[tuple[str, str, Fields]] = [
    ("MESSAGE_EMPTY", "message", {"message": ""}),
    ("MESSAGE_EMPTY", "message", {"message": " \n\t\u00a0"}),
    ("MESSAGE_TOO_LONG", "message", {"message": "\u00e4" * (MIB // 2) + "x"}),
    ("SESSION_KEY_MALFORMED", "session_key", {"session_key": "k" * 513}),
    ("SESSION_KEY_MALFORMED", "session_key", {"session_key": "a\x00b"}),
    ("SESSION_KEY_MALFORMED", "session_key", {"session_key": "agent:main"}),
    ("SESSION_KEY_MALFORMED", "session_key", {"session_key": "agent:no such id:x"}),
    ("IDEMPOTENCY_KEY_MALFORMED", "idempotency_key", {"idempotency_key": "k" * 129}),
    ("IDEMPOTENCY_KEY_MALFORMED", "idempotency_key", {"idempotency_key": "a\nb"}),
    ("IDEMPOTENCY_KEY_MALFORMED", "idempotency_key", {"idempotency_key": "  "}),
    ("TIMEOUT_INVALID", "timeout", {"timeout": Duration(seconds=-1)}),
    ("TIMEOUT_INVALID", "timeout", {"timeout": Duration(seconds=315_576_000_001)}),
    ("TIMEOUT_INVALID", "timeout", {"timeout": Duration(seconds=1, nanos=-1)}),
    ("ENUM_UNKNOWN", "priority", {"priority": 99}),
    ("ENUM_UNKNOWN", "thinking", {"thinking": 99}),
    ("ENUM_UNKNOWN", "queue_mode", {"queue_mode": 99}),
    ("ENUM_UNKNOWN", "prompt_mode", {"prompt_mode": 99}),
    ("ENUM_UNKNOWN", "bootstrap_context_mode", {"bootstrap_context_mode": 99}),
    ("ENUM_UNKNOWN", "provenance.kind", {"provenance": agent_pb2.Provenance(kind=99)}),  # type: ignore[arg-type]
    ("MODEL_UNKNOWN", "model", {"model": "nobody/any"}),
    ("MODEL_UNKNOWN", "model", {"model": "without-a-provider"}),
    ("MODEL_UNKNOWN", "model", {"model": "scripted/../../etc/passwd"}),
    ("FIELD_INVALID", "metadata", {"metadata": {f"key{number}": "" for number in range(33)}}),
    ("FIELD_INVALID", "metadata", {"metadata": {"key": "v" * 513}}),
    ("FIELD_INVALID", "response_schema", {"response_schema": {}}),
    ("FIELD_INVALID", "response_schema", {"response_schema": {"type": "array"}}),
    ("FIELD_INVALID", "response_schema", {"response_schema": {"type": "object", "required": 3}}),
    ("FIELD_INVALID", "response_schema", {"response_schema": {"type": "object", "$ref": "https://example.com/s.json"}}),
    ("FIELD_INVALID", "response_schema", {"response_schema": {"type": "object", "description": "x" * 65_536}}),
    ("FIELD_INVALID", "temperature", {"temperature": 2.5}),
    ("FIELD_INVALID", "max_output_tokens", {"max_output_tokens": 0}),
    ("FIELD_INVALID", "max_turns", {"max_turns": 0}),
    ("FIELD_INVALID", "extra_system_prompt", {"extra_system_prompt": "p" * (64 * 1024 + 1)}),
    ("FIELD_INVALID", "max_turns", {"max_turns": 0}),
    ("FIELD_INVALID", "label", {"label": "l" * 513}),
    ("FIELD_INVALID", "agent_id", {"agent_id": "main", "session_key": "agent:other:x"}),
]


@pytest.mark.parametrize(
    ("reason", "field", "fields"),
    BAD_FIELDS,
    ids=[f"{reason} {field} {number}" for number, (reason, field, _) in enumerate(BAD_FIELDS)],
)
async def test_a_request_with_a_bad_field_is_refused_and_changes_nothing(
    service: RunningService, model: ModelServer, reason: str, field: str, fields: Fields
) -> None:
    refusal = await refused_and_unchanged(service, fields)
    assert (refusal.status, refusal.reason, refusal.metadata) == (INVALID, reason, {"field": field})
    assert len(model.requests) == 1, "that of the valid call"


NOT_YET: list[tuple[str, Any]] = [
    ("deliver", True),
    ("best_effort_deliver", True),
    ("prompt_mode", agent_pb2.PROMPT_MODE_MINIMAL),
    ("bootstrap_context_mode", agent_pb2.BOOTSTRAP_CONTEXT_MODE_FULL),
]


@pytest.mark.parametrize(
    ("field", "value"), NOT_YET, ids=[f"{name} {number}" for number, (name, _) in enumerate(NOT_YET)]
)
async def test_a_field_whose_capability_has_not_landed_is_refused_by_name(
    service: RunningService, field: str, value: Any
) -> None:
    refusal = await refused_and_unchanged(service, {field: value})
    assert (refusal.status, refusal.reason) == (UNIMPLEMENTED, "NOT_AVAILABLE_YET")
    assert refusal.metadata == {"field": field}
    assert field in refusal.text


async def test_the_chat_view_is_refused_by_name(service: RunningService) -> None:
    refusal = await refused_stream(
        service.agent.Subscribe(agent_pb2.SubscribeRequest(all=True, view=agent_pb2.VIEW_CHAT))
    )
    assert (refusal.status, refusal.reason) == (UNIMPLEMENTED, "NOT_AVAILABLE_YET")
    assert refusal.metadata == {"field": "view"}


async def test_every_field_of_a_message_is_either_honoured_or_refused(service: RunningService) -> None:
    honoured = {
        "message", "agent_id", "session_key", "session_id", "idempotency_key", "model", "timeout", "lane", "priority",
        "channel", "to", "account_id", "thread_id", "extra_system_prompt", "label", "provenance", "tools_allow",
        "tools_deny", "max_turns", "max_output_tokens", "temperature", "seed", "response_schema", "thinking",
        "parent_run_id", "metadata", "queue_mode", "attachments",
    }  # fmt: skip
    fields = {field.name for field in agent_pb2.AgentRequest.DESCRIPTOR.fields}
    assert honoured | {field for field, _ in NOT_YET} == fields
    assert honoured.isdisjoint(field for field, _ in NOT_YET)


@pytest.mark.parametrize(
    ("reason", "fields", "metadata"),
    [
        ("AGENT_NOT_FOUND", {"agent_id": "nobody"}, {}),
        ("AGENT_NOT_FOUND", {"session_key": "agent:nobody:x"}, {}),
        ("SESSION_NOT_FOUND", {"session_id": "no-such-session"}, {}),
        ("RUN_NOT_FOUND", {"parent_run_id": "run_none"}, {"field": "parent_run_id", "run_id": "run_none"}),
    ],
)
async def test_a_message_for_what_is_not_there_is_refused_and_changes_nothing(
    service: RunningService, reason: str, fields: Fields, metadata: dict[str, str]
) -> None:
    refusal = await refused_and_unchanged(service, fields)
    assert (refusal.status, refusal.reason, refusal.metadata) == (NOT_FOUND, reason, metadata)


async def test_a_session_id_goes_with_its_own_key_only(service: RunningService) -> None:
    mine = await service.accept(session_key="mine")
    await service.wait(mine.run_id)
    session_id = mine.session_id
    refusal = await refused_and_unchanged(service, {"session_id": session_id, "session_key": "other"})
    assert (refusal.status, refusal.reason) == (NOT_FOUND, "SESSION_NOT_FOUND")
    again = await service.accept(session_id=session_id)
    assert (again.session_id, again.session_key) == (session_id, "agent:main:mine")
    await service.wait(again.run_id)


async def test_without_a_model_the_refusal_names_the_settings(tmp_path: Path, model: ModelServer) -> None:
    async with running_service(tmp_path / "home", model=model, toml="[models.local]\nenabled = false\n") as service:
        refusal = await refused_and_unchanged(service, {"model": ""})
    assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_CONFIGURED")
    for setting in ("OPENAI_API_KEY", "agents.defaults.model", "models.providers", "models.local.enabled"):
        assert setting in refusal.text


@pytest.mark.parametrize(
    ("method", "response"),
    [
        ("AgentService/Agent", run_pb2.AgentResponse),
        ("AgentService/Wait", agent_pb2.WaitResponse),
        ("AgentService/Abort", agent_pb2.AbortResponse),
        ("AgentService/ListRuns", agent_pb2.ListRunsResponse),
        ("SessionService/DeleteSession", session_pb2.DeleteSessionResponse),
    ],
)
@pytest.mark.parametrize("body", [b"\x0a\xff", b"\x0a\x02\xff\xfe"], ids=["cut off", "bad UTF-8"])
async def test_bytes_that_are_no_message_are_refused_with_a_reason(
    service: RunningService, method: str, response: Any, body: bytes
) -> None:
    before = await all_that_is_stored(service)
    call = service.channel.unary_unary(
        f"/laneway.v1.{method}", request_serializer=bytes, response_deserializer=response.FromString
    )
    refusal = await refused(call(body))
    assert (refusal.status, refusal.reason) == (INVALID, "MALFORMED_MESSAGE")
    assert await all_that_is_stored(service) == before


async def test_a_key_that_was_used_for_another_request_is_refused(service: RunningService) -> None:
    first = await service.accept("one", session_key="s", idempotency_key="k")
    await service.wait(first.run_id)
    for change in ({"message": "two"}, {"metadata": {"a": "b"}}, {"session_key": "S"}):
        before = await all_that_is_stored(service)
        refusal = await refused(
            service.accept(**{"message": "one", "session_key": "s", "idempotency_key": "k"} | change)
        )
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED")
        assert await all_that_is_stored(service) == before
    again = await service.accept("one", session_key="s", idempotency_key="k")
    assert again.duplicate
    assert again.run_id == first.run_id


async def test_a_long_text_of_a_caller_does_not_make_a_refusal_too_large(service: RunningService) -> None:
    for model in ("\u00fc" * 256, "%" * 512, "nobody/" + "\u2028" * 160, "\U0001f600" * 128):
        refusal = await refused(service.accept(model=model))
        assert refusal.reason == "MODEL_UNKNOWN"
    refusal = await refused(service.accept(session_key="agent:" + "\u00fc" * 250))
    assert refusal.reason == "SESSION_KEY_MALFORMED"
    refusal = await refused(service.accept(parent_run_id="\u00fc" * 256))
    assert refusal.reason == "RUN_NOT_FOUND"
    assert len(refusal.metadata["run_id"].encode()) <= 512


# --- states of the service and of its runs ---


async def test_a_full_queue_refuses_and_has_room_again_later(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    toml = "[limits]\nmax_queued_runs = 2\n"
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        model.answer(calls_answer(("rec", {})))
        running = await service.accept(session_key="s")
        call = await tool.asked.get()
        waiting = [await service.accept(session_key="s", idempotency_key=f"k{number}") for number in range(2)]
        before = await all_that_is_stored(service)
        refusal = await refused(service.accept(session_key="s", idempotency_key="k2"))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
        assert refusal.retry_after_s is not None
        assert refusal.retry_after_s > 0
        assert await all_that_is_stored(service) == before
        duplicate = await service.accept(session_key="s", idempotency_key="k1")
        assert (duplicate.run_id, duplicate.duplicate) == (waiting[1].run_id, True)
        call.answer.set_result(DONE)
        await service.wait(waiting[1].run_id)
        accepted = await service.accept(session_key="s", idempotency_key="k2")
        assert not accepted.duplicate
        assert (await service.wait(running.run_id)).status == agent_pb2.WAIT_STATUS_OK


@pytest.mark.parametrize(
    ("setting", "limit", "taken"), [("max_queued_runs", 1, "s"), ("max_active_runs", 1, "another session")]
)
async def test_a_tenant_at_its_limit_is_refused_and_no_other_one(
    tmp_path: Path, model: ModelServer, setting: str, limit: int, taken: str
) -> None:
    tool = RecordingTool("rec", hold=True)
    toml = f"[limits.tenant]\n{setting} = {limit}\n"
    async with running_service(tmp_path / "home", model=model, tools=[tool], toml=toml) as service:
        model.answer(calls_answer(("rec", {})))
        running = await service.accept(session_key="s")
        call = await tool.asked.get()
        waiting = [running]
        if setting == "max_queued_runs":
            waiting.append(await service.accept(session_key="s"))
        before = await all_that_is_stored(service)
        refusal = await refused(service.accept(session_key=taken))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TENANT_LIMIT")
        assert f"limits.tenant.{setting}" in refusal.text
        assert refusal.retry_after_s is not None
        assert refusal.retry_after_s > 0
        assert await all_that_is_stored(service) == before
        model.answer(text_answer("theirs"))
        other = await service.agent.Agent(
            agent_pb2.AgentRequest(message="hello", session_key=taken), metadata=((TENANT_KEY, "somebody else"),)
        )
        theirs = await service.agent.Wait(
            agent_pb2.WaitRequest(run_id=other.run_id), metadata=((TENANT_KEY, "somebody else"),)
        )
        assert theirs.status == agent_pb2.WAIT_STATUS_OK
        call.answer.set_result(DONE)
        for run in waiting:
            await service.wait(run.run_id)
        assert (await service.wait((await service.accept(session_key=taken)).run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_a_draining_server_refuses_messages_with_a_hint_when_to_repeat(
    tmp_path: Path, model: ModelServer
) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        running = await service.accept(session_key="s")
        call = await tool.asked.get()
        await service.admin.Drain(admin_pb2.DrainRequest())
        before = await all_that_is_stored(service)
        refusal = await refused(service.accept(idempotency_key="k"))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert refusal.retry_after_s is not None
        assert await all_that_is_stored(service) == before
        call.answer.set_result(DONE)
        assert (await service.wait(running.run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_a_store_that_cannot_commit_refuses_and_the_key_tells_later_what_became_of_the_call(
    tmp_path: Path, model: ModelServer
) -> None:
    gate = FailingGate()
    async with running_service(tmp_path / "home", model=model, seams=Seams(commit_gate=gate)) as service:
        await service.finish(session_key="s")
        before = await all_that_is_stored(service)
        gate.is_failing = True
        refusal = await refused(service.accept(session_key="s", idempotency_key="k"))
        assert (refusal.status, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert refusal.retry_after_s is not None
        refusal = await refused(service.agent.Abort(agent_pb2.AbortRequest(session_key="s")))
        assert refusal.reason == "STORE_UNAVAILABLE"
        gate.is_failing = False
        assert await all_that_is_stored(service) == before
        accepted = await service.accept(session_key="s", idempotency_key="k")
        assert not accepted.duplicate
        assert (await service.wait(accepted.run_id)).status == agent_pb2.WAIT_STATUS_OK


async def test_a_session_that_another_process_writes_is_not_reset(tmp_path: Path, model: ModelServer) -> None:
    home = tmp_path / "home"
    brief = "[session.write_lock]\nacquire_timeout_ms = 1\n"
    async with running_service(home, model=model, toml=brief) as service:
        model.answer(text_answer("hi"))
        await service.wait((await service.accept(session_key="s")).run_id)
        other = SessionLocks(home / "locks", clock=SystemClock(), acquire_timeout_s=10)
        held = await other.acquire("default", "agent:main:s", run_id="elsewhere")
        before = await all_that_is_stored(service)
        for refused_call in (
            service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s", force=True)),
            service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s", force=True)),
        ):
            refusal = await refused(refused_call)
            assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_BUSY")
            assert "run elsewhere" in refusal.metadata["holder"]
        assert await all_that_is_stored(service) == before
        await other.release(held)
        other.close()
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))


async def test_a_session_at_work_is_not_reset_or_deleted_without_force(tmp_path: Path, model: ModelServer) -> None:
    tool = RecordingTool("rec", hold=True)
    async with running_service(tmp_path / "home", model=model, tools=[tool]) as service:
        model.answer(calls_answer(("rec", {})))
        running = await service.accept(session_key="s")
        call = await tool.asked.get()
        before = await all_that_is_stored(service)
        for refused_call in (
            service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s")),
            service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key="s")),
        ):
            refusal = await refused(refused_call)
            assert (refusal.status, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ACTIVE")
            assert refusal.metadata == {"run_id": running.run_id}
        assert await all_that_is_stored(service) == before
        call.answer.set_result(DONE)
        assert (await service.wait(running.run_id)).status == agent_pb2.WAIT_STATUS_OK
        reset = await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="s"))
        assert list(reset.aborted_run_ids) == []
