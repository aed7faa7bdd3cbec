"""openai_responses/encode.py: what a server is sent."""

import json
from typing import Any

import pytest
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
from lanewayd.providers.openai_responses.dialect import OpenAIResponses
from lanewayd.providers.openai_responses.encode import encode_request
from lanewayd.providers.request_texts import BLANK_RESULT, BLANK_USER

KEPT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "b3A",
}


def encoded(*messages: Message, model: str = "m1", provider: str = "acme") -> list[dict[str, Any]]:
    body = encode_request(ModelRequest(model, "", messages), provider=provider)
    result: list[dict[str, Any]] = json.loads(body)["input"]
    return result


def signed(item: dict[str, Any] = KEPT) -> Reasoning:
    return Reasoning("hm", signature=json.dumps(item))


def call(call_id: str = "call_1", item_id: str = "fc_1", arguments: str = "{}") -> ToolCall:
    signature = json.dumps({"type": "function_call", "id": item_id}) if item_id else ""
    return ToolCall(call_id, "rec", arguments, signature)


def said(text: str, **kept: str) -> Text:
    return Text(text, json.dumps({"type": "message", **kept}))


def test_a_request_asks_for_a_stream_keeps_nothing_there_and_offers_its_tools() -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    dialect = OpenAIResponses(provider="acme", new_call_id=lambda: "x")
    request = ModelRequest("gpt-5.2", "Be brief.", (UserMessage("hi"),), (ToolSpec("rec", "Records.", schema),))
    assert dialect.path(request) == "/responses"
    assert dialect.models_path == "/models"
    assert dialect.headers("k") == {"authorization": "Bearer k"}
    assert dialect.headers("") == {}
    assert json.loads(dialect.encode(request)) == {
        "model": "gpt-5.2",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {"type": "function", "name": "rec", "description": "Records.", "parameters": schema, "strict": False}
        ],
    }


def test_without_tools_and_system_neither_is_sent() -> None:
    body = json.loads(encode_request(ModelRequest("m1", " ", (UserMessage("hi"),)), provider="acme"))
    assert body.keys() == {"model", "input", "stream", "store", "include"}


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5.2", True),
        ("o4-mini", True),
        ("gpt-5.3-codex", True),
        ("openai/gpt-5", True),
        ("gpt-oss-120b", True),
        ("my-own", True),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-3.5-turbo", False),
        ("chatgpt-4o-latest", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5.2-chat-latest", False),
        ("openai/GPT-4o", False),
    ],
)
def test_models_that_do_not_reason_are_not_asked_for_their_reasoning(model: str, reasons: bool) -> None:
    body = json.loads(encode_request(ModelRequest(model, "", (UserMessage("hi"),)), provider="acme"))
    assert ("include" in body) == reasons


def test_an_answer_goes_back_item_by_item_with_its_ids() -> None:
    given = answer(signed(), said("Look.", id="msg_1", phase="commentary"), call(arguments='{"a":1}'))
    items = encoded(UserMessage("u"), given, ToolResultMessage("call_1", "rec", "done"))
    assert items[1:] == [
        KEPT,
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Look.", "annotations": []}],
            "id": "msg_1",
            "phase": "commentary",
        },
        {"type": "function_call", "call_id": "call_1", "name": "rec", "arguments": '{"a":1}', "id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "done"},
    ]


def test_an_item_without_an_id_gets_none() -> None:
    items = encoded(answer(Text("a"), ToolCall("call_3", "rec", " ")), ToolResultMessage("call_3", "rec", " "))
    assert [item.get("id") for item in items] == [None] * 3
    assert (items[1]["arguments"], items[2]["output"]) == ("{}", BLANK_RESULT)


@pytest.mark.parametrize("other", [{"model": "m2"}, {"provider": "other"}])
def test_to_another_model_or_service_neither_reasoning_nor_ids_go_back(other: dict[str, str]) -> None:
    given = answer(signed(), said("Look.", id="msg_1", phase="commentary"), call(), **other)
    items = encoded(given, ToolResultMessage("call_1", "rec", "done"))
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]
    assert not [item for item in items if "id" in item or "phase" in item]


@pytest.mark.parametrize(
    "thought",
    [
        Reasoning("hm"),
        Reasoning("hm", "reasoning_content"),
        Reasoning("hm", signature="opaque bytes of another family"),
        Reasoning("hm", signature='{"type":"thinking","id":"x","encrypted_content":"y"}'),
        Reasoning("hm", signature="[" * 100_000),
        signed({"type": "reasoning", "id": "rs_1", "summary": []}),
    ],
)
def test_reasoning_that_the_service_cannot_read_again_stays_away_and_with_it_the_ids(thought: Reasoning) -> None:
    items = encoded(answer(thought, said("a", id="msg_1", phase="final_answer"), call()), UserMessage("u"))
    assert [item.get("type") for item in items] == ["message", "function_call", "function_call_output", None]
    assert not [item for item in items if "id" in item]
    assert items[0]["phase"] == "final_answer"


def test_reasoning_in_plain_text_goes_back_too() -> None:
    plain = {"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert encoded(answer(signed(plain), Text("a")))[0] == {**plain, "summary": []}


def test_reasoning_that_nothing_follows_is_left_out() -> None:
    later = {**KEPT, "id": "rs_2"}
    assert [item.get("id") for item in encoded(answer(signed(), Text("a"), signed(later)))] == ["rs_1", None]
    assert encoded(answer(signed()), answer(signed(), Text(" ")), UserMessage("u"))[0]["role"] == "user"
    assert [item.get("id") for item in encoded(answer(signed(), signed(later), Text("a")))] == ["rs_1", "rs_2", None]


def test_missing_results_are_made_up_and_orphans_left_out() -> None:
    items = encoded(ToolResultMessage("x", "rec", "r"), answer(call()), UserMessage("u"))
    assert [item.get("type") for item in items] == ["function_call", "function_call_output", None]
    assert "No result" in items[1]["output"]


def test_blank_turns_get_a_placeholder_or_are_left_out() -> None:
    items = encoded(UserMessage(" \n"), answer(Text("")), UserMessage("u"))
    assert [item["content"][0]["text"] for item in items] == [BLANK_USER, "u"]


def test_call_ids_are_made_legal_and_told_apart_in_the_whole_conversation() -> None:
    given = ["", "s", "s", "a|b.c", "x" * 70]
    first = answer(*(ToolCall(call_id, "rec", "{}") for call_id in given))
    second = answer(ToolCall("s", "rec", "{}"))
    results = [ToolResultMessage(call_id, "rec", f"r{number}") for number, call_id in enumerate([*given, "s"])]
    items = encoded(UserMessage("u"), first, *results[:5], UserMessage("v"), second, results[5])
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert len(set(asked)) == 6
    assert all(0 < len(call_id) <= 64 and call_id.replace("_", "").replace("-", "").isalnum() for call_id in asked)
    assert asked[1] == "s"
    outputs = [(item["call_id"], item["output"]) for item in items if item.get("type") == "function_call_output"]
    assert outputs == [(call_id, f"r{number}") for number, call_id in enumerate(asked)]


def test_names_are_made_legal() -> None:
    calls = answer(ToolCall("1", "do it!", "{}"), ToolCall("2", "x" * 80, "{}"), ToolCall("3", "", "{}"))
    assert [item["name"] for item in encoded(calls) if "name" in item] == ["do_it_", "x" * 64, "unknown"]


def test_lone_surrogates_become_replacement_characters() -> None:
    assert encoded(UserMessage("a\ud83db \U0001f600"))[0]["content"][0]["text"] == "a\ufffdb \U0001f600"
