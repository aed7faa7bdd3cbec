"""What a run asks of its model arrives at the service in the fields of its language; through the whole service."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.languages import LANGUAGES
from tests.fakes.model_server import ModelServer
from tests.fakes.service import running_service

WISHES: dict[str, Any] = {"max_output_tokens": 100, "temperature": 0.5, "seed": 7}
BUDGET = {"type": "enabled", "budget_tokens": 8_192}
GEMINI_HIGH = {"maxOutputTokens": 32_000, "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OLLAMA_OPTIONS = {"num_ctx": 200_000, "num_predict": 90, "temperature": 0.5, "seed": 7, "num_gpu": 1}
ANSWER = '{"city": "Paris"}'


@pytest.mark.parametrize(
    ("api", "provider", "name", "fields"),
    [
        ("openai_chat", "acme", "m", {"max_tokens": 100, "temperature": 0.5, "seed": 7}),
        ("openai_chat", "openai", "gpt-4o", {"max_completion_tokens": 100, "temperature": 0.5, "seed": 7}),
        ("openai_chat", "openai", "gpt-5.6", {"max_completion_tokens": 100, "seed": 7, "reasoning_effort": "none"}),
        ("openai_responses", "acme", "m", {"max_output_tokens": 100, "temperature": 0.5}),
        ("openai_responses", "openai", "gpt-5.6", {"max_output_tokens": 100}),
        ("ollama", "acme", "m", {"options": {"num_predict": 100, "temperature": 0.5, "seed": 7}}),
        ("anthropic", "acme", "m", {"max_tokens": 100, "temperature": 0.5}),
        ("anthropic", "anthropic", "claude-haiku-4-5", {"max_tokens": 8_292, "thinking": BUDGET}),
        ("anthropic", "anthropic", "claude-opus-4-6", {"max_tokens": 100, "thinking": {"type": "adaptive"}}),
        ("gemini", "gemini", "m", {"generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "seed": 7}}),
    ],
)
async def test_limits_sampling_and_seed_arrive_as_the_service_takes_them(
    tmp_path: Path, model: ModelServer, api: str, provider: str, name: str, fields: dict[str, Any]
) -> None:
    async with speaking(tmp_path, model, api, provider) as service:
        model.answer(LANGUAGES[api].text("hi"))
        ended = await service.finish(model=f"{provider}/{name}", **WISHES)
    assert ended.payloads[0].text == "hi"
    body = model.requests[0].json
    limits = ("max_tokens", "max_completion_tokens", "max_output_tokens", "options", "generationConfig")
    others = ("temperature", "seed", "reasoning_effort", "thinking")
    assert {field: body[field] for field in (*limits, *others) if field in body} == fields


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
async def test_openai_gets_one_key_for_all_prompts_of_a_session(tmp_path: Path, model: ModelServer, api: str) -> None:
    keys = []
    async with speaking(tmp_path, model, api, "openai") as service:
        for session_key in ("one", "one", "two"):
            model.answer(LANGUAGES[api].text("hi"))
            await service.finish(model="openai/gpt-5.2", session_key=session_key)
            keys.append(model.requests[-1].json["prompt_cache_key"])
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("retention", "fields"),
    [("none", set()), ("short", {"prompt_cache_key"}), ("long", {"prompt_cache_key", "prompt_cache_retention"})],
)
async def test_an_agents_setting_says_how_long_a_cache_lives(
    tmp_path: Path, model: ModelServer, retention: str, fields: set[str]
) -> None:
    more = f'[agents.defaults]\ncache_retention = "{retention}"\n'
    async with speaking(tmp_path, model, "openai_chat", "openai", more) as service:
        model.answer(LANGUAGES["openai_chat"].text("hi"))
        await service.finish(model="openai/gpt-5.2")
    assert {field for field in model.requests[0].json if field.startswith("prompt_cache")} == fields


@pytest.mark.parametrize(
    ("retention", "mark"),
    [("none", None), ("short", {"type": "ephemeral"}), ("long", {"type": "ephemeral", "ttl": "1h"})],
)
async def test_anthropic_gets_marks_that_live_as_long(
    tmp_path: Path, model: ModelServer, retention: str, mark: dict[str, str] | None
) -> None:
    more = f'[agents.defaults]\ncache_retention = "{retention}"\n'
    async with speaking(tmp_path, model, "anthropic", "anthropic", more) as service:
        model.answer(LANGUAGES["anthropic"].text("hi"))
        await service.finish(model="anthropic/claude-haiku-4-5")
    assert model.requests[0].json["messages"][-1]["content"][-1].get("cache_control") == mark


@pytest.mark.parametrize(
    ("api", "provider", "name", "thought"),
    [
        ("openai_chat", "acme", "m", {"reasoning_effort": "high"}),
        ("openai_chat", "openai", "gpt-5.1", {"reasoning_effort": "high"}),
        ("openai_responses", "openai", "gpt-5.6", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("ollama", "acme", "m", {"think": "high"}),
        ("anthropic", "anthropic", "claude-opus-4-6", {"output_config": {"effort": "high"}}),
        ("gemini", "gemini", "gemini-3.8-flash", {"generationConfig": GEMINI_HIGH}),
    ],
)
async def test_a_level_of_thinking_arrives_in_the_words_of_the_language(
    tmp_path: Path, model: ModelServer, api: str, provider: str, name: str, thought: dict[str, Any]
) -> None:
    more = '[agents.defaults]\nthinking = "high"\n'
    async with speaking(tmp_path, model, api, provider, more) as service:
        model.answer(LANGUAGES[api].text("hi"))
        await service.finish(model=f"{provider}/{name}")
    body = model.requests[0].json
    words = ("reasoning_effort", "reasoning", "think", "output_config", "generationConfig")
    assert {field: body[field] for field in words if field in body} == thought


@pytest.mark.parametrize(
    ("api", "provider", "name", "own"),
    [
        ("openai_chat", "acme", "m", {"max_tokens": 90, "temperature": 0.5, "seed": 7}),
        ("openai_responses", "acme", "m", {"max_output_tokens": 90, "temperature": 0.5}),
        ("ollama", "acme", "m", {"options": OLLAMA_OPTIONS}),
        ("anthropic", "acme", "m", {"max_tokens": 90, "temperature": 0.5}),
        (
            "gemini",
            "gemini",
            "m",
            {"generationConfig": {"maxOutputTokens": 90, "temperature": 0.5, "seed": 7, "topK": 3}},
        ),
    ],
)
async def test_params_of_the_settings_are_sent_where_the_run_says_nothing(
    tmp_path: Path, model: ModelServer, api: str, provider: str, name: str, own: dict[str, Any]
) -> None:
    more = f"""
        [agents.defaults.params]
        temperature = 0.1
        top_p = 0.1
        seed = 7
        [models.catalog."{provider}/{name}".params]
        temperature = 0.2
        max_output_tokens = 90
        top_p = 0.9
        route = {{order = ["a", "b"]}}
        [models.catalog."{provider}/{name}".params.options]
        num_gpu = 1
        [models.catalog."{provider}/{name}".params.generationConfig]
        topK = 3
        temperature = 1
        [agents.list.main.params]
        route = {{only = "c"}}
    """
    async with speaking(tmp_path, model, api, provider, more) as service:
        model.answer(LANGUAGES[api].text("hi"))
        ended = await service.finish(model=f"{provider}/{name}", temperature=0.5)
    assert ended.payloads[0].text == "hi"
    body = model.requests[0].json
    assert (body["top_p"], body["route"]) == (0.9, {"only": "c"})
    assert {field: body[field] for field in own} == own


async def test_another_service_gets_no_key(tmp_path: Path, model: ModelServer) -> None:
    async with speaking(tmp_path, model, "openai_chat", "acme") as service:
        model.answer(LANGUAGES["openai_chat"].text("hi"))
        await service.finish(model="acme/m", session_key="one")
    assert "prompt_cache_key" not in model.requests[0].json


@pytest.mark.parametrize(
    ("api", "schema_of"),
    [
        ("openai_chat", lambda body: body["response_format"]["json_schema"]),
        ("openai_responses", lambda body: body["text"]["format"]),
    ],
)
async def test_openai_holds_the_answer_to_its_schema_itself(
    tmp_path: Path, model: ModelServer, api: str, schema_of: Any
) -> None:
    async with speaking(tmp_path, model, api, "openai") as service:
        model.answer(LANGUAGES[api].text(ANSWER))
        ended = await service.finish(model="openai/gpt-5.2", response_schema=SCHEMA)
    assert dict(ended.output) == {"city": "Paris"}
    sent = schema_of(model.requests[0].json)
    assert (sent["name"], sent["schema"], sent["strict"]) == ("answer", SCHEMA, True)


@pytest.mark.parametrize(
    ("api", "provider", "name", "schema_of"),
    [
        ("anthropic", "anthropic", "claude-haiku-4-5", lambda body: body["output_config"]["format"]["schema"]),
        ("gemini", "gemini", "gemini-3.8-flash", lambda body: body["generationConfig"]["responseSchema"]),
    ],
)
async def test_claude_and_gemini_models_are_held_to_the_schema_by_their_services(
    tmp_path: Path, model: ModelServer, api: str, provider: str, name: str, schema_of: Any
) -> None:
    async with speaking(tmp_path, model, api, provider) as service:
        model.answer(LANGUAGES[api].text(ANSWER))
        ended = await service.finish(model=f"{provider}/{name}", response_schema=SCHEMA)
    assert dict(ended.output) == {"city": "Paris"}
    body = model.requests[0].json
    assert schema_of(body)["required"] == ["city"]
    assert "must be one JSON object" not in str(body)


def speaking(home: Path, model: ModelServer, api: str, provider: str, more: str = "") -> Any:
    """The service with one provider of this name and language."""
    key = home / "key"
    key.write_text("secret")
    base_url = model.base_url.removesuffix("/v1")
    toml = f'[models.providers.{provider}]\napi = "{api}"\nbase_url = "{base_url}"\napi_key_file = "{key}"\n'
    return running_service(home / "home", toml=toml + more)
