"""Several keys of a provider through the whole service: who is asked with which one, and what is told of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.model_answers import failure, text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service

from laneway.v1 import run_pb2, session_pb2

WORK, OWN, NEW = "sk-work-0123456789", "sk-own-0123456789", "sk-new-0123456789"
ORDER = '[auth.order]\nmock = ["work", "default"]\n'
Serving = Callable[[str], AbstractAsyncContextManager[RunningService]]


@pytest.fixture
def serving(tmp_path: Path, model: ModelServer) -> Serving:
    """The service with two keys in files, and `toml` beside."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "work.key").write_text(WORK)
    (home / "own.key").write_text(OWN)
    profiles = 'api_key_file = "own.key"\n[models.providers.mock.profiles.work]\napi_key_file = "work.key"\n'

    @asynccontextmanager
    async def serve(toml: str = "") -> AsyncGenerator[RunningService]:
        async with running_service(home, model=model, toml=profiles + toml) as running:
            yield running

    return serve


def keys_used(model: ModelServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in model.requests]


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_run_whose_key_is_refused_is_answered_with_the_next_and_its_session_stays_with_that(
    model: ModelServer, serving: Serving, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    async with serving(ORDER) as service:
        model.answer(failure(status, {"error": {"message": f"not with {WORK}"}}), text_answer("hello"))
        first = await service.finish(session_key="agent:main:talk")
        await service.finish(session_key="agent:main:talk")
        await service.finish(session_key="agent:main:other")
    assert first.state == run_pb2.RUN_STATE_SUCCEEDED, first.error
    assert keys_used(model) == [WORK, OWN, OWN, OWN]
    told = [record for record in caplog.records if record.message == "a credential is not used for a while"]
    assert [vars(record)["profile"] for record in told] == ["work"]
    assert not any(key in str(vars(record)) for record in caplog.records for key in (WORK, OWN))


async def test_sessions_share_the_keys_and_keep_theirs_until_they_are_reset(
    model: ModelServer, serving: Serving
) -> None:
    async with serving("") as service:
        for session in ("a", "b", "a", "a"):
            await service.finish(session_key=f"agent:main:{session}")
        await service.sessions.ResetSession(session_pb2.ResetSessionRequest(session_key="agent:main:a"))
        await service.finish(session_key="agent:main:a")
    assert keys_used(model) == [OWN, WORK, OWN, OWN, WORK]


async def test_when_all_are_refused_the_error_names_the_profiles_and_shows_no_key(
    model: ModelServer, serving: Serving
) -> None:
    async with serving(ORDER) as service:
        model.answer(*[failure(401, {"error": {"message": f"neither {WORK} nor {OWN}"}})] * 2)
        accepted = await service.accept()
        waited = await service.wait(accepted.run_id)
        events = await service.events(accepted.run_id)
    assert waited.error.reason == "PROVIDER_AUTH"
    assert keys_used(model) == [WORK, OWN]
    assert "default" in waited.error.message
    assert not any(key in str(shown) for shown in (waited, *events) for key in (WORK, OWN))


async def test_a_key_that_was_replaced_in_its_file_is_tried_before_the_next_profile(
    model: ModelServer, serving: Serving
) -> None:
    async with serving(ORDER) as service:
        replaced = asyncio.Event()
        refusal = failure(401, {"error": {"message": "this one is not valid any more"}})
        model.answer(replace(refusal, before=replaced), text_answer("hello"))
        accepted = await service.accept()
        await model.received(1)
        (service.home / "work.key").write_text(NEW)
        replaced.set()
        waited = await service.wait(accepted.run_id)
    assert waited.state == run_pb2.RUN_STATE_SUCCEEDED, waited.error
    assert keys_used(model) == [WORK, NEW]
