"""What OpenAI's models refuse or need, by their names."""

import pytest

from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_models import cache_fields, effort_beside_tools, holds_schema, takes_temperature


@pytest.mark.parametrize(
    ("model", "effort", "takes"),
    [
        ("gpt-5.6", None, False),
        ("gpt-5.6-terra", "none", False),
        ("openai/gpt-5", None, False),
        ("gpt-5-mini", "minimal", False),
        ("o4-mini", None, False),
        ("gpt-5-chat-latest", None, True),
        ("gpt-5.5", None, False),
        ("gpt-5.5", "none", True),
        ("gpt-6-sol", "low", False),
        ("gpt-6-sol", "none", True),
        ("gpt-5.2", None, True),
        ("gpt-5.2", "none", True),
        ("gpt-5.2", "high", False),
        ("gpt-5.1-codex", "low", False),
        ("gpt-4o", None, True),
        ("gpt-oss-120b", "high", True),
        ("grok-4", "high", True),
    ],
)
def test_models_that_reason_take_no_temperature(model: str, effort: str | None, takes: bool) -> None:
    assert takes_temperature(model, effort) is takes


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gpt-5.6", "high", "none"),
        ("gpt-5.6-luna", None, "none"),
        ("gpt-5.2", "high", None),
        ("gpt-5.4-mini", "none", None),
        ("gpt-6-sol", "high", "none"),
        ("gpt-6-astra", "high", None),
        ("gpt-5.1", "high", "high"),
        ("gpt-5", "low", "low"),
        ("o4-mini", None, None),
        ("gpt-4o", None, None),
    ],
)
def test_beside_tools_the_newer_ones_do_not_think_in_chat_completions(
    model: str, effort: str | None, sent: str | None
) -> None:
    assert effort_beside_tools(model, effort) == sent


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1", "gpt-5", "o3", "openai/gpt-5.2", "my-own"])
def test_models_since_gpt_4o_hold_a_schema(model: str) -> None:
    assert holds_schema(model)


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "o1-mini", "chatgpt-4o-latest"])
def test_older_ones_hold_none(model: str) -> None:
    assert not holds_schema(model)


@pytest.mark.parametrize(
    ("model", "key", "retention", "fields"),
    [
        ("gpt-5.2", "k", "short", {"prompt_cache_key": "k"}),
        ("gpt-5.2", "k", "long", {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
        ("gpt-4.1", "k", "long", {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
        ("gpt-6-astra", "k", "long", {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
        ("gpt-4o", "k", "long", {"prompt_cache_key": "k"}),
        ("gpt-5-mini", "k", "long", {"prompt_cache_key": "k"}),
        ("gpt-5.2", "k", "none", {}),
        ("gpt-5.2", "k", "forever", {}),
        ("gpt-5.2", "", "long", {}),
    ],
)
def test_the_cache_is_given_a_key_and_long_retention_only_where_it_is_wished(
    model: str, key: str, retention: str, fields: dict[str, str]
) -> None:
    assert cache_fields(ModelRequest(model, "", (), cache_key=key, cache_retention=retention)) == fields


def test_a_key_that_is_too_long_becomes_another_one_that_is_always_the_same() -> None:
    keys = [
        cache_fields(ModelRequest("m", "", (), cache_key="s" * size))["prompt_cache_key"] for size in (64, 65, 65, 66)
    ]
    assert [len(key) for key in keys] == [64] * 4
    assert keys[0] == "s" * 64
    assert keys[1] == keys[2] != keys[3]
