"""ollama: everything of a request beside its conversation, images in it, and which thinking goes back."""

import json
from typing import Any

import pytest

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ModelFacts,
    Reasoning,
    StopReason,
    Text,
    ThinkingLevel,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.ollama.dialect import Ollama
from lanewayd.providers.ollama.encode import encode_request

ALWAYS = {"model", "messages", "stream", "tools"}
SCHEMA = {"type": "array", "items": {"type": "string"}}
TOOL = ToolSpec("rec", "Records.")
CAT = Attachment("cat.png", "image/png", "hash-of-cat", 3)


def fields(**wishes: Any) -> dict[str, Any]:
    body = json.loads(encode_request(ModelRequest("m1", "", (UserMessage("hi"),), **wishes)))
    return {name: value for name, value in body.items() if name not in ALWAYS}


def test_nothing_asked_is_nothing_sent() -> None:
    assert fields() == {}


@pytest.mark.parametrize(
    ("level", "think"),
    [
        ("off", False),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "high"),
        ("adaptive", "medium"),
        ("ultra", "high"),
    ],
)
def test_a_level_becomes_a_word(level: str, think: bool | str) -> None:
    assert fields(thinking=ThinkingLevel(level)) == {"think": think}


@pytest.mark.parametrize(
    ("facts", "level", "sent"),
    [
        (ModelFacts(thinking_levels=(ThinkingLevel.HIGH, ThinkingLevel.MAX)), "max", {"think": "max"}),
        (ModelFacts(thinking_levels=(ThinkingLevel.HIGH, ThinkingLevel.MAX)), "ultra", {"think": "max"}),
        (ModelFacts(thinking_format="boolean"), "high", {"think": True}),
        (ModelFacts(thinking_format="boolean"), "off", {"think": False}),
        (ModelFacts(effort_map={"high": "Most"}), "high", {"think": "Most"}),
        (ModelFacts(effort_map={"high": None}), "high", {}),
    ],
)
def test_what_the_facts_of_a_model_say_goes_before_the_table(
    facts: ModelFacts, level: str, sent: dict[str, Any]
) -> None:
    assert fields(thinking=ThinkingLevel(level), facts=facts) == sent


def test_a_model_that_is_known_not_to_think_is_told_nothing_of_it() -> None:
    facts = ModelFacts(is_known=True, context_window=4096)
    assert fields(thinking=ThinkingLevel.HIGH, facts=facts) == {"options": {"num_ctx": 4096}}


@pytest.mark.parametrize(
    ("wishes", "options"),
    [
        ({"max_output_tokens": 100}, {"num_predict": 100}),
        ({"temperature": 0.0, "seed": 0}, {"temperature": 0.0, "seed": 0}),
        ({"facts": ModelFacts(is_known=True, context_window=32_768)}, {"num_ctx": 32_768}),
        ({"facts": ModelFacts(context_window=32_768, max_output_tokens=64_000)}, {"num_predict": 32_000}),
    ],
)
def test_limits_and_sampling_are_options_of_the_runner(wishes: dict[str, Any], options: dict[str, Any]) -> None:
    assert fields(**wishes) == {"options": options}


def test_a_key_for_a_cache_is_nothing_here() -> None:
    assert fields(cache_key="s1", cache_retention="long") == {}


@pytest.mark.parametrize(("tools", "holds"), [((), True), ((TOOL,), False)])
def test_an_answer_is_held_to_a_schema_where_no_tools_are_offered(tools: tuple[ToolSpec, ...], holds: bool) -> None:
    request = ModelRequest("m1", "", (UserMessage("hi"),), tools, response_schema=SCHEMA)
    dialect = Ollama(new_call_id=lambda: "x")
    assert dialect.has_native_schema(request) is holds
    assert json.loads(dialect.encode(request)).get("format") == (SCHEMA if holds else None)


def user_message(message: UserMessage, facts: ModelFacts) -> Any:
    request = ModelRequest("m1", "", (message,), facts=facts, contents={CAT.blob_hash: b"\x89PN"})
    return json.loads(encode_request(request))["messages"][0]


def test_images_stand_beside_the_text_of_their_message() -> None:
    eyes = ModelFacts(accepts_images=True)
    assert user_message(UserMessage("look", (CAT,)), eyes) == {"role": "user", "content": "look", "images": ["iVBO"]}
    assert user_message(UserMessage(" ", (CAT,)), eyes) == {"role": "user", "content": "", "images": ["iVBO"]}


def test_a_model_without_eyes_gets_a_note() -> None:
    content = "look\n[cat.png: attached image, not shown because this model does not take images]"
    assert user_message(UserMessage("look", (CAT,)), ModelFacts()) == {"role": "user", "content": content}


def test_thinking_goes_back_within_the_turn_and_all_of_it_where_the_facts_say_so() -> None:
    thought = AssistantMessage((Reasoning("hm", "thinking"), Text("t")), "acme", "m1", StopReason.STOP)
    messages: tuple[Message, ...] = (UserMessage("a"), thought, UserMessage("b"), thought)
    for replays, provider, expected in (
        (False, "acme", [False, True]),
        (True, "acme", [True, True]),
        (True, "other", [False, False]),
    ):
        request = ModelRequest("m1", "", messages, facts=ModelFacts(replays_reasoning=replays))
        sent = json.loads(encode_request(request, provider=provider))["messages"]
        assert ["thinking" in message for message in sent if message["role"] == "assistant"] == expected
