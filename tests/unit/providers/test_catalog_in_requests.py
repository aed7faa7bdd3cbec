"""What the catalogue knows of Claude and Gemini models, and what their requests say of it: the two must agree."""

import json
from typing import Any

import pytest

from lanewayd.messages import ThinkingLevel, UserMessage
from lanewayd.providers.anthropic.encode import encode_request as encode_anthropic
from lanewayd.providers.anthropic.families import family_of
from lanewayd.providers.catalog import facts_of, listed_models
from lanewayd.providers.gemini.encode import encode_request as encode_gemini
from lanewayd.providers.interface import ModelRequest


def sent(provider: str, model: str, level: ThinkingLevel | None) -> dict[str, Any]:
    facts = facts_of(provider, model)
    assert facts is not None
    request = ModelRequest(model, "", (UserMessage("hi"),), facts=facts, thinking=level)
    body: dict[str, Any] = json.loads((encode_anthropic if provider == "anthropic" else encode_gemini)(request))
    return body


@pytest.mark.parametrize(
    ("model", "level", "thinking", "effort", "max_tokens"),
    [
        ("claude-haiku-4-5", "adaptive", {"type": "enabled", "budget_tokens": 8_192}, None, 40_192),
        ("claude-opus-4-1", "high", {"type": "enabled", "budget_tokens": 16_384}, None, 32_000),
        ("claude-sonnet-4-6", "xhigh", {"type": "adaptive"}, "high", 32_000),
        ("claude-sonnet-4-6", "max", {"type": "adaptive"}, "max", 32_000),
        ("claude-opus-4-7", "xhigh", {"type": "adaptive", "display": "summarized"}, "xhigh", 32_000),
        ("claude-opus-4-7", "adaptive", {"type": "adaptive", "display": "summarized"}, None, 32_000),
        ("claude-fable-5", "minimal", {"type": "adaptive", "display": "summarized"}, "low", 32_000),
        ("claude-opus-5", "off", {"type": "disabled"}, None, 32_000),
        ("claude-3-5-haiku", "high", None, None, 8_192),
    ],
)
def test_claude(model: str, level: str, thinking: dict[str, Any] | None, effort: str | None, max_tokens: int) -> None:
    body = sent("anthropic", model, ThinkingLevel(level))
    assert (body.get("thinking"), body.get("output_config", {}).get("effort")) == (thinking, effort)
    assert body["max_tokens"] == max_tokens


@pytest.mark.parametrize(
    ("model", "level", "said"),
    [
        ("gemini-3-pro-preview", "minimal", "LOW"),
        ("gemini-3-pro-preview", "medium", "HIGH"),
        ("gemini-3-flash-preview", "minimal", "MINIMAL"),
        ("gemini-3.8-flash", "minimal", "LOW"),
        ("gemini-3.8-flash", "max", "HIGH"),
        ("gemini-3.8-flash", "adaptive", None),
        ("gemini-2.5-flash", "max", 24_576),
        ("gemini-2.5-pro", "xhigh", 32_768),
        ("gemini-2.5-pro", "adaptive", -1),
    ],
)
def test_gemini(model: str, level: str, said: str | int | None) -> None:
    thinking = sent("gemini", model, ThinkingLevel(level))["generationConfig"]["thinkingConfig"]
    assert thinking.get("thinkingLevel", thinking.get("thinkingBudget")) == said


def test_catalogue_and_family_agree_on_every_claude_model() -> None:
    for model in listed_models("anthropic"):
        facts, family = facts_of("anthropic", model), family_of(model)
        assert facts is not None
        assert family.most_output == facts.max_output_tokens, model
        assert (family.thinks != "never") == facts.can_think, model
        if facts.can_think:
            assert family.has_xhigh == (ThinkingLevel.XHIGH in facts.thinking_levels), model
            assert family.has_max == (ThinkingLevel.MAX in facts.thinking_levels), model
