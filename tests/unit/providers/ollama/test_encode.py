"""ollama/encode.py: what a server is sent."""

import json
from typing import Any

from tests.unit.providers.transcripts import answer

from lanewayd.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.ollama.dialect import Ollama
from lanewayd.providers.ollama.encode import encode_request
from lanewayd.providers.request_texts import BLANK_RESULT, BLANK_USER


def encoded(*messages: Message, system: str = "") -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(encode_request(ModelRequest("m1", system, messages)))["messages"]
    return result


def test_a_request_asks_for_a_stream_and_offers_its_tools() -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    dialect = Ollama(new_call_id=lambda: "x")
    request = ModelRequest("qwen3:8b", "Be brief.", (UserMessage("hi"),), (ToolSpec("rec", "Records.", schema),))
    assert dialect.path(request) == "/api/chat"
    assert dialect.models_path == "/api/tags"
    assert json.loads(dialect.encode(request)) == {
        "model": "qwen3:8b",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "tools": [{"type": "function", "function": {"name": "rec", "description": "Records.", "parameters": schema}}],
    }


def test_a_key_goes_into_the_authorization_and_no_key_nowhere() -> None:
    dialect = Ollama(new_call_id=lambda: "x")
    assert dialect.headers("k")["authorization"] == "Bearer k"
    assert "authorization" not in dialect.headers("")
    assert "ndjson" in dialect.headers("")["accept"]


def test_without_tools_and_system_neither_is_sent() -> None:
    body = json.loads(encode_request(ModelRequest("m1", " ", (UserMessage("hi"),))))
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_calls_carry_objects_and_results_name_their_tool() -> None:
    messages = encoded(
        UserMessage("u"),
        answer(Text("t"), ToolCall("c1", "rec", '{"a":{"b":1}}'), ToolCall("c2", "now", "{}")),
        ToolResultMessage("c1", "rec", "done"),
        ToolResultMessage("c2", "now", " "),
    )
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": "t",
            "tool_calls": [
                {"id": "c1", "function": {"name": "rec", "arguments": {"a": {"b": 1}}}},
                {"id": "c2", "function": {"name": "now", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "done", "tool_name": "rec", "tool_call_id": "c1"},
        {"role": "tool", "content": BLANK_RESULT, "tool_name": "now", "tool_call_id": "c2"},
    ]


def test_arguments_stand_there_as_the_model_wrote_them() -> None:
    body = encode_request(
        ModelRequest("m1", "", (answer(ToolCall("c1", "rec", '{"n":1.50,"m":123456789012345678901}')),))
    )
    assert b'"arguments":{"n":1.50,"m":123456789012345678901}' in body


def test_arguments_that_are_no_object_are_an_empty_one() -> None:
    texts = ["", "[1]", '{"a":', '{"a":NaN}', "[" * 100_000]
    calls = answer(*(ToolCall(f"c{number}", "rec", text) for number, text in enumerate(texts)))
    assert [call["function"]["arguments"] for call in encoded(calls)[0]["tool_calls"]] == [{}] * len(texts)


def test_missing_results_are_made_up_and_orphans_left_out() -> None:
    messages = encoded(ToolResultMessage("x", "rec", "r"), answer(ToolCall("c1", "rec", "{}")), UserMessage("u"))
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]
    assert "No result" in messages[1]["content"]


def test_blank_turns_get_a_placeholder_or_are_left_out() -> None:
    messages = encoded(UserMessage(" \n"), answer(Text(" ")), answer(Reasoning("hm", "thinking")), UserMessage("u"))
    assert [message["content"] for message in messages] == [BLANK_USER, "u"]


def test_empty_and_repeated_ids_are_told_apart_together_with_their_results() -> None:
    calls = answer(ToolCall("", "a", "{}"), ToolCall("s", "b", "{}"), ToolCall("s", "", "{}"))
    results = [ToolResultMessage("", "a", "1"), ToolResultMessage("s", "b", "2"), ToolResultMessage("s", "", "3")]
    messages = encoded(calls, *results)
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert len({*ids}) == 3
    assert all(ids)
    assert [(message["tool_call_id"], message["content"]) for message in messages[1:]] == list(
        zip(ids, "123", strict=True)
    )
    assert [message["tool_name"] for message in messages[1:]] == ["a", "b", "unknown"]


def test_lone_surrogates_become_replacement_characters() -> None:
    call = ToolCall("c", "rec", '{"a":"\ud83d"}')
    assert encoded(UserMessage("a\ud83db \U0001f600"))[0]["content"] == "a\ufffdb \U0001f600"
    assert encoded(answer(call))[0]["tool_calls"][0]["function"]["arguments"] == {"a": "\ufffd"}


def test_thinking_is_repeated_within_the_current_tool_loop_to_its_own_model_only() -> None:
    old = answer(Reasoning("old", "thinking"), Text("t"))
    new = answer(Reasoning("new", "thinking"), Reasoning("tag"), ToolCall("c", "rec", "{}"))
    other = answer(Reasoning("other", "thinking"), ToolCall("d", "rec", "{}"), model="m2")
    messages = encoded(
        UserMessage("1"),
        old,
        UserMessage("2"),
        new,
        ToolResultMessage("c", "rec", "r"),
        other,
        ToolResultMessage("d", "rec", "r"),
    )
    assert [message.get("thinking") for message in messages if message["role"] == "assistant"] == [None, "new", None]
    assert "tag" not in json.dumps(messages)
