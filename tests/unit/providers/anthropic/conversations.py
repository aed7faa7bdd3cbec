"""Generated conversations, and what a strict Messages service asks of a request."""

import json
import re
from typing import Any

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

MODEL = "claude-x"
_TEXTS = st.sampled_from(["", " \n", "hi", "ä\u2028\ud83d", 'q"\\\x00']) | st.text(max_size=8)
_IDS = st.sampled_from(["", "a", "a b", "x" * 70, "call_1"])
_ARGUMENTS = st.sampled_from(["{}", '{"a": 1e3}', "", "nope", "[1]"])
_FIELDS = st.sampled_from(["", "thinking", "redacted_thinking", "reasoning_content"])
_BLOCKS = st.one_of(
    st.builds(Text, _TEXTS),
    st.builds(Reasoning, _TEXTS, _FIELDS, st.sampled_from(["", "c2ln"])),
    st.builds(ToolCall, _IDS, st.sampled_from(["rec", "no name!", ""]), _ARGUMENTS),
)
_ANSWERS = st.builds(
    AssistantMessage,
    st.lists(_BLOCKS, max_size=4).map(tuple),
    st.just("acme"),
    st.sampled_from([MODEL, "other"]),
    st.sampled_from([StopReason.STOP, StopReason.TOOL_USE, StopReason.LENGTH, StopReason.ERROR]),
)
_RESULTS = st.builds(ToolResultMessage, _IDS, st.just("rec"), _TEXTS, st.booleans())
MESSAGES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(st.builds(UserMessage, _TEXTS), _ANSWERS, _RESULTS), max_size=10
)


def check_request(body: bytes) -> list[dict[str, Any]]:
    """The turns of a request, after the checks of a strict service."""
    request = json.loads(body.decode("utf-8"))
    assert request["max_tokens"] > 0
    assert body.count(b'"cache_control"') <= 4
    turns: list[dict[str, Any]] = request["messages"]
    assert [turn["role"] for turn in turns] == [("user", "assistant")[n % 2] for n in range(len(turns))]
    assert turns[-1]["role"] == "user"
    given: list[str] = []
    expected: list[str] = []
    for turn in turns:
        assert turn["content"]
        kinds = [block["type"] for block in turn["content"]]
        if turn["role"] == "user":
            results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
            assert results == expected
            assert kinds[: len(results)] == ["tool_result"] * len(results)
        calls = [block for block in turn["content"] if block["type"] == "tool_use"]
        expected = [call["id"] for call in calls]
        given += expected
        assert all(isinstance(call["input"], dict) for call in calls)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", word) for call in calls for word in (call["id"], call["name"]))
        for block in turn["content"]:
            assert block.get("text", "x").strip()
            assert block.get("content", "x").strip()
            assert block.get("signature", "x")
            assert block.get("data", "x")
    assert len(set(given)) == len(given)
    return turns
