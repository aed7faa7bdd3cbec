"""Whatever a transcript holds, a request keeps the rules that the service holds it against."""

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.openai_responses.encode import encode_request

_TEXTS = st.sampled_from(["", " \n", "hi", "ä\u2028\ud83d", 'q"\\\x00']) | st.text(max_size=8)
_CALL_IDS = st.sampled_from(["", "a", "a b", "x" * 70, "call_1"])
_SIGNED = st.builds(
    lambda **item: json.dumps(item),
    type=st.sampled_from(["reasoning", "message", "function_call", "thinking"]),
    id=st.sampled_from(["i1", ""]),
    phase=st.sampled_from(["commentary", ""]),
    encrypted_content=st.sampled_from(["b3A", ""]),
)
_SIGNATURES = st.sampled_from(["", "c2ln", "[1]", "{"]) | _SIGNED
_BLOCKS = st.one_of(
    st.builds(Text, _TEXTS, _SIGNATURES),
    st.builds(Reasoning, _TEXTS, st.just(""), _SIGNATURES),
    st.builds(ToolCall, _CALL_IDS, st.sampled_from(["rec", "no name!", ""]), st.sampled_from(["{}", ""]), _SIGNATURES),
)
_ANSWERS = st.builds(
    AssistantMessage,
    st.lists(_BLOCKS, max_size=4).map(tuple),
    st.sampled_from(["acme", "other"]),
    st.sampled_from(["m1", "m2"]),
    st.sampled_from([StopReason.STOP, StopReason.TOOL_USE, StopReason.LENGTH, StopReason.ERROR]),
)
_RESULTS = st.builds(ToolResultMessage, _CALL_IDS, st.just("rec"), _TEXTS, st.booleans())
_MESSAGES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(st.builds(UserMessage, _TEXTS), _ANSWERS, _RESULTS), max_size=10
)


def _check_items(items: list[dict[str, Any]]) -> None:
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
            assert json.loads(item["arguments"]) == {}
        elif kind == "function_call_output":
            assert item["output"].strip()
        elif kind == "reasoning":
            assert item["encrypted_content"]
            assert items[position + 1]["type"] in ("reasoning", "message", "function_call")
        else:
            assert item["content"][0]["text"].strip()


@settings(max_examples=200, deadline=None)
@given(messages=_MESSAGES)
def test_calls_have_one_output_ids_are_legal_and_reasoning_has_something_behind_it(messages: list[Message]) -> None:
    body = encode_request(ModelRequest("m1", "s", tuple(messages)), provider="acme")
    request = json.loads(body.decode("utf-8"))
    assert request["store"] is False
    _check_items(request["input"])
    # What is repaired already is repaired to the same.
    repaired = pair_calls_with_results(messages)
    assert encode_request(ModelRequest("m1", "s", repaired), provider="acme") == body


@settings(max_examples=100, deadline=None)
@given(messages=_MESSAGES)
def test_another_model_gets_no_reasoning_no_id_and_no_phase(messages: list[Message]) -> None:
    body = encode_request(ModelRequest("m3", "", tuple(messages)), provider="acme")
    items = json.loads(body)["input"]
    _check_items(items)
    assert not [item for item in items if item.get("type") == "reasoning" or "id" in item or "phase" in item]


def test_a_thought_that_was_kept_without_an_id_goes_back_without_one() -> None:
    kept = json.dumps({"type": "reasoning", "id": "", "encrypted_content": "b3A="})
    answer = AssistantMessage((Reasoning("", "", kept), Text("so")), "acme", "m1", StopReason.STOP)
    body = encode_request(ModelRequest("m1", "", (UserMessage("go"), answer)), provider="acme")
    (thought,) = [item for item in json.loads(body)["input"] if item.get("type") == "reasoning"]
    assert thought == {"type": "reasoning", "summary": [], "encrypted_content": "b3A="}
