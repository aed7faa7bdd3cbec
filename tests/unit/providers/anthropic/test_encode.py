"""ModelRequest -> Messages request."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.anthropic.conversations import BUDGET_MODEL, MESSAGES, MODEL, check_request, transcript_of
from tests.unit.providers.transcripts import IMAGES

from lanewayd.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ModelFacts,
    Reasoning,
    StopReason,
    Text,
    ThinkingLevel,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from lanewayd.providers.anthropic.answer import REDACTED, REDACTED_TEXT, THINKING
from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.anthropic.encode import BEGIN, OMITTED_REASONING, encode_request
from lanewayd.providers.interface import ModelRequest
from lanewayd.providers.request_texts import BLANK_RESULT, BLANK_USER

MARK = {"cache_control": {"type": "ephemeral"}}
UNSEEN = "attached image, not shown because this model does not take images"
SPECS = (ToolSpec("one", "First."), ToolSpec("two", "Second."))


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    """The turns as they are sent, without cache marks."""
    turns = check_request(encode_request(ModelRequest(fields.pop("model", MODEL), "", messages, **fields)))
    for turn in turns:
        for block in turn["content"]:
            block.pop("cache_control", None)
    return turns


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(*blocks: Text | Reasoning | ToolCall, model: str = MODEL, **fields: Any) -> AssistantMessage:
    return AssistantMessage(blocks, "acme", model, fields.get("stop", StopReason.STOP))


def test_a_request_has_its_path_headers_and_fields() -> None:
    dialect = AnthropicMessages(new_call_id=lambda: "x")
    request = ModelRequest("claude-x", "Be kind.", (UserMessage("hi"),), SPECS)
    assert dialect.path(request) == "/v1/messages"
    assert dialect.headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert dialect.headers("") == {"anthropic-version": "2023-06-01"}
    one, two = ({"name": spec.name, "description": spec.description, "input_schema": spec.schema} for spec in SPECS)
    assert json.loads(dialect.encode(request)) == {
        "model": "claude-x",
        "max_tokens": 32_000,
        "stream": True,
        "tools": [one, two | MARK],
        "system": [{"type": "text", "text": "Be kind."} | MARK],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"} | MARK]}],
    }


def test_without_system_and_tools_neither_is_sent() -> None:
    body = json.loads(encode_request(ModelRequest("m", " \n", (UserMessage("hi"),))))
    assert body.keys() == {"model", "max_tokens", "stream", "messages"}


def test_the_two_newest_user_turns_are_marked() -> None:
    history: list[Message] = [
        UserMessage("a"),
        answer(Text("b")),
        UserMessage("c"),
        answer(Text("d")),
        UserMessage("e"),
    ]
    turns = check_request(encode_request(ModelRequest(MODEL, "", tuple(history))))
    assert [("cache_control" in turn["content"][-1]) for turn in turns] == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("retention", "mark"),
    [
        ("none", None),
        ("short", {"type": "ephemeral"}),
        ("long", {"type": "ephemeral", "ttl": "1h"}),
        ("for ever", {"type": "ephemeral"}),
    ],
)
def test_marks_live_as_long_as_the_retention_says(retention: str, mark: dict[str, str] | None) -> None:
    request = ModelRequest(MODEL, "s", (UserMessage("a"),), SPECS, cache_retention=retention)
    body = json.loads(encode_request(request))
    marked = (body["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1])
    assert [block.get("cache_control") for block in marked] == [mark] * 3


def test_images_stand_in_front_of_what_is_said_of_them() -> None:
    cat, note = Attachment("cat.png", "image/png", "c", 3), Attachment("n.txt", "text/plain", "n", 4)
    messages = (UserMessage("look", (cat, note)), answer(Text("ok")), UserMessage(" ", (cat,)))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Y2F0"}}
    contents = {"c": b"cat", "n": b"note"}
    block = "[n.txt]\n```\nnote\n```"
    for facts, first, last in (
        (ModelFacts(accepts_images=True), [image, f"look\n{block}"], [image]),
        (ModelFacts(), [f"look\n[cat.png: {UNSEEN}]\n{block}"], [f"[cat.png: {UNSEEN}]"]),
    ):
        turns = sent(*messages, facts=facts, contents=contents)
        assert [block.get("text", block) for block in turns[0]["content"]] == first
        assert [block.get("text", block) for block in turns[2]["content"]] == last


def test_results_and_what_the_user_says_next_are_one_turn_results_first() -> None:
    calls = answer(Text("Two."), ToolCall("a", "one", '{"n": 12345678901234567890}'), ToolCall("b", "two", "{}"))
    results = ToolResultMessage("b", "two", " ", is_error=True), ToolResultMessage("a", "one", "fine")
    assert sent(UserMessage("go"), calls, *results, UserMessage("and?"), UserMessage("")) == [
        said("go"),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Two."},
                {"type": "tool_use", "id": "a", "name": "one", "input": {"n": 12345678901234567890}},
                {"type": "tool_use", "id": "b", "name": "two", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "fine"},
                {"type": "tool_result", "tool_use_id": "b", "content": BLANK_RESULT, "is_error": True},
                {"type": "text", "text": "and?"},
                {"type": "text", "text": BLANK_USER},
            ],
        },
    ]


def test_equal_ids_of_different_turns_are_told_apart() -> None:
    turn: Sequence[Message] = (answer(ToolCall("c", "one", "{}")), ToolResultMessage("c", "one", "r"))
    turns = sent(UserMessage("go"), *turn, *turn)
    first, second = turns[1]["content"][0]["id"], turns[3]["content"][0]["id"]
    assert first == "c"
    assert second not in ("", "c")
    assert [turn["content"][0]["tool_use_id"] for turn in turns[2::2]] == [first, second]


def test_thoughts_go_back_unchanged_and_in_their_place() -> None:
    thoughts = Reasoning("step  one \n", THINKING, "c2lnLTE+/w=="), Reasoning(REDACTED_TEXT, REDACTED, "b3BhcXVl")
    hidden = Reasoning("", THINKING, "aGlk")
    turns = sent(UserMessage("go"), answer(*thoughts, hidden, Text("x")), UserMessage("on"))
    assert turns[1]["content"] == [
        {"type": "thinking", "thinking": "step  one \n", "signature": "c2lnLTE+/w=="},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "thinking", "thinking": "", "signature": "aGlk"},
        {"type": "text", "text": "x"},
    ]


def test_thoughts_of_another_model_or_without_signature_are_dropped_as_a_whole() -> None:
    signed, unsigned = Reasoning("a", THINKING, "s"), Reasoning("a", THINKING)
    foreign = Reasoning("a", "reasoning_content", "s")
    for dropped in (answer(signed, model="other"), answer(unsigned), answer(foreign)):
        turns = sent(UserMessage("go"), dropped, UserMessage("on"))
        assert turns[1]["content"] == [{"type": "text", "text": OMITTED_REASONING}]
        kept = AssistantMessage((*dropped.content, Text("x")), "acme", dropped.model, StopReason.STOP)
        turns = sent(UserMessage("go"), kept, UserMessage("on"))
        assert turns[1]["content"] == [{"type": "text", "text": "x"}]


def test_a_turn_ends_with_a_text_or_a_call_and_what_was_only_thought_is_said_to_be_left_out() -> None:
    thought = Reasoning("hm", THINKING, "c2ln")
    turns = sent(UserMessage("a"), answer(Text("b"), thought), UserMessage("c"), answer(thought), UserMessage("d"))
    assert turns[1]["content"] == [{"type": "text", "text": "b"}]
    assert turns[3]["content"] == [{"type": "text", "text": OMITTED_REASONING}]


def test_turns_begin_and_end_with_the_user() -> None:
    assert sent(answer(Text("a")), UserMessage("b")) == [
        said(BEGIN),
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        said("b"),
    ]
    assert sent(UserMessage("a"), answer(Text("b"))) == [said("a")]
    assert sent() == [said(BEGIN)]


def test_failed_and_blank_answers_are_left_out() -> None:
    failed, blank = answer(Text("half"), stop=StopReason.ERROR), answer(Text(" "))
    assert sent(UserMessage("a"), failed, UserMessage("b"), blank, UserMessage("c")) == [
        {"role": "user", "content": [{"type": "text", "text": text} for text in "abc"]}
    ]


def test_the_string_that_tests_refusals_is_not_passed_on() -> None:
    magic = (
        "x ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL_1FAEFB6177B4672DEE07F9D3AFC62588CCD2631EDCF22E8CCC1FB35B501C9C86 y"
    )
    call = answer(ToolCall("c", "one", "{}"))
    body = json.dumps(sent(UserMessage(magic), call, ToolResultMessage("c", "one", magic)))
    assert "MAGIC" not in body
    assert "x (a string that tests refusals) y" in body


@settings(deadline=None, max_examples=150)
@given(MESSAGES, st.booleans(), st.sampled_from([None, *ThinkingLevel]), st.sampled_from([MODEL, BUDGET_MODEL]))
def test_any_conversation_becomes_a_request_that_a_strict_service_takes(
    messages: tuple[Message, ...], accepts_images: bool, level: ThinkingLevel | None, model: str
) -> None:
    facts = ModelFacts(accepts_images=accepts_images)
    request = ModelRequest(model, "s", messages, SPECS, facts=facts, thinking=level, contents=IMAGES)
    body = encode_request(request)
    turns = check_request(body)
    assert encode_request(request) == body
    assert accepts_images or b'"type":"image"' not in body
    repaired, images = transcript_of(turns, model)
    again = ModelRequest(model, "s", repaired, SPECS, facts=facts, thinking=level, contents=images)
    assert json.loads(encode_request(again)) == json.loads(body)
