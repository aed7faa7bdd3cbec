"""The model that answered, where its service names another than the one asked for (R-4.18); in every language."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.observing import observe
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_answers import Answer, event
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service

from laneway.v1 import session_pb2


def named(api: str, answer: Answer, model: str) -> Answer:
    """`answer` as a service sends it that says which model it comes from."""
    lines = b"".join(step for step in answer.steps if isinstance(step, bytes)).splitlines()
    said: list[bytes] = []
    for line in filter(None, (line.removeprefix(b"data: ") for line in lines)):
        if line == b"[DONE]":
            said.append(b"data: [DONE]\n\n")
            continue
        value = _named(api, json.loads(line), model)
        said.append(json.dumps(value).encode() + b"\n" if api == "ollama" else event(**value))
    return Answer(said, headers=answer.headers)


def _named(api: str, value: dict[str, Any], model: str) -> dict[str, Any]:
    if api == "gemini":
        return {**value, "modelVersion": model}
    for holder in ("message", "response"):
        if api in ("anthropic", "openai_responses") and holder in value:
            return {**value, holder: {**value[holder], "model": model}}
    return value if api in ("anthropic", "openai_responses") else {**value, "model": model}


@pytest.fixture(params=sorted(LANGUAGES))
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def speaking(tmp_path: Path, model: ModelServer, api: str) -> AsyncIterator[RunningService]:
    """A service whose provider `acme` speaks `api`."""
    base_url = model.base_url.removesuffix("/v1")
    toml = f'[models.providers.acme]\napi = "{api}"\nbase_url = "{base_url}"\nself_hosted = true\n'
    async with running_service(tmp_path / "home", toml=toml) as service:
        yield service


async def answered_by(service: RunningService, session_key: str = "") -> session_pb2.AssistantEntry:
    """The transcript's entry of one run's answer."""
    accepted = await service.accept("hello", model="acme/asked", session_key=session_key)
    (answer,) = (await observe(service, accepted.run_id)).answers
    assert answer.model == "asked"
    return answer


async def test_another_model_that_a_service_names_is_kept_beside_the_one_asked(
    speaking: RunningService, model: ModelServer, api: str
) -> None:
    for said, kept in [("asked-2026-11-30", "asked-2026-11-30"), ("asked", ""), (" ", "")]:
        model.answer(named(api, LANGUAGES[api].text("hi"), said))
        assert (await answered_by(speaking)).response_model == kept


async def test_an_export_carries_it_and_an_import_brings_it_back(
    speaking: RunningService, model: ModelServer, api: str
) -> None:
    model.answer(named(api, LANGUAGES[api].text("hi"), "routed"))
    await answered_by(speaking, session_key="s")
    lines = [
        response.line
        async for response in speaking.sessions.ExportSession(session_pb2.ExportSessionRequest(session_key="s"))
    ]
    keys = ["copy", *[""] * (len(lines) - 1)]
    imported = [
        session_pb2.ImportSessionRequest(session_key=key, line=line) for key, line in zip(keys, lines, strict=True)
    ]
    await speaking.sessions.ImportSession(imported)
    entries = await speaking.sessions.ListEntries(session_pb2.ListEntriesRequest(session_key="copy"))
    assert [entry.assistant.response_model for entry in entries.entries if entry.HasField("assistant")] == ["routed"]
