"""Whatever a transcript holds, a request keeps the rules that services hold it against."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.transcripts import IMAGES, MODEL, PROVIDER, TRANSCRIPTS

from lanewayd.messages import Message, ModelFacts
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_chat.encode import encode_request
from lanewayd.providers.openai_chat.manners import ChatManners

_REASONING = ("reasoning_content", "reasoning", "reasoning_text")


def asked(messages: tuple[Message, ...], model: str, facts: ModelFacts) -> ModelRequest:
    return ModelRequest(model, "s", messages, facts=facts, contents=IMAGES)


def check(sent: list[dict[str, Any]], legal_id: str, *, sees: bool) -> None:
    """Roles in order, each call with its one result right behind it, nothing blank."""
    expected: list[str] = []
    for message in sent:
        content = message["content"]
        if message["role"] == "tool":
            assert message["tool_call_id"] == expected.pop(0)
            assert content.strip()
            continue
        assert expected == []
        if message["role"] == "assistant":
            calls = message.get("tool_calls", [])
            expected = [call["id"] for call in calls]
            assert len(set(expected)) == len(expected)
            assert all(re.fullmatch(legal_id, call_id, re.DOTALL) for call_id in expected)
            assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]) for call in calls)
            assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
            assert content.strip() if content is not None else calls
            assert all(message[name].strip() for name in _REASONING if name in message)
        elif isinstance(content, list):
            assert sees
            assert all(part["type"] == "image_url" or part["text"].strip() for part in content)
        else:
            assert content.strip()
    assert expected == []


@pytest.mark.parametrize(
    ("model", "is_openai", "legal_id"),
    [(MODEL, False, r".*\S.*"), (MODEL, True, r".{1,40}"), ("mistral-large", False, r"[A-Za-z0-9]{9}")],
)
@settings(max_examples=100, deadline=None)
@given(messages=TRANSCRIPTS, sees=st.booleans(), replays=st.booleans())
def test_calls_have_one_result_ids_are_legal_and_nothing_is_blank(
    messages: tuple[Message, ...], sees: bool, replays: bool, model: str, is_openai: bool, legal_id: str
) -> None:
    request = asked(messages, model, ModelFacts(accepts_images=sees, replays_reasoning=replays))
    manners = ChatManners(PROVIDER, is_openai)
    body = encode_request(request, manners)
    check(json.loads(body.decode("utf-8"))["messages"], legal_id, sees=sees)
    # What is repaired already is repaired to the same.
    repaired = pair_calls_with_results(shown_messages(request))
    assert encode_request(asked(repaired, model, request.facts), manners) == body


@settings(max_examples=100, deadline=None)
@given(messages=TRANSCRIPTS)
def test_another_model_or_service_gets_no_reasoning(messages: tuple[Message, ...]) -> None:
    facts = ModelFacts(replays_reasoning=True)
    for model, provider in (("m3", PROVIDER), (MODEL, "third")):
        sent = json.loads(encode_request(asked(messages, model, facts), ChatManners(provider)))["messages"]
        assert not [message for message in sent if message.keys() & {*_REASONING, "reasoning_details"}]
