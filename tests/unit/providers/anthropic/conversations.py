"""What a strict Messages service asks of a request, and the way back from one to a transcript."""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.unit.providers.transcripts import transcripts

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

MODEL, BUDGET_MODEL = "claude-x", "claude-haiku-4-5"
MESSAGES = transcripts([MODEL, BUDGET_MODEL, "other"])
_THOUGHTS = ("thinking", "redacted_thinking")
_BLOCKS = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "tool_use", *_THOUGHTS),
}


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
        assert set(kinds) <= set(_BLOCKS[turn["role"]])
        if turn["role"] == "user":
            results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
            assert results == expected
            assert kinds[: len(results)] == ["tool_result"] * len(results)
        else:
            assert kinds[-1] not in _THOUGHTS
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
            if block["type"] == "image":
                assert base64.b64decode(block["source"]["data"], validate=True)
    assert len(set(given)) == len(given)
    if request["model"] == BUDGET_MODEL and turns[-1]["content"][0]["type"] == "tool_result":
        thinks = request.get("thinking", {}).get("type") == "enabled"
        kinds = [block["type"] in _THOUGHTS for block in turns[-2]["content"]]
        assert kinds[0] if thinks else not any(kinds)
    return turns


def transcript_of(turns: Sequence[dict[str, Any]], model: str) -> tuple[tuple[Message, ...], dict[str, bytes]]:
    """What was said in the turns of a request, with the contents of its images.

    No turn is completed: which images are too old was decided when the request was made.
    """
    messages: list[Message] = []
    images: dict[str, bytes] = {}
    for turn in turns:
        if turn["role"] == "assistant":
            blocks = tuple(map(_block, turn["content"]))
            messages.append(AssistantMessage(blocks, "acme", model, StopReason.TOOL_USE))
            continue
        for block in turn["content"]:
            if block["type"] == "tool_result":
                is_error = block.get("is_error", False)
                messages.append(ToolResultMessage(block["tool_use_id"], "", block["content"], is_error))
            elif block["type"] == "text":
                messages.append(UserMessage(block["text"]))
            else:
                source = block["source"]
                images[source["data"]] = base64.b64decode(source["data"])
                messages.append(UserMessage("", (Attachment("i", source["media_type"], source["data"], 1),)))
    return tuple(messages), images


def _block(block: dict[str, Any]) -> Text | Reasoning | ToolCall:
    if block["type"] == "text":
        return Text(block["text"])
    if block["type"] == "tool_use":
        return ToolCall(block["id"], block["name"], json.dumps(block["input"]))
    if block["type"] == "thinking":
        return Reasoning(block["thinking"], "thinking", block["signature"])
    return Reasoning("", "redacted_thinking", block["data"])
