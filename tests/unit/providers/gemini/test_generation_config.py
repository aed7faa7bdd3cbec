"""What is asked of a Gemini model besides an answer: spec 04, 3.2."""

import json
from typing import Any

import pytest

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    ModelFacts,
    StopReason,
    Text,
    ThinkingLevel,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.gemini.encode import encode_request
from lanewayd.providers.gemini.schema import answer_of
from lanewayd.providers.interface import ModelRequest

PRO, FLASH, OLD_PRO, OLD_FLASH, OLD_LITE = (
    "gemini-3-pro-preview",
    "gemini-3.8-flash",
    "gemini-2.5-pro",
    "models/gemini-2.5-flash",
    "gemini-2.5-flash-lite",
)
OFF, MINIMAL, LOW, MEDIUM, HIGH = (ThinkingLevel(word) for word in ("off", "minimal", "low", "medium", "high"))
XHIGH, MAX, PROVIDER, ULTRA = (ThinkingLevel(word) for word in ("xhigh", "max", "adaptive", "ultra"))
STRING = {"type": "string"}
SHAPE = {"type": "object", "properties": {"a": STRING}, "required": ["a"]}


def config(model: str, level: ThinkingLevel | None = None, **more: Any) -> dict[str, Any]:
    request = ModelRequest(model, "", (UserMessage("hi"),), thinking=level, **more)
    said: dict[str, Any] = json.loads(encode_request(request)).get("generationConfig", {})
    return said


