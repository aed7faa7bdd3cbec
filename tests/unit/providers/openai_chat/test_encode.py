"""openai_chat/encode.py: what a server is sent."""

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
from lanewayd.providers.openai_chat.dialect import UNKNOWN_SERVICE, OpenAIChat
from lanewayd.providers.openai_chat.encode import encode_request
from lanewayd.providers.openai_chat.manners import ChatManners
from lanewayd.providers.request_texts import BLANK_RESULT, BLANK_USER


def encoded(*messages: Message, system: str = "", manners: ChatManners = UNKNOWN_SERVICE) -> list[dict[str, Any]]:
    body = encode_request(ModelRequest("m1", system, messages), manners)
    result: list[dict[str, Any]] = json.loads(body)["messages"]
    return result


def test_a_request_asks_for_a_stream_with_usage_and_offers_its_tools() -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    dialect = OpenAIChat(new_call_id=lambda: "x")
    request = ModelRequest("m1", "Be brief.", (UserMessage("hi"),), (ToolSpec("rec", "Records.", schema),))
    assert dialect.path(request) == "/chat/completions"
    assert json.loads(dialect.encode(request)) == {
        "model": "m1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "rec", "description": "Records.", "parameters": schema}}],
    }


def test_without_tools_and_system_neither_is_sent() -> None:
    body = json.loads(encode_request(ModelRequest("m1", " ", (UserMessage("hi"),)), UNKNOWN_SERVICE))
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_a_call_and_its_result_follow_each_other() -> None:
    messages = encoded(
        UserMessage("u"), answer(Text("t"), ToolCall("c1", "rec", '{"a":1}')), ToolResultMessage("c1", "rec", "done")
    )
    function = {"name": "rec", "arguments": '{"a":1}'}
    assert messages[1:] == [
        {"role": "assistant", "content": "t", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]


def test_an_answer_with_calls_only_has_no_content() -> None:
    assert encoded(answer(ToolCall("c1", "rec", "{}")))[0]["content"] is None


def test_missing_results_are_made_up_and_orphans_left_out() -> None:
    messages = encoded(ToolResultMessage("x", "rec", "r"), answer(ToolCall("c1", "rec", "{}")), UserMessage("u"))
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]
    assert "No result" in messages[1]["content"]


def test_blank_turns_get_a_placeholder_or_are_left_out() -> None:
    call = ToolCall("c1", "rec", " ")
    messages = encoded(UserMessage(" \n"), answer(Text("")), answer(call), ToolResultMessage("c1", "rec", ""))
    assert [message["content"] for message in messages] == [BLANK_USER, None, BLANK_RESULT]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_lone_surrogates_become_replacement_characters() -> None:
    assert encoded(UserMessage("a\ud83db \U0001f600"))[0]["content"] == "a\ufffdb \U0001f600"


def test_names_are_made_legal() -> None:
    calls = answer(ToolCall("1", "do it!", "{}"), ToolCall("2", "x" * 80, "{}"), ToolCall("3", "", "{}"))
    names = [call["function"]["name"] for call in encoded(calls)[0]["tool_calls"]]
    assert names == ["do_it_", "x" * 64, "unknown"]


def test_empty_and_repeated_ids_are_told_apart_together_with_their_results() -> None:
    messages = encoded(
        answer(ToolCall("", "a", "{}"), ToolCall("s", "b", "{}"), ToolCall("s", "c", "{}")),
        ToolResultMessage("", "a", "1"),
        ToolResultMessage("s", "b", "2"),
        ToolResultMessage("s", "c", "3"),
    )
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert len({*ids}) == 3
    assert all(ids)
    assert [(message["tool_call_id"], message["content"]) for message in messages[1:]] == list(
        zip(ids, "123", strict=True)
    )


def test_long_ids_are_shortened_the_same_way_in_call_and_result_where_a_service_wants_it() -> None:
    long = ["x" * 60 + "1", "x" * 60 + "2"]
    history: tuple[Message, ...] = (
        answer(*(ToolCall(call_id, "a", "{}") for call_id in long)),
        *(ToolResultMessage(call_id, "a", "r") for call_id in long),
    )
    messages = encoded(*history, manners=ChatManners(is_openai=True))
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert [len(call_id) for call_id in ids] == [40, 40]
    assert [message["tool_call_id"] for message in messages[1:]] == ids
    assert ids[0] != ids[1]
    assert [call["id"] for call in encoded(*history)[0]["tool_calls"]] == long


def test_reasoning_is_repeated_in_its_field_within_the_current_tool_loop_only() -> None:
    old = answer(Reasoning("old", "reasoning_content"), Text("t"))
    call = ToolCall("c", "rec", "{}", '{"type":"reasoning.encrypted"}')
    new = answer(Reasoning("new", "reasoning_content"), Reasoning("tag"), call)
    messages = encoded(UserMessage("1"), old, UserMessage("2"), new, ToolResultMessage("c", "rec", "r"))
    assert "reasoning_content" not in messages[1]
    assert messages[3]["reasoning_content"] == "new"
    assert messages[3]["reasoning_details"] == [{"type": "reasoning.encrypted"}]
    assert "tag" not in json.dumps(messages)


def test_reasoning_goes_to_the_model_it_came_from_only() -> None:
    other = answer(Reasoning("r", "reasoning"), ToolCall("c", "rec", "{}", "not json"), model="other")
    messages = encoded(UserMessage("1"), other, ToolResultMessage("c", "rec", "r"))
    assert "reasoning" not in messages[1]
    same = answer(Reasoning("r", "reasoning"), ToolCall("c", "rec", "{}", "not json"))
    assert "reasoning_details" not in encoded(UserMessage("1"), same, ToolResultMessage("c", "rec", "r"))[1]
