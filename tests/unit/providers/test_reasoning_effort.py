"""Thinking levels in OpenAI's words: by model family, by the model's facts, and the nearest that a model takes."""

import pytest

from lanewayd.messages import UNKNOWN_MODEL, ModelFacts, ThinkingLevel
from lanewayd.providers.reasoning_effort import family_efforts, reasoning_effort

LEVELS = list(ThinkingLevel)


@pytest.mark.parametrize(
    ("models", "efforts"),
    [
        (("gpt-5.6", "gpt-5.6-terra", "openai/GPT-5.6"), "none low medium high xhigh max"),
        (("gpt-5.2", "gpt-5.4-mini", "gpt-5.5", "gpt-5.9"), "none low medium high xhigh"),
        (("gpt-5.1", "gpt-5.1-2025-11-13"), "none low medium high"),
        (("gpt-5", "gpt-5-mini", "openai/gpt-5-nano", "gpt-5-2025-08-07"), "minimal low medium high"),
        (("gpt-5-codex", "gpt-5.1-codex", "gpt-5.3-codex-spark"), "low medium high xhigh"),
        (("gpt-5.1-codex-max",), "none medium high xhigh"),
        (("gpt-5.1-codex-mini",), "medium"),
        (("gpt-5-pro",), "high"),
        (("gpt-5.2-pro", "gpt-5.4-pro"), "medium high xhigh"),
        (("gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"), "none low medium high xhigh max"),
        (("gpt-6-astra", "gpt-6.1-sol"), "low medium high xhigh max"),
        (("o4-mini", "gpt-5.10", "grok-4", "gpt-oss-120b", "my-gpt-5"), "low medium high"),
    ],
)
def test_a_family_takes_these_efforts(models: tuple[str, ...], efforts: str) -> None:
    for model in models:
        assert family_efforts(model) == tuple(efforts.split()), model


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        # in the order off, minimal, low, medium, high, xhigh, max, adaptive, ultra
        ("gpt-5.6", "none low low medium high xhigh max medium max"),
        ("gpt-5.2", "none low low medium high xhigh xhigh medium xhigh"),
        ("gpt-5.1", "none low low medium high high high medium high"),
        ("gpt-5", "- minimal low medium high high high medium high"),
        ("gpt-5.1-codex-max", "none medium medium medium high xhigh xhigh medium xhigh"),
        ("gpt-5.1-codex-mini", "- medium medium medium medium medium medium medium medium"),
        ("gpt-5-pro", "- high high high high high high high high"),
        ("gpt-5.2-pro", "- medium medium medium high xhigh xhigh medium xhigh"),
        ("other", "- low low medium high high high medium high"),
    ],
)
def test_a_level_that_a_family_does_not_take_becomes_the_nearest_one(model: str, sent: str) -> None:
    efforts = [reasoning_effort(model, level, UNKNOWN_MODEL) or "-" for level in LEVELS]
    assert efforts == sent.split()


@pytest.mark.parametrize(
    ("facts", "level", "sent"),
    [
        (ModelFacts(effort_map={"high": "HeavyDuty"}), "high", "HeavyDuty"),
        (ModelFacts(effort_map={"high": None}), "high", None),
        (ModelFacts(effort_map={"off": "disabled"}), "off", "disabled"),
        (ModelFacts(effort_map={"xhigh": "most"}), "max", "most"),
        (ModelFacts(effort_map={"max": "Max"}), "ultra", "Max"),
        (ModelFacts(effort_map={"ultra": "u", "max": "Max"}), "ultra", "u"),
        (ModelFacts(effort_map={"adaptive": "auto"}), "adaptive", "auto"),
        (ModelFacts(effort_map={"medium": "std"}), "adaptive", "std"),
        (ModelFacts(effort_map={"medium": None}), "low", "low"),
        (ModelFacts(effort_map={"low": None, "medium": "m"}), "minimal", "m"),
        (ModelFacts(thinking_levels=(ThinkingLevel.LOW, ThinkingLevel.MAX)), "max", "max"),
        (ModelFacts(thinking_levels=(ThinkingLevel.HIGH,)), "low", "high"),
        (ModelFacts(thinking_levels=(ThinkingLevel.HIGH,)), "off", None),
        (ModelFacts(thinking_levels=(ThinkingLevel.ADAPTIVE,)), "high", None),
        (ModelFacts(is_known=True, can_think=True), "high", "high"),
        (ModelFacts(is_known=True), "high", None),
    ],
)
def test_what_the_facts_of_a_model_say_goes_before_its_family(facts: ModelFacts, level: str, sent: str | None) -> None:
    assert reasoning_effort("other", ThinkingLevel(level), facts) == sent


def test_levels_from_the_facts_leave_the_familys_word_for_not_thinking() -> None:
    facts = ModelFacts(thinking_levels=(ThinkingLevel.LOW,))
    assert reasoning_effort("gpt-5.2", ThinkingLevel.OFF, facts) == "none"


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "openai/gpt-5.2-chat-latest"])
def test_models_that_do_not_reason_are_told_nothing_unless_their_facts_say_that_they_do(model: str) -> None:
    assert [reasoning_effort(model, level, UNKNOWN_MODEL) for level in LEVELS] == [None] * len(LEVELS)
    assert reasoning_effort(model, ThinkingLevel.HIGH, ModelFacts(can_think=True)) == "high"


def test_nothing_asked_is_nothing_said() -> None:
    assert reasoning_effort("gpt-5.2", None, ModelFacts(can_think=True, effort_map={"off": "x"})) is None
