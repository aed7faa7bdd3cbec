"""Whatever a transcript holds, a request has each call with its result right behind it, and arguments as objects."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.transcripts import IMAGES, MODEL, PROVIDER, TRANSCRIPTS

from lanewayd.messages import Message, ModelFacts
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.ollama.encode import encode_request


def asked(messages: tuple[Message, ...], facts: ModelFacts, model: str = MODEL) -> ModelRequest:
    return ModelRequest(model, "s", messages, facts=facts, contents=IMAGES)


@settings(max_examples=200, deadline=None)
@given(messages=TRANSCRIPTS, sees=st.booleans(), replays=st.booleans())
def test_each_call_has_one_result_that_names_its_tool(messages: tuple[Message, ...], sees: bool, replays: bool) -> None:
    request = asked(messages, ModelFacts(accepts_images=sees, replays_reasoning=replays))
    body = encode_request(request, provider=PROVIDER)
    expected: list[tuple[str, str]] = []
    sent: list[dict[str, Any]] = json.loads(body.decode("utf-8"))["messages"]
    for message in sent:
        if message["role"] == "tool":
            call_id, name = expected.pop(0)
            assert message["tool_call_id"] == call_id
            assert message["tool_name"] in (name, "rec")
            assert message["content"].strip()
            continue
        assert expected == []
        calls = message.get("tool_calls", [])
        expected = [(call["id"], call["function"]["name"]) for call in calls]
        assert all(call_id.strip() and name for call_id, name in expected)
        assert len({call_id for call_id, _ in expected}) == len(calls)
        assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
        assert message["content"].strip() or calls or (sees and message["images"])
        assert message.get("thinking", "x").strip()
    assert expected == []
    # What is repaired already is repaired to the same.
    repaired = pair_calls_with_results(shown_messages(request))
    assert encode_request(asked(repaired, request.facts), provider=PROVIDER) == body


@settings(max_examples=50, deadline=None)
@given(messages=TRANSCRIPTS)
def test_another_model_or_service_gets_no_thinking(messages: tuple[Message, ...]) -> None:
    facts = ModelFacts(replays_reasoning=True)
    for model, provider in (("m3", PROVIDER), (MODEL, "third")):
        sent = json.loads(encode_request(asked(messages, facts, model), provider=provider))["messages"]
        assert not [message for message in sent if "thinking" in message]
