"""openai_chat/tool_call_assembly.py through the decoder: which fragments make which calls."""

import json

import pytest
from tests.unit.providers.openai_chat.decoding import (
    DONE,
    call,
    delta,
    failure_of,
    message_of,
    new_decoder,
)

from lanewayd.messages import AssistantMessage, StopReason, Text, ToolCall, UserMessage
from lanewayd.providers.interface import ModelRequest


def test_interleaved_calls_attach_by_index() -> None:
    message = message_of(
        call(0, "c1", name="a", arguments='{"x":'),
        call(1, "c2", name="b", arguments='{"y":'),
        call(0, None, arguments="1}"),
        call(1, None, arguments="2}"),
        delta("tool_calls"),
    )
    assert message.tool_calls == (ToolCall("c1", "a", '{"x":1}'), ToolCall("c2", "b", '{"y":2}'))


def test_a_late_id_names_the_call_of_its_index() -> None:
    message = message_of(call(0, None, name="a", arguments="{"), call(0, "late", arguments="}"), delta("tool_calls"))
    assert [item.call_id for item in message.tool_calls] == ["late"]


def test_a_repeated_name_replaces_and_never_concatenates() -> None:
    message = message_of(
        call(0, "c1", name="rec", arguments="{"), call(0, "c1", name="rec", arguments="}"), delta("stop")
    )
    assert message.tool_calls == (ToolCall("c1", "rec", "{}"),)


def test_one_id_on_two_indexes_is_two_calls_with_two_ids() -> None:
    message = message_of(
        call(0, "same", name="a", arguments="{}"), call(1, "same", name="b", arguments="{}"), delta("tool_calls")
    )
    assert [(item.call_id, item.name) for item in message.tool_calls] == [("same", "a"), ("made_up_1", "b")]


def test_ids_that_the_session_knows_are_replaced() -> None:
    earlier = AssistantMessage((ToolCall("call_0", "rec", "{}"),), "acme", "m1", StopReason.TOOL_USE)
    request = ModelRequest("m1", "", (UserMessage("hi"), earlier))
    message = message_of(call(0, "call_0", name="rec", arguments="{}"), delta("tool_calls"), request=request)
    assert message.tool_calls[0].call_id == "made_up_1"


def test_nameless_fragments_of_two_calls_without_id_and_index_are_two_calls() -> None:
    message = message_of(
        call(None, None, name="a", arguments='{"x":1}'), call(None, None, name="a", arguments='{"x":2}'), delta("stop")
    )
    assert [item.arguments_json for item in message.tool_calls] == ['{"x":1}', '{"x":2}']
    other = message_of(call(0, None, name="a", arguments="{}"), call(0, None, name="b", arguments="{}"), delta("stop"))
    assert [item.name for item in other.tool_calls] == ["a", "b"]


def test_large_integers_are_preserved() -> None:
    arguments = '{"n":12345678901234567890}'
    assert (
        message_of(call(0, "c", name="a", arguments=arguments), delta("stop")).tool_calls[0].arguments_json == arguments
    )


@pytest.mark.parametrize(
    "arguments",
    ['{"a":', "[1]", '"text"', "1", '{"a":1} x', '{"a":NaN}', '{"a":1}{"b":', "nul", '{"a":' * 200 + "1" + "}" * 200],
)
def test_arguments_that_are_no_json_object_fail_the_turn(arguments: str) -> None:
    failed = failure_of(delta(content="t"), call(0, "c", name="rec", arguments=arguments), delta("tool_calls"), DONE)
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "incomplete or malformed tool call" in failed.error.message
    assert failed.partial.content == (Text("t"),)


def test_a_call_without_a_name_fails_the_turn_but_an_empty_one_beside_text_is_none() -> None:
    assert "no name" in failure_of(call(0, "c", arguments="{}"), delta("tool_calls"), DONE).error.message
    message = message_of(delta(content="hi"), call(0, "c", name="", arguments=""), delta("stop"), DONE)
    assert (message.content, message.stop_reason) == ((Text("hi"),), StopReason.STOP)


def test_arguments_over_the_limit_are_an_error() -> None:
    piece = call(0, "c", name="rec", arguments="x" * 200_000)
    assert "256,000" in failure_of(piece, piece).error.message


def test_too_many_calls_are_an_error() -> None:
    chunks = [call(index, f"c{index}", name="rec") for index in range(257)]
    assert "256" in failure_of(*chunks).error.message


def test_escaped_lone_surrogates_in_arguments_are_mended() -> None:
    arguments = (
        message_of(call(0, "c", name="rec", arguments=r'{"a":"\ud83d"}'), delta("stop")).tool_calls[0].arguments_json
    )
    assert json.loads(arguments) == {"a": "\ufffd"}


def test_signs_of_a_call_that_are_no_call_are_ignored() -> None:
    chunk = delta("stop", content="x", tool_calls=[None, 3, {}, {"function": None}])
    assert message_of(chunk).content == (Text("x"),)


# The legacy function_call


def test_a_legacy_call_counts_when_the_finish_reason_says_so() -> None:
    message = message_of(
        delta(function_call={"name": "rec", "arguments": '{"a":'}),
        delta(function_call={"arguments": "1}"}),
        delta("function_call"),
        DONE,
    )
    assert message.tool_calls == (ToolCall("made_up_1", "rec", '{"a":1}'),)
    assert message.stop_reason is StopReason.TOOL_USE


def test_a_legacy_call_gives_way_to_text_and_to_modern_calls() -> None:
    legacy = delta(function_call={"name": "old", "arguments": "{}"})
    assert message_of(legacy, delta(content="text"), delta("stop"), DONE).content == (Text("text"),)
    modern = message_of(legacy, call(0, "c", name="new", arguments="{}"), delta("function_call"), DONE)
    assert [item.name for item in modern.tool_calls] == ["new"]


def test_text_behind_a_legacy_call_is_held_back_within_limits() -> None:
    legacy = delta(function_call={"name": "old", "arguments": "{}"})
    decoder = new_decoder()
    assert decoder.feed(legacy + delta(content="a")) == []
    failed = failure_of(legacy, *[delta(content="a") for _ in range(1_025)])
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
