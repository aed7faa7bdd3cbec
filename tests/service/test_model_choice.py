"""Which model a message is for, and what is asked of it, as a model service sees it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import field_mask_pb2
from tests.fakes.model_answers import text_answer
from tests.fakes.model_server import ModelServer
from tests.fakes.service import RunningService, running_service
from tests.service.refusals import Refusal, refused

from laneway.v1 import agent_pb2, run_pb2, session_pb2

SETTINGS = """
[agents.defaults]
model = "small"
model_policy.allow = ["big", "mock/free/*", "mock/m", "openai/*"]
[agents.list.open]
model_policy.allow = []
[agents.list.cramped]
model = "mock/any"
context_tokens = 3000
[agents.list.thinker]
model = "mock/thinks"
thinking = "x-high"
model_policy.allow = []

[models.aliases]
small = "mock/s"
big = "mock/Large"

[models.providers.openai]
base_url = "{url}"
api_key_file = "key"

[models.catalog."mock/thinks"]
context_window = 32000
supported_reasoning_efforts = ["low", "high"]
[models.catalog."mock/tiny"]
context_window = 2000
[models.catalog."mock/s"]
context_window = 50000
context_tokens = 7000
"""


@pytest.fixture
async def chosen(tmp_path: Path, model: ModelServer) -> AsyncIterator[RunningService]:
    """A service with aliases, allow-lists and a catalogue of its own."""
    tmp_path.joinpath("key").write_text("sk-1")
    async with running_service(tmp_path, model=model, toml=SETTINGS.replace("{url}", model.base_url)) as service:
        yield service


async def asked(service: RunningService, server: ModelServer, **fields: Any) -> dict[str, Any]:
    """What the model service is asked for a message with these fields; the run succeeds and names the same model."""
    fields.setdefault("model", "")
    server.answer(text_answer("ok"))
    ended = await service.finish("hello", **fields)
    assert ended.state == run_pb2.RUN_STATE_SUCCEEDED, ended.error
    return server.requests[-1].json


async def refusal(service: RunningService, **fields: Any) -> Refusal:
    return await refused(service.accept("hello", **fields))


@pytest.mark.parametrize(
    ("named", "agent_id", "sent", "run_model"),
    [
        ("", "", "s", "mock/s"),
        ("BIG", "", "Large", "mock/Large"),
        ("mock/large", "", "large", "mock/large"),
        ("mock/free/x", "", "free/x", "mock/free/x"),
        ("GPT-5-mini", "", "GPT-5-mini", "openai/GPT-5-mini"),
        ("Mock/anything/at all", "open", "anything/at all", "mock/anything/at all"),
    ],
)
async def test_names_that_stand_for_a_model(
    chosen: RunningService, model: ModelServer, named: str, agent_id: str, sent: str, run_model: str
) -> None:
    request = await asked(chosen, model, model=named, agent_id=agent_id)
    assert request["model"] == sent
    [run] = (await chosen.agent.ListRuns(agent_pb2.ListRunsRequest())).runs
    assert run.model == run_model


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("mock/other", "agents.defaults.model_policy.allow"),
        ("anything", "not of the form provider/model and no alias"),
        ("nobody/m", "unknown provider"),
    ],
)
async def test_a_model_that_may_not_be_named_is_refused_before_any_call(
    chosen: RunningService, model: ModelServer, named: str, words: str
) -> None:
    answer = await refusal(chosen, model=named)
    assert (answer.reason, answer.metadata) == ("MODEL_UNKNOWN", {"field": "model"})
    assert words in answer.text
    assert not model.requests


async def test_too_small_a_window_refuses_before_any_call(chosen: RunningService, model: ModelServer) -> None:
    for fields in ({"agent_id": "cramped", "model": ""}, {"agent_id": "open", "model": "mock/tiny"}):
        answer = await refusal(chosen, **fields)
        assert answer.reason == "MODEL_NOT_CONFIGURED"
        assert "at least" in answer.text
        assert "context_tokens" in answer.text
    assert not model.requests


async def test_a_small_window_is_worth_a_warning(
    chosen: RunningService, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    await asked(chosen, model)
    assert [record.__dict__["model"] for record in caplog.records if "little room" in record.message] == ["mock/s"]


LEVEL = agent_pb2.ThinkingLevel


@pytest.mark.parametrize(
    ("agent_id", "named", "thinking", "effort"),
    [
        ("thinker", "mock/thinks", 0, "high"),
        ("thinker", "mock/unheard-of", 0, "high"),
        ("thinker", "mock/thinks", LEVEL.THINKING_LEVEL_LOW, "low"),
        ("thinker", "mock/thinks", LEVEL.THINKING_LEVEL_OFF, None),
        ("open", "mock/thinks", 0, "low"),
        ("open", "mock/unheard-of", 0, None),
        ("open", "mock/unheard-of", LEVEL.THINKING_LEVEL_LOW, "low"),
        ("open", "mock/unheard-of", LEVEL.THINKING_LEVEL_ULTRA, "high"),
        ("open", "openai/gpt-4.1", 0, None),
    ],
)
async def test_how_much_a_model_is_asked_to_think(
    chosen: RunningService, model: ModelServer, agent_id: str, named: str, thinking: Any, effort: str | None
) -> None:
    """The agent `thinker` says xhigh, which one model does not have and the other, unknown one may have."""
    request = await asked(chosen, model, agent_id=agent_id, model=named, thinking=thinking)
    assert request.get("reasoning_effort") == effort


@pytest.mark.parametrize("named", ["mock/thinks", ""])
async def test_a_level_that_the_model_does_not_have_is_refused_with_those_it_has(
    chosen: RunningService, model: ModelServer, named: str
) -> None:
    answer = await refusal(chosen, model=named, agent_id="thinker", thinking=LEVEL.THINKING_LEVEL_MEDIUM)
    assert (answer.reason, answer.metadata) == ("FIELD_INVALID", {"field": "thinking"})
    assert answer.text.endswith("valid: off, minimal, low, high")
    assert not model.requests


async def test_a_session_keeps_its_model_and_level_whatever_the_settings_name(
    tmp_path: Path, model: ModelServer
) -> None:
    home = tmp_path / "home"
    async with running_service(home, model=model) as service:
        await service.finish("hello", session_key="pinned", model="mock/first")
        pin = session_pb2.Session(session_key="pinned", model="mock/pinned", thinking=LEVEL.THINKING_LEVEL_HIGH)
        mask = field_mask_pb2.FieldMask(paths=["model", "thinking"])
        await service.sessions.UpdateSession(session_pb2.UpdateSessionRequest(session=pin, update_mask=mask))
    async with running_service(home, model=model, toml="[models.local]\nenabled = false\n") as service:
        request = await asked(service, model, session_key="pinned")
        assert (request["model"], request["reasoning_effort"]) == ("pinned", "high")
        request = await asked(service, model, session_key="pinned", model="mock/own")
        assert (request["model"], request["reasoning_effort"]) == ("own", "high")
        request = await asked(service, model, session_key="pinned", thinking=LEVEL.THINKING_LEVEL_LOW)
        assert (request["model"], request["reasoning_effort"]) == ("pinned", "low")
        assert (await refusal(service, session_key="another", model="")).reason == "MODEL_NOT_CONFIGURED"
    allow = 'model_policy.allow = ["mock/other"]'
    async with running_service(home, model=model, toml=f"[agents.defaults]\n{allow}\n") as service:
        answer = await refusal(service, session_key="pinned", model="")
        assert answer.reason == "MODEL_NOT_CONFIGURED"
        assert "agents.defaults.model_policy.allow" in answer.text
