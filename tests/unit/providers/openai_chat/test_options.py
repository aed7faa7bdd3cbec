"""openai_chat: everything of a request beside its conversation, and images in it."""

import json
from typing import Any

import pytest

from lanewayd.messages import (
    UNKNOWN_MODEL,
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
from lanewayd.providers.openai_chat.dialect import UNKNOWN_SERVICE, OpenAIChat
from lanewayd.providers.openai_chat.encode import encode_request
from lanewayd.providers.openai_chat.manners import ChatManners, manners_of

ALWAYS = {"model", "messages", "stream", "stream_options"}
OPENAI = ChatManners("openai", is_openai=True, holds_schemas=True)
TOOL = ToolSpec("rec", "Records.")
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
CAT = Attachment("cat.png", "image/png", "hash-of-cat", 3)


def options(manners: ChatManners, model: str = "m1", **wishes: Any) -> dict[str, Any]:
    body = json.loads(encode_request(ModelRequest(model, "", (UserMessage("hi"),), **wishes), manners))
    return {name: value for name, value in body.items() if name not in ALWAYS | {"tools"}}


def test_nothing_asked_is_nothing_sent() -> None:
    assert options(UNKNOWN_SERVICE) == options(OPENAI) == {}


@pytest.mark.parametrize(
    ("wishes", "unknown", "openai"),
    [
        ({"max_output_tokens": 100}, {"max_tokens": 100}, {"max_completion_tokens": 100}),
        ({"facts": ModelFacts(max_output_tokens=9)}, {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ({"facts": ModelFacts(max_output_tokens=64_000)}, {"max_tokens": 32_000}, {"max_completion_tokens": 32_000}),
        ({"temperature": 0.0, "seed": 0}, {"temperature": 0.0, "seed": 0}, {"temperature": 0.0, "seed": 0}),
        ({"thinking": ThinkingLevel.LOW}, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"thinking": ThinkingLevel.OFF}, {}, {}),
        ({"cache_key": "s1", "cache_retention": "short"}, {}, {"prompt_cache_key": "s1"}),
        ({"cache_key": "s1", "cache_retention": "none"}, {}, {}),
    ],
)
def test_a_wish_becomes_the_field_that_the_service_takes(
    wishes: dict[str, Any], unknown: dict[str, Any], openai: dict[str, Any]
) -> None:
    assert options(UNKNOWN_SERVICE, **wishes) == unknown
    assert options(OPENAI, **wishes) == openai


def test_a_long_cache_is_asked_for_by_its_own_field() -> None:
    fields = options(OPENAI, "gpt-5.2", cache_key="s1", cache_retention="long")
    assert fields == {"prompt_cache_key": "s1", "prompt_cache_retention": "24h"}


@pytest.mark.parametrize(
    ("model", "wishes", "sent"),
    [
        ("gpt-5.6", {}, {"reasoning_effort": "none"}),
        ("gpt-5.6", {"thinking": ThinkingLevel.HIGH}, {"reasoning_effort": "none"}),
        ("gpt-5.2", {"thinking": ThinkingLevel.HIGH}, {}),
        ("gpt-5.2", {"thinking": ThinkingLevel.HIGH, "temperature": 0.5}, {"temperature": 0.5}),
        ("gpt-5.1", {"thinking": ThinkingLevel.HIGH}, {"reasoning_effort": "high"}),
    ],
)
def test_beside_tools_openai_is_told_what_it_takes(model: str, wishes: dict[str, Any], sent: dict[str, Any]) -> None:
    assert options(OPENAI, model, tools=(TOOL,), **wishes) == sent


def test_models_that_take_no_temperature_get_none_with_their_effort() -> None:
    wishes: dict[str, Any] = {"thinking": ThinkingLevel.MAX, "temperature": 0.7}
    assert options(OPENAI, "gpt-5.6", **wishes) == {"reasoning_effort": "max"}
    assert options(UNKNOWN_SERVICE, "m1", **wishes) == {"reasoning_effort": "high", "temperature": 0.7}


@pytest.mark.parametrize(
    ("thinking_format", "field"),
    [
        ("zai", lambda is_on: {"enable_thinking": is_on}),
        ("qwen", lambda is_on: {"enable_thinking": is_on}),
        ("qwen-chat-template", lambda is_on: {"chat_template_kwargs": {"enable_thinking": is_on}}),
        ("together", lambda is_on: {"reasoning": {"enabled": is_on}}),
    ],
)
def test_a_thinking_format_replaces_the_effort_by_on_and_off(thinking_format: str, field: Any) -> None:
    facts = ModelFacts(thinking_format=thinking_format, is_known=True)
    for level in ThinkingLevel:
        assert options(UNKNOWN_SERVICE, thinking=level, facts=facts) == field(level is not ThinkingLevel.OFF)
    assert options(UNKNOWN_SERVICE, facts=facts) == {}


def test_a_format_that_is_not_known_leaves_the_effort() -> None:
    facts = ModelFacts(thinking_format="whatever")
    assert options(UNKNOWN_SERVICE, thinking=ThinkingLevel.LOW, facts=facts) == {"reasoning_effort": "low"}


def test_a_schema_is_sent_where_the_service_holds_answers_to_it() -> None:
    sent = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    assert options(OPENAI, response_schema=SCHEMA) == {"response_format": sent}


@pytest.mark.parametrize(
    ("manners", "model", "schema", "holds"),
    [
        (OPENAI, "gpt-5.2", SCHEMA, True),
        (OPENAI, "gpt-5.2", None, False),
        (OPENAI, "gpt-5.2", {"type": "array"}, False),
        (OPENAI, "gpt-4-turbo", SCHEMA, False),
        (UNKNOWN_SERVICE, "gpt-5.2", SCHEMA, False),
    ],
)
def test_what_is_said_of_schemas_is_what_is_sent(
    manners: ChatManners, model: str, schema: dict[str, Any] | None, holds: bool
) -> None:
    request = ModelRequest(model, "", (UserMessage("hi"),), response_schema=schema)
    dialect = OpenAIChat(new_call_id=lambda: "x", manners=manners)
    assert dialect.has_native_schema(request) is holds
    assert ("response_format" in json.loads(dialect.encode(request))) is holds


@pytest.mark.parametrize(
    ("provider", "base_url", "is_openai", "holds_schemas"),
    [
        ("openai", "https://api.openai.com/v1", True, True),
        ("openai", "http://127.0.0.1:9000/v1", True, True),
        ("mine", "https://eu.api.openai.com/v1", True, True),
        ("mine", "https://x.openai.azure.com/openai/v1", True, True),
        ("mine", "https://api.openai.com.evil.example/v1", False, False),
        ("openrouter", "https://openrouter.ai/api/v1", False, True),
        ("mine", "https://openrouter.ai/api/v1", False, True),
        ("acme", "http://127.0.0.1:9000/v1", False, False),
        ("acme", "", False, False),
    ],
)
def test_the_manners_of_a_service_follow_from_its_name_and_host(
    provider: str, base_url: str, is_openai: bool, holds_schemas: bool
) -> None:
    assert manners_of(provider, base_url) == ChatManners(provider, is_openai, holds_schemas)


def user_content(message: UserMessage, facts: ModelFacts) -> Any:
    request = ModelRequest("m1", "", (message,), facts=facts, contents={CAT.blob_hash: b"\x89PN"})
    return json.loads(encode_request(request, UNKNOWN_SERVICE))["messages"][0]["content"]


def test_an_image_stands_behind_the_text_of_its_message() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    eyes = ModelFacts(accepts_images=True)
    assert user_content(UserMessage("look ä", (CAT,)), eyes) == [{"type": "text", "text": "look ä"}, image]
    assert user_content(UserMessage(" ", (CAT, CAT)), eyes) == [image, image]


def test_a_model_without_eyes_gets_a_note() -> None:
    content = user_content(UserMessage("look", (CAT,)), ModelFacts())
    assert content == "look\n[cat.png: attached image, not shown because this model does not take images]"


def replayed(manners: ChatManners, facts: ModelFacts = UNKNOWN_MODEL) -> list[bool]:
    """Whether the reasoning of an earlier turn, of the current one, and of another service there, goes back."""
    answers = [
        AssistantMessage((Reasoning("hm", "reasoning"), Text("t")), provider, "m1", StopReason.STOP)
        for provider in ("acme", "acme", "other")
    ]
    messages: tuple[Message, ...] = (UserMessage("a"), answers[0], UserMessage("b"), *answers[1:])
    body = json.loads(encode_request(ModelRequest("m1", "", messages, facts=facts), manners))
    return ["reasoning" in message for message in body["messages"] if message["role"] == "assistant"]


def test_reasoning_goes_back_within_the_turn_and_all_of_it_where_the_facts_say_so() -> None:
    assert replayed(ChatManners("acme")) == [False, True, False]
    assert replayed(ChatManners("acme"), ModelFacts(replays_reasoning=True)) == [True, True, False]
    assert replayed(UNKNOWN_SERVICE) == [False, True, True]
