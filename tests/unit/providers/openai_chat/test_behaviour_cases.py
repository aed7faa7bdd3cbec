"""Every chat completions case of group a through the decoder, at arbitrary chunk boundaries.

The same cases run through the whole service elsewhere; here is what they say about the decoder alone.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.fuzzing import merged
from tests.unit.providers.openai_chat.decoding import REQUEST, decode

from lanewayd.messages import AssistantMessage, Reasoning, StopReason, ToolResultMessage, UserMessage
from lanewayd.providers.interface import BlockEnded, Done, Failed, ModelRequest, ReasoningDelta, TextDelta
from lanewayd.providers.openai_chat.dialect import OpenAIChat

CASES = {
    case["id"]: case["input"]
    for case in yaml.safe_load((Path(__file__).parents[3] / "cases" / "a_provider_streams.yaml").read_text())
    if case["input"]["api"] == "chat_completions"
}


def chunks_of(case: dict[str, Any]) -> list[bytes]:
    if "chunks" in case:
        return [chunk.encode("latin-1") for chunk in case["chunks"]]
    return [case["wire"].encode()]


def message_of(case_id: str, wire: str | None = None) -> AssistantMessage:
    chunks = chunks_of(CASES[case_id]) if wire is None else [wire.encode()]
    done = decode(*chunks)[-1]
    assert isinstance(done, Done)
    assert [event for event in decode(*chunks) if isinstance(event, Done | Failed)] == [done]
    return done.message


def calls_of(message: AssistantMessage) -> list[tuple[str, Any]]:
    return [(call.call_id, json.loads(call.arguments_json)) for call in message.tool_calls]


def next_request(message: AssistantMessage) -> list[dict[str, Any]]:
    """The messages of the request that follows `message` and the results of its calls."""
    results = tuple(ToolResultMessage(call.call_id, call.name, "r") for call in message.tool_calls)
    request = ModelRequest("m1", "", (UserMessage("hi"), message, *results))
    messages: list[dict[str, Any]] = json.loads(OpenAIChat(new_call_id=lambda: "x").encode(request))["messages"]
    return messages


def test_B_001_a_new_id_opens_a_call_and_fragments_without_either_continue_it() -> None:
    assert calls_of(message_of("B-001")) == [("call_a", {"k": 1}), ("call_b", {"k": 2})]


def test_B_002_a_call_without_id_gets_one() -> None:
    message = message_of("B-002")
    assert [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls] == [("rec", {"p": "x"})]
    assert message.tool_calls[0].call_id == "made_up_1"
    assert message.text == ""
    sent = next_request(message)
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == message.tool_calls[0].call_id


def test_B_003_another_id_on_a_used_index_is_another_call() -> None:
    message = message_of("B-003")
    assert calls_of(message) == [("call_a", {"p": "a"}), ("call_b", {"p": "b"})]
    sent = next_request(message)
    assert [json.loads(call["function"]["arguments"]) for call in sent[1]["tool_calls"]] == [{"p": "a"}, {"p": "b"}]
    assert [result["tool_call_id"] for result in sent[2:]] == ["call_a", "call_b"]


def test_B_004_glued_arguments_are_split_at_the_ends_of_objects() -> None:
    message = message_of("B-004")
    assert [arguments for _, arguments in calls_of(message)] == [{"q": "a}{"}, {"q": "b"}, {"q": "c"}]
    assert len({call_id for call_id, _ in calls_of(message)}) == 3


@pytest.mark.parametrize("arguments", ['"arguments":""', '"arguments":null', '"arguments":"  "', ""])
def test_B_005_no_arguments_are_an_empty_object(arguments: str) -> None:
    wire = CASES["B-005"]["wire"].replace(',"arguments":""', f",{arguments}" if arguments else "")
    message = message_of("B-005", wire)
    assert [(call.name, call.arguments_json) for call in message.tool_calls] == [("now", "{}")]
    assert next_request(message)[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_B_006_arguments_as_an_object_are_kept_as_json() -> None:
    message = message_of("B-006")
    assert calls_of(message) == [("o1", {"deep": {"x": [1, None, True]}})]
    assert isinstance(next_request(message)[1]["tool_calls"][0]["function"]["arguments"], str)


def test_B_007_a_name_may_come_after_arguments() -> None:
    message = message_of("B-007")
    assert [(call.name, call.arguments_json) for call in message.tool_calls] == [("rec", '{"z":5}')]


@pytest.mark.parametrize("has_finish_reason", [True, False])
def test_B_008_streamed_calls_run_whatever_the_label_says(has_finish_reason: bool) -> None:
    events = CASES["B-008"]["wire"].split("\n\n")
    wire = "\n\n".join(events if has_finish_reason else [events[0], *events[2:]])
    message = message_of("B-008", wire)
    assert (message.stop_reason, message.text) == (StopReason.TOOL_USE, "Looking. ")
    assert calls_of(message) == [("s1", {})]
    assert next_request(message)[1]["content"] == "Looking. "


def test_B_009_the_output_limit_drops_all_calls() -> None:
    message = message_of("B-009")
    assert (message.stop_reason, message.tool_calls) == (StopReason.LENGTH, ())


def test_B_010_usage_may_come_last_without_choices() -> None:
    message = message_of("B-010")
    assert message.text == "hi"
    assert (message.usage.input_tokens, message.usage.output_tokens, message.usage.unavailable) == (11, 2, False)


def test_B_011_fields_need_no_space_behind_the_colon() -> None:
    assert message_of("B-011").text == " two three"


def test_B_012_comments_and_empty_events_are_nothing() -> None:
    assert message_of("B-012").text == "ok"


def test_B_013_all_line_ends_a_bom_and_several_data_lines() -> None:
    assert message_of("B-013").text == "AB"


def test_B_014_unicode_separators_are_text() -> None:
    message = message_of("B-014")
    assert message.text == "a\u2028b\u2029c\u0085d"
    assert calls_of(message) == [("u1", {"t": "x\u2028y"})]


def test_B_015_utf8_without_a_charset() -> None:
    assert message_of("B-015").text == "\u2705 ok"


def test_B_016_a_cut_call_is_no_call() -> None:
    failed = decode(*chunks_of(CASES["B-016"]))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_STREAM_CUT", True)
    assert failed.partial.content == ()


@pytest.mark.parametrize("end", ["", "data: [DONE]\n\n"])
def test_B_017_a_finish_reason_is_an_end_with_and_without_mark(end: str) -> None:
    message = message_of("B-017", CASES["B-017"]["wire"] + end)
    assert (message.text, message.stop_reason) == ("fine", StopReason.STOP)


def test_B_027_comments_are_no_progress() -> None:
    decoder = OpenAIChat(new_call_id=lambda: "x").decoder(REQUEST, "acme")
    decoder.feed(CASES["B-027"]["wire"].encode())
    assert decoder.progress == 1
    decoder.feed(b": keepalive\n\n" * 10)
    assert decoder.progress == 1


def test_B_028_typed_parts_are_text_and_one_block_of_reasoning() -> None:
    events = merged(decode(*chunks_of(CASES["B-028"])))
    assert events[:4] == [
        ReasoningDelta(0, "I should greet"),
        BlockEnded(0),
        TextDelta(1, "Hello!"),
        BlockEnded(1),
    ]
    assert [block.text for block in message_of("B-028").content if isinstance(block, Reasoning)] == ["I should greet"]


@settings(max_examples=200, deadline=None)
@given(case_id=st.sampled_from(sorted(CASES)), data=st.data())
def test_any_split_of_any_case_gives_the_same_events(case_id: str, data: st.DataObject) -> None:
    body = b"".join(chunks_of(CASES[case_id]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert merged(decode(*chunks)) == merged(decode(body))


@pytest.mark.parametrize("case_id", sorted(CASES))
def test_single_bytes_give_the_same_events(case_id: str) -> None:
    body = b"".join(chunks_of(CASES[case_id]))
    assert merged(decode(*[body[at : at + 1] for at in range(len(body))])) == merged(decode(body))


@settings(max_examples=200, deadline=None)
@given(case_id=st.sampled_from(sorted(CASES)), data=st.data())
def test_truncated_and_garbled_streams_end_in_one_terminal_event(case_id: str, data: st.DataObject) -> None:
    body = bytearray(b"".join(chunks_of(CASES[case_id])))
    del body[data.draw(st.integers(0, len(body))) :]
    for at in data.draw(st.lists(st.integers(0, max(0, len(body) - 1)), max_size=4)):
        if body:
            body[at] = data.draw(st.integers(0, 255))
    events = decode(bytes(body))
    assert [isinstance(event, Done | Failed) for event in events].count(True) == 1
    assert isinstance(events[-1], Done | Failed)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_garbage_ends_in_one_terminal_event(body: bytes) -> None:
    for garbage in (body, b"data: " + body + b"\n\n", b"{" + body):
        events = decode(garbage)
        assert isinstance(events[-1], Done | Failed)
        assert len([event for event in events if isinstance(event, Done | Failed)]) == 1


FIELDS = st.sampled_from(
    re.findall(
        r"\w+",
        "choices delta message content tool_calls function_call function name arguments index id finish_reason usage"
        " error reasoning_content reasoning reasoning_details type text prompt_tokens completion_tokens code",
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(FIELDS, children, max_size=5),
    max_leaves=12,
)
OBJECTS = st.dictionaries(FIELDS, JSON, max_size=4)
CHUNKS = OBJECTS | OBJECTS.map(lambda delta: {"choices": [{"delta": delta}]})


@settings(max_examples=200, deadline=None)
@given(st.lists(CHUNKS, max_size=4))
def test_json_of_any_shape_ends_in_one_terminal_event(chunks: list[dict[str, Any]]) -> None:
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    events = decode(body)
    assert isinstance(events[-1], Done | Failed)
    for event in events:
        if isinstance(event, Done):
            for call in event.message.tool_calls:
                assert call.name
                assert call.call_id
                assert isinstance(json.loads(call.arguments_json), dict)