@pytest.mark.parametrize(
    ("level", "pro", "flash", "old_pro", "old_flash", "old_lite"),
    [
        (MINIMAL, "LOW", "MINIMAL", 128, 128, 512),
        (LOW, "LOW", "LOW", 2_048, 2_048, 2_048),
        (MEDIUM, "HIGH", "MEDIUM", 8_192, 8_192, 8_192),
        (HIGH, "HIGH", "HIGH", 32_768, 24_576, 24_576),
        (XHIGH, "HIGH", "HIGH", 32_768, 24_576, 24_576),
        (MAX, "HIGH", "HIGH", 32_768, 24_576, 24_576),
        (ULTRA, "HIGH", "HIGH", 32_768, 24_576, 24_576),
        (PROVIDER, None, None, -1, -1, -1),
    ],
)
def test_a_level_is_said_as_the_generation_takes_it(
    level: ThinkingLevel, pro: str | None, flash: str | None, old_pro: int, old_flash: int, old_lite: int
) -> None:
    for model, word in ((PRO, pro), (FLASH, flash), ("gemini-flash-latest", flash), ("gemini-4-argon", flash)):
        said = {"includeThoughts": True} if word is None else {"includeThoughts": True, "thinkingLevel": word}
        assert config(model, level) == {"thinkingConfig": said}
    for model, budget in ((OLD_PRO, old_pro), (OLD_FLASH, old_flash), (OLD_LITE, old_lite)):
        assert config(model, level) == {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": budget}}


def test_nothing_is_said_of_thinking_that_is_off_not_asked_for_or_not_possible() -> None:
    for model in (PRO, FLASH, OLD_PRO, OLD_FLASH):
        assert config(model) == config(model, OFF) == config(model, HIGH, facts=ModelFacts(is_known=True)) == {}
    for model in ("gemini-2.0-flash", "gemma-3-27b-it", "gemini-robotics-er-1.5-preview", "m"):
        assert config(model, HIGH) == {}
    can_think = ModelFacts(is_known=True, can_think=True)
    assert config(FLASH, HIGH, facts=can_think)["thinkingConfig"]["thinkingLevel"] == "HIGH"


@pytest.mark.parametrize(
    ("model", "levels", "asked", "said"),
    [
        (PRO, (MINIMAL, LOW, MEDIUM, HIGH), MINIMAL, "LOW"),
        (PRO, (LOW, MEDIUM, HIGH), MEDIUM, "HIGH"),
        (FLASH, (LOW, MEDIUM, HIGH), MINIMAL, "LOW"),
        (FLASH, (LOW, HIGH), MAX, "HIGH"),
        (FLASH, (LOW, HIGH), PROVIDER, "LOW"),
        (OLD_PRO, (LOW, HIGH), PROVIDER, 2_048),
    ],
)
def test_the_levels_of_the_settings_count_before_the_table(
    model: str, levels: tuple[ThinkingLevel, ...], asked: ThinkingLevel, said: str | int
) -> None:
    thinking = config(model, asked, facts=ModelFacts(thinking_levels=levels))["thinkingConfig"]
    assert thinking.get("thinkingLevel", thinking.get("thinkingBudget")) == said


def test_the_words_of_the_settings_are_sent_as_they_stand() -> None:
    facts = ModelFacts(effort_map={"high": "Highest", "low": None, "medium": "-1", "minimal": "0"})
    assert config(FLASH, HIGH, facts=facts)["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "Highest"}
    assert config(FLASH, LOW, facts=facts)["thinkingConfig"] == {"includeThoughts": True}
    assert config(OLD_PRO, LOW, facts=facts) == {}
    assert config(OLD_PRO, MEDIUM, facts=facts)["thinkingConfig"]["thinkingBudget"] == -1
    assert config(OLD_PRO, MINIMAL, facts=facts)["thinkingConfig"] == {"includeThoughts": False, "thinkingBudget": 0}
    assert config(OLD_PRO, HIGH, facts=facts)["thinkingConfig"]["thinkingBudget"] == 32_768


@pytest.mark.parametrize(
    ("model", "level", "most", "asked", "max_tokens", "budget"),
    [
        (FLASH, None, 0, 0, None, None),
        (FLASH, HIGH, 65_536, 0, 32_000, None),
        (FLASH, HIGH, 65_536, 5_000, 5_000, None),
        (FLASH, None, 4_000, 5_000, 4_000, None),
        (OLD_PRO, HIGH, 0, 0, None, 32_768),
        (OLD_PRO, HIGH, 65_536, 0, 64_768, 32_768),
        (OLD_PRO, HIGH, 0, 40_000, 65_536, 32_768),
        (OLD_PRO, HIGH, 30_000, 0, 30_000, 28_976),
        (OLD_PRO, HIGH, 1_000, 0, 1_000, None),
        (OLD_PRO, PROVIDER, 65_536, 0, 32_000, -1),
    ],
)
def test_the_answer_may_be_as_long_as_run_and_model_say_beside_the_thoughts(
    model: str, level: ThinkingLevel | None, most: int, asked: int, max_tokens: int | None, budget: int | None
) -> None:
    said = config(model, level, facts=ModelFacts(max_output_tokens=most), max_output_tokens=asked)
    assert said.get("maxOutputTokens") == max_tokens
    assert said.get("thinkingConfig", {}).get("thinkingBudget") == budget


def test_temperature_and_seed_are_said_and_a_large_seed_fits() -> None:
    assert config(FLASH, temperature=0.0, seed=7) == {"temperature": 0.0, "seed": 7}
    assert config(FLASH, seed=2**31 + 5) == {"seed": 5}
    assert config(FLASH, cache_key="k", cache_retention="long") == {}


@pytest.mark.parametrize(
    ("model", "tools", "schema", "is_held"),
    [
        (FLASH, (ToolSpec("t", "T."),), SHAPE, True),
        (OLD_PRO, (), SHAPE, True),
        (OLD_PRO, (ToolSpec("t", "T."),), SHAPE, False),
        ("gemma-3-27b-it", (), SHAPE, False),
        (FLASH, (), {"type": "object"}, False),
        (FLASH, (), None, False),
    ],
)
def test_the_service_holds_the_answer_where_the_dialect_says_so(
    model: str, tools: tuple[ToolSpec, ...], schema: dict[str, Any] | None, is_held: bool
) -> None:
    dialect = Gemini(new_call_id=lambda: "x")
    request = ModelRequest(model, "", (UserMessage("hi"),), tools, response_schema=schema)
    assert dialect.has_native_schema(request) == is_held
    said = json.loads(dialect.encode(request)).get("generationConfig", {})
    assert said == ({"responseMimeType": "application/json", "responseSchema": SHAPE} if is_held else {})


def test_an_answer_with_free_names_cannot_be_described() -> None:
    free = {"type": "object", "additionalProperties": STRING}
    for schema in (
        free,
        {"type": "array", "items": free},
        {"type": "object", "properties": {"a": free}},
        {"anyOf": [STRING, {"type": "object", "properties": {"a": STRING, "b": {"type": "array", "items": free}}}]},
    ):
        assert answer_of(schema) is None
    assert answer_of({"type": "array", "items": {"$ref": "#/$defs/s"}, "$defs": {"s": SHAPE}}) == {
        "type": "array",
        "items": SHAPE,
    }


def test_images_stand_in_front_of_what_is_said_of_them() -> None:
    png, gif = Attachment("a.png", "image/png", "p", 3), Attachment("b.gif", "image/gif", "g", 3)
    messages = (
        UserMessage("look", (png, gif)),
        AssistantMessage((Text("ok"),), "google", FLASH, StopReason.STOP),
        UserMessage("", (png,)),
    )
    image = {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
    note = "[b.gif: attached image, not shown because this model does not take image/gif]"
    contents = {"p": b"png", "g": b"gif"}
    request = ModelRequest(FLASH, "", messages, facts=ModelFacts(accepts_images=True), contents=contents)
    parts = [turn["parts"] for turn in json.loads(encode_request(request))["contents"]]
    assert parts == [[image, {"text": f"look\n{note}"}], [{"text": "ok"}], [image]]
    blind = ModelRequest(FLASH, "", messages, contents=contents)
    assert b"inlineData" not in encode_request(blind)
