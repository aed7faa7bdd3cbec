"""openai_responses: everything of a request beside its conversation, and images in it."""

import json
from typing import Any

import pytest

from lanewayd.messages import Attachment, ModelFacts, ThinkingLevel, ToolSpec, UserMessage
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_responses.dialect import OpenAIResponses
from lanewayd.providers.openai_responses.encode import encode_request

ALWAYS = {"model", "instructions", "input", "stream", "store", "include", "tools"}
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
CAT = Attachment("cat.png", "image/png", "hash-of-cat", 3)


def options(model: str = "m1", *, is_openai: bool = False, **wishes: Any) -> dict[str, Any]:
    request = ModelRequest(model, "", (UserMessage("hi"),), **wishes)
    body = json.loads(encode_request(request, provider="acme", is_openai=is_openai))
    return {name: value for name, value in body.items() if name not in ALWAYS}


def test_nothing_asked_is_nothing_sent() -> None:
    assert options() == options("gpt-5.6", is_openai=True) == {}


@pytest.mark.parametrize(
    ("model", "wishes", "sent"),
    [
        ("m1", {"max_output_tokens": 100}, {"max_output_tokens": 100}),
        ("m1", {"facts": ModelFacts(max_output_tokens=64_000)}, {"max_output_tokens": 32_000}),
        ("m1", {"temperature": 0.0, "seed": 7}, {"temperature": 0.0}),
        ("gpt-5.6", {"temperature": 0.5}, {}),
        ("gpt-5.2", {"thinking": ThinkingLevel.OFF}, {"reasoning": {"effort": "none"}}),
        ("gpt-5.2", {"thinking": ThinkingLevel.MAX}, {"reasoning": {"effort": "xhigh", "summary": "auto"}}),
        (
            "gpt-5.6",
            {"thinking": ThinkingLevel.MAX, "tools": (ToolSpec("rec", "Records."),)},
            {"reasoning": {"effort": "max", "summary": "auto"}},
        ),
        ("gpt-5", {"thinking": ThinkingLevel.OFF}, {}),
        ("gpt-4o", {"thinking": ThinkingLevel.HIGH}, {}),
        ("m1", {"cache_key": "s1", "cache_retention": "long"}, {}),
    ],
)
def test_a_wish_becomes_its_field(model: str, wishes: dict[str, Any], sent: dict[str, Any]) -> None:
    assert options(model, **wishes) == sent


def test_only_openai_itself_is_given_a_key_for_its_cache() -> None:
    wishes: dict[str, Any] = {"model": "gpt-5.2", "is_openai": True, "cache_key": "s1"}
    assert options(**wishes) == {"prompt_cache_key": "s1"}
    assert options(**wishes, cache_retention="none") == {}
    assert options(**wishes, cache_retention="long") == {"prompt_cache_key": "s1", "prompt_cache_retention": "24h"}


@pytest.mark.parametrize(
    ("model", "schema", "holds"),
    [("m1", SCHEMA, True), ("gpt-4-turbo", SCHEMA, False), ("m1", {"type": "array"}, False), ("m1", None, False)],
)
def test_a_schema_is_sent_if_it_is_said_that_the_service_holds_answers_to_it(
    model: str, schema: dict[str, Any] | None, holds: bool
) -> None:
    request = ModelRequest(model, "", (UserMessage("hi"),), response_schema=schema)
    dialect = OpenAIResponses(provider="acme", new_call_id=lambda: "x")
    assert dialect.has_native_schema(request) is holds
    sent = {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}}
    assert json.loads(dialect.encode(request)).get("text") == (sent if holds else None)


def test_models_that_are_known_not_to_think_are_not_asked_for_their_reasoning() -> None:
    request = ModelRequest("m1", "", (UserMessage("hi"),), facts=ModelFacts(is_known=True))
    assert "include" not in json.loads(encode_request(request, provider="acme"))


def user_content(message: UserMessage, facts: ModelFacts) -> Any:
    request = ModelRequest("m1", "", (message,), facts=facts, contents={CAT.blob_hash: b"\x89PN"})
    return json.loads(encode_request(request, provider="acme"))["input"][0]["content"]


def test_an_image_stands_behind_the_text_of_its_message() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
    eyes = ModelFacts(accepts_images=True)
    assert user_content(UserMessage("look", (CAT,)), eyes) == [{"type": "input_text", "text": "look"}, image]
    assert user_content(UserMessage(" ", (CAT,)), eyes) == [image]


def test_a_model_without_eyes_gets_a_note() -> None:
    note = "look\n[cat.png: attached image, not shown because this model does not take images]"
    assert user_content(UserMessage("look", (CAT,)), ModelFacts()) == [{"type": "input_text", "text": note}]
