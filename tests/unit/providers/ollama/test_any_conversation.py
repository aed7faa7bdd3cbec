"""Whatever a transcript holds, a request has each call with its result right behind it, and arguments as objects."""

import json
from typing import Any

from hypothesis import given, settings
from tests.unit.providers.anthropic.conversations import MESSAGES, MODEL

from lanewayd.messages import Message
from lanewayd.providers.history import pair_calls_with_results
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.ollama.encode import encode_request


@settings(max_examples=200, deadline=None)
@given(messages=MESSAGES)
def test_each_call_has_one_result_that_names_its_tool(messages: list[Message]) -> None:
    body = encode_request(ModelRequest(MODEL, "s", tuple(messages)))
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
        assert all(call_id and name for call_id, name in expected)
        assert len(set(expected)) == len({call_id for call_id, _ in expected}) == len(calls)
        assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
        assert message["content"].strip() or calls
        assert message.get("thinking", "x")
    assert expected == []
    assert encode_request(ModelRequest(MODEL, "s", pair_calls_with_results(messages))) == body
