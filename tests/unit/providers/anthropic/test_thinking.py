"""Levels of thinking in a Messages request: spec 04, 3.2."""

import json
from typing import Any

import pytest

from lanewayd.messages import (
    AssistantMessage,
    Message,
    ModelFacts,
    Reasoning,
    StopReason,
    Text,
    ThinkingLevel,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.anthropic.answer import THINKING
from lanewayd.providers.anthropic.encode import encode_request
from lanewayd.providers.interface import ModelRequest

BUDGET, ADAPTIVE, FULL, ALWAYS = "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-5-5"
OFF, MINIMAL, LOW, MEDIUM, HIGH = (ThinkingLevel(word) for word in ("off", "minimal", "low", "medium", "high"))
XHIGH, MAX, PROVIDER, ULTRA = (ThinkingLevel(word) for word in ("xhigh", "max", "adaptive", "ultra"))


def sent(model: str, level: ThinkingLevel | None, facts: ModelFacts | None = None, **more: Any) -> dict[str, Any]:
    messages: tuple[Message, ...] = more.pop("messages", (UserMessage("hi"),))
    request = ModelRequest(model, "", messages, thinking=level, facts=facts or ModelFacts(), **more)
    body: dict[str, Any] = json.loads(encode_request(request))
    return body


@pytest.mark.parametrize(
    ("level", "with_max", "with_xhigh"),
    [
        (MINIMAL, "low", "low"),
        (LOW, "low", "low"),
        (MEDIUM, "medium", "medium"),
        (HIGH, "high", "high"),
        (XHIGH, "high", "xhigh"),
        (MAX, "max", "max"),
        (ULTRA, "max", "max"),
        (PROVIDER, None, None),
    ],
)
def test_adaptive_models_get_an_effort(level: ThinkingLevel, with_max: str | None, with_xhigh: str | None) -> None:
    for model, effort, display in (
        (ADAPTIVE, with_max, {}),
        (FULL, with_xhigh, {"display": "summarized"}),
        (ALWAYS, with_xhigh, {"display": "summarized"}),
    ):
        body = sent(model, level)
        assert body["thinking"] == {"type": "adaptive", **display}
        assert body.get("output_config", {}).get("effort") == effort
        assert body["max_tokens"] == 32_000


def test_max_is_high_where_neither_max_nor_xhigh_is_native() -> None:
    facts = ModelFacts(thinking_levels=(LOW, MEDIUM, HIGH))
    for level in (XHIGH, MAX, ULTRA):
        assert sent(ADAPTIVE, level, facts)["output_config"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        (ADAPTIVE, None, None),
        (FULL, None, None),
        ("claude-opus-5", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", {"type": "between_tools"}, None),
        (ALWAYS, None, "low"),
        (BUDGET, {"type": "disabled"}, None),
        ("kimi-k2", {"type": "disabled"}, None),
        ("claude-3-5-haiku-20241022", None, None),
    ],
)
def test_off_is_said_as_the_model_takes_it(model: str, thinking: dict[str, str] | None, effort: str | None) -> None:
    body = sent(model, OFF)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort


@pytest.mark.parametrize(
    ("level", "budget"),
    [
        (MINIMAL, 1_024),
        (LOW, 2_048),
        (MEDIUM, 8_192),
        (PROVIDER, 8_192),
        (HIGH, 16_384),
        (XHIGH, 16_384),
        (MAX, 16_384),
        (ULTRA, 16_384),
    ],
)
def test_budget_models_get_a_budget_beside_the_answer(level: ThinkingLevel, budget: int) -> None:
    for model, cap in ((BUDGET, 32_000), ("kimi-k2", 8_192)):
        body = sent(model, level)
        assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
        assert body["max_tokens"] == cap + budget
        assert "output_config" not in body


@pytest.mark.parametrize(
    ("most", "asked", "max_tokens", "budget"),
    [
        (64_000, 1_000, 17_384, 16_384),
        (20_000, 0, 20_000, 16_384),
        (17_408, 0, 17_408, 16_384),
        (17_407, 0, 17_407, 16_383),
        (16_384, 16_384, 16_384, 15_360),
        (2_048, 0, 2_048, 1_024),
        (2_047, 0, 2_047, None),
    ],
)
def test_a_budget_leaves_the_answer_room(most: int, asked: int, max_tokens: int, budget: int | None) -> None:
    body = sent(BUDGET, HIGH, ModelFacts(max_output_tokens=most), max_output_tokens=asked)
    assert body["max_tokens"] == max_tokens
    assert body["thinking"].get("budget_tokens") == budget
    assert (body["thinking"]["type"] == "enabled") == (budget is not None)


@pytest.mark.parametrize(
    ("model", "facts", "asked", "expected"),
    [
        (ADAPTIVE, ModelFacts(), 0, 32_000),
        (ADAPTIVE, ModelFacts(max_output_tokens=8_000), 0, 8_000),
        (ADAPTIVE, ModelFacts(max_output_tokens=128_000), 0, 32_000),
        (ADAPTIVE, ModelFacts(), 50_000, 50_000),
        (ADAPTIVE, ModelFacts(max_output_tokens=8_000), 50_000, 8_000),
        ("claude-3-haiku-20240307", ModelFacts(), 0, 4_096),
        ("claude-3-haiku-20240307", ModelFacts(), 50_000, 4_096),
        ("kimi-k2", ModelFacts(), 0, 8_192),
        ("kimi-k2", ModelFacts(), 50_000, 50_000),
    ],
)
def test_the_answer_may_be_as_long_as_run_and_model_say(
    model: str, facts: ModelFacts, asked: int, expected: int
) -> None:
    for level in (None, OFF):
        assert sent(model, level, facts, max_output_tokens=asked)["max_tokens"] == expected


def test_nothing_is_said_without_a_level_or_of_a_model_that_cannot_think() -> None:
    for body in (
        sent(FULL, None),
        sent(BUDGET, None),
        sent("claude-3-opus-latest", HIGH),
        sent(FULL, HIGH, ModelFacts(is_known=True)),
        sent(BUDGET, OFF, ModelFacts(is_known=True)),
    ):
        assert not {"thinking", "output_config"} & body.keys()
    for facts in (
        ModelFacts(is_known=True, can_think=True),
        ModelFacts(is_known=True, thinking_levels=(LOW, HIGH)),
        ModelFacts(is_known=True, effort_map={"high": "high"}),
    ):
        assert sent(FULL, HIGH, facts)["output_config"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("levels", "asked", "effort"),
    [
        ((LOW, HIGH), MINIMAL, "low"),
        ((MEDIUM, HIGH), MINIMAL, "medium"),
        ((MEDIUM, HIGH), LOW, "medium"),
        ((LOW, HIGH), MEDIUM, "low"),
        ((LOW, MEDIUM), HIGH, "medium"),
        ((LOW, MEDIUM, HIGH, XHIGH), MAX, "xhigh"),
        ((LOW, MEDIUM, HIGH, XHIGH), XHIGH, "xhigh"),
        ((MEDIUM,), PROVIDER, "medium"),
        ((MEDIUM, PROVIDER), PROVIDER, None),
    ],
)
def test_the_levels_of_the_settings_count_before_those_of_the_family(
    levels: tuple[ThinkingLevel, ...], asked: ThinkingLevel, effort: str | None
) -> None:
    body = sent(ADAPTIVE, asked, ModelFacts(thinking_levels=levels))
    assert body["thinking"] == {"type": "adaptive"}
    assert body.get("output_config", {}).get("effort") == effort


def test_the_words_of_the_settings_are_sent_as_they_stand() -> None:
    facts = ModelFacts(effort_map={"high": "HiGh", "low": None, "medium": "4000"})
    assert sent(ADAPTIVE, HIGH, facts)["output_config"] == {"effort": "HiGh"}
    assert "output_config" not in sent(ADAPTIVE, LOW, facts)
    assert "thinking" not in sent(BUDGET, LOW, facts)
    assert sent(BUDGET, MEDIUM, facts)["thinking"] == {"type": "enabled", "budget_tokens": 4_000}
    assert sent(BUDGET, HIGH, facts)["thinking"] == {"type": "enabled", "budget_tokens": 16_384}


@pytest.mark.parametrize(
    ("model", "level", "asked", "expected"),
    [
        (BUDGET, None, 0.5, 0.5),
        (BUDGET, OFF, 0, 0),
        (BUDGET, None, 1.7, 1.0),
        (BUDGET, LOW, 0.5, None),
        (ADAPTIVE, None, 0.5, 0.5),
        (ADAPTIVE, OFF, 0.5, 0.5),
        (ADAPTIVE, PROVIDER, 0.5, None),
        (FULL, None, 0.5, None),
        (FULL, OFF, 0.5, None),
        ("kimi-k2", None, 0.5, 0.5),
        (BUDGET, None, None, None),
    ],
)
def test_a_temperature_is_sent_to_models_that_take_one_and_do_not_think(
    model: str, level: ThinkingLevel | None, asked: float | None, expected: float | None
) -> None:
    assert sent(model, level, temperature=asked).get("temperature") == expected


def test_a_seed_is_left_out() -> None:
    assert sent(BUDGET, None, seed=7) == sent(BUDGET, None)


def in_a_loop(*thoughts: Reasoning, model: str = BUDGET, after: tuple[Message, ...] = ()) -> tuple[Message, ...]:
    call = AssistantMessage((*thoughts, ToolCall("c", "t", "{}")), "a", model, StopReason.TOOL_USE)
    return (UserMessage("go"), call, ToolResultMessage("c", "t", "r"), *after)


def test_a_budget_model_goes_on_without_thinking_with_what_was_begun_without() -> None:
    signed = Reasoning("hm", THINKING, "sig")
    answered = (AssistantMessage((Text("x"),), "a", BUDGET, StopReason.STOP), UserMessage("next"))
    for messages, type_ in (
        (in_a_loop(signed), "enabled"),
        (in_a_loop(), "disabled"),
        (in_a_loop(signed, model="other"), "disabled"),
        (in_a_loop(after=answered), "enabled"),
    ):
        assert sent(BUDGET, HIGH, messages=messages)["thinking"]["type"] == type_
        assert sent(ADAPTIVE, HIGH, messages=messages)["thinking"]["type"] == "adaptive"


def test_thoughts_stay_out_of_an_answer_that_a_budget_model_goes_on_with_without_thinking() -> None:
    messages = in_a_loop(Reasoning("hm", THINKING, "sig"))
    for level, kinds in ((None, ["tool_use"]), (OFF, ["tool_use"]), (LOW, ["thinking", "tool_use"])):
        turns = sent(BUDGET, level, messages=messages)["messages"]
        assert [block["type"] for block in turns[1]["content"]] == kinds
    for model in (FULL, "kimi-k2"):
        kept = in_a_loop(Reasoning("hm", THINKING, "sig"), model=model)
        assert sent(model, OFF, messages=kept)["messages"][1]["content"][0]["type"] == "thinking"
