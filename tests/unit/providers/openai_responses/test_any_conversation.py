"""Whatever a transcript holds, a request keeps the rules that the service holds it against."""

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.transcripts import IMAGES, MODEL, PROVIDER, TRANSCRIPTS

from lanewayd.messages import AssistantMessage, Message, ModelFacts, Reasoning, StopReason, Text, UserMessage
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.images import shown_messages
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_responses.encode import encode_request


def asked(messages: tuple[Message, ...], model: str = MODEL, *, sees: bool = False) -> ModelRequest:
    return ModelRequest(model, "s", messages, facts=ModelFacts(accepts_images=sees), contents=IMAGES)


def _check_items(items: list[dict[str, Any]], *, sees: bool = False) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == outputs
    assert len(set(calls)) == len(calls)
    for position, item in enumerate(items):
        kind = item.get("type", "user")
        assert item.get("id", "x")
        if kind == "function_call":
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item["call_id"])
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item["name"])
            assert isinstance(json.loads(item["arguments"]), dict)
        elif kind == "function_call_output":
            assert item["output"].strip()
        elif kind == "reasoning":
            assert item["encrypted_content"]
            assert items[position + 1]["type"] in ("reasoning", "message", "function_call")
        else:
            images = [part for part in item["content"] if part["type"] == "input_image"]
            assert sees or not images
            assert all(part["text"].strip() for part in item["content"] if part not in images)
            assert item["content"]


@settings(max_examples=200, deadline=None)
@given(messages=TRANSCRIPTS, sees=st.booleans())
def test_calls_have_one_output_ids_are_legal_and_reasoning_has_something_behind_it(
    messages: tuple[Message, ...], sees: bool
) -> None:
    body = encode_request(asked(messages, sees=sees), provider=PROVIDER)
    request = json.loads(body.decode("utf-8"))
    assert request["store"] is False
    _check_items(request["input"], sees=sees)
    # What is repaired already is repaired to the same.
    repaired = pair_calls_with_results(shown_messages(asked(messages, sees=sees)))
    assert encode_request(asked(repaired, sees=sees), provider=PROVIDER) == body


@settings(max_examples=100, deadline=None)
@given(messages=TRANSCRIPTS)
def test_another_model_or_service_gets_no_reasoning_no_id_and_no_phase(messages: tuple[Message, ...]) -> None:
    for model, provider in (("m3", PROVIDER), (MODEL, "third")):
        items = json.loads(encode_request(asked(messages, model), provider=provider))["input"]
        _check_items(items)
        assert not [item for item in items if item.get("type") == "reasoning" or "id" in item or "phase" in item]


def test_a_thought_that_was_kept_without_an_id_goes_back_without_one() -> None:
    kept = json.dumps({"type": "reasoning", "id": "", "encrypted_content": "b3A="})
    answer = AssistantMessage((Reasoning("", "", kept), Text("so")), "acme", "m1", StopReason.STOP)
    body = encode_request(ModelRequest("m1", "", (UserMessage("go"), answer)), provider="acme")
    (thought,) = [item for item in json.loads(body)["input"] if item.get("type") == "reasoning"]
    assert thought == {"type": "reasoning", "summary": [], "encrypted_content": "b3A="}
