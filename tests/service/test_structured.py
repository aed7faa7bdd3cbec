"""Answers that fit a schema, through the whole service."""

import json
from pathlib import Path

import pytest
from tests.fakes.model_answers import calls_answer, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.agreement import get_run, read_ended

from laneway.v1 import event_pb2, run_pb2, session_pb2

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
PARIS = {"city": "Paris", "people": 2_100_000}
SESSION = "structured"
KEY = f"agent:main:{SESSION}"


async def ask(service: RunningService, **fields: object) -> str:
    fields.setdefault("response_schema", SCHEMA)
    return (await service.accept("Which city?", session_key=SESSION, **fields)).run_id


@pytest.mark.parametrize("frame", ["{}", "Here it is:\n```json\n{}\n```\n"], ids=["plain", "fenced"])
async def test_the_answer_comes_as_an_object_and_as_text(
    service: RunningService, model: ModelServer, frame: str
) -> None:
    text = frame.replace("{}", json.dumps(PARIS))
    model.answer(text_answer(text))
    reading = await read_ended(service, await ask(service))
    assert reading.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert dict(reading.run.output) == dict(reading.waited.output) == PARIS
    assert [payload.text for payload in reading.run.payloads] == [text]
    system = model.requests[0].json["messages"][0]["content"]
    assert json.loads(system.splitlines()[-1]) == SCHEMA


async def test_a_run_without_a_schema_has_no_output(service: RunningService, model: ModelServer) -> None:
    model.answer(text_answer(json.dumps(PARIS)))
    reading = await read_ended(service, (await service.accept("hi")).run_id)
    assert not reading.run.HasField("output")
    assert not reading.waited.HasField("output")


async def test_a_wrong_answer_is_void_for_watchers_and_the_transcript_and_its_tokens_count(
    service: RunningService, model: ModelServer
) -> None:
    model.answer(calls_answer(("exec", {"command": "echo hi"}), usage=(10, 1)))
    model.answer(text_answer("It is ", "Paris", usage=(20, 2)))
    model.answer(text_answer(json.dumps(PARIS), usage=(30, 3)))
    reading = await read_ended(service, await ask(service))
    assert dict(reading.run.output) == PARIS
    assert (reading.run.usage.input_tokens, reading.run.usage.output_tokens) == (60, 6)
    [retry] = reading.phases(event_pb2.LIFECYCLE_PHASE_RETRY)
    assert (retry.error.reason, retry.attempt) == ("OUTPUT_SCHEMA_MISMATCH", 2)
    assert "not one JSON object" in retry.error.message
    shown = [event.assistant for event in reading.of_kind("assistant")]
    assert "".join(delta.delta for delta in shown if delta.message_id == retry.void_message_id) == "It is Paris"
    entries = await service.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key=KEY))
    kinds = [entry.WhichOneof("body") for entry in entries.entries]
    assert kinds == ["user", "assistant", "tool_result", "assistant"]
    correction = model.requests[-1].json["messages"][-1]
    assert correction["role"] == "user"
    assert "cannot be used" in correction["content"]


async def test_the_next_run_of_the_session_is_not_bound_to_the_schema(
    service: RunningService, model: ModelServer
) -> None:
    model.answer(text_answer("no"), text_answer(json.dumps(PARIS)), text_answer("As you like."))
    await read_ended(service, await ask(service))
    reading = await read_ended(service, (await service.accept("Thank you", session_key=SESSION)).run_id)
    assert [payload.text for payload in reading.run.payloads] == ["As you like."]
    roles = [message["role"] for message in model.requests[-1].json["messages"]]
    assert [role for role in roles if role != "system"] == ["user", "assistant", "user"]


async def test_a_large_answer_is_in_the_text_only(service: RunningService, model: ModelServer) -> None:
    numbers = json.dumps({"numbers": [1] * 60_000})
    model.answer(text_answer(numbers))
    reading = await read_ended(service, await ask(service, response_schema={"type": "object"}))
    assert reading.run.state == run_pb2.RUN_STATE_SUCCEEDED
    assert not reading.run.HasField("output")
    assert reading.run.payloads[0].text == numbers


async def test_the_schema_and_the_output_outlive_a_restart(tmp_path: Path, model: ModelServer) -> None:
    lane = "[lanes.held]\nmax_concurrent = 0\n"
    async with running_service(tmp_path, model=model, toml=lane) as service:
        run_id = await ask(service, lane="held")
    model.answer(text_answer("no"), text_answer(json.dumps(PARIS)))
    async with running_service(tmp_path, model=model) as service:
        assert dict((await service.wait(run_id)).output) == PARIS
    async with running_service(tmp_path, model=model) as service:
        assert dict((await get_run(service, run_id)).output) == PARIS
        await service.sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_key=KEY))
        assert not (await get_run(service, run_id)).HasField("output")


async def test_a_schema_cannot_be_used_again_under_the_key_of_another(service: RunningService) -> None:
    key = "one key"
    await ask(service, idempotency_key=key)
    again = await service.accept("Which city?", session_key=SESSION, idempotency_key=key, response_schema=SCHEMA)
    assert again.duplicate
