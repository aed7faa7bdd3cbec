"""openai_responses: calls, and what the end of a response recovers: spec 05, R-5.63 to R-5.69."""

import json
from typing import Any

import pytest
from tests.unit.providers.openai_responses.decoding import (
    added,
    all_arguments,
    arguments,
    call,
    completed,
    decode,
    done,
    failure_of,
    incomplete,
    message,
    message_of,
    new_decoder,
    reasoning,
    text,
)

from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    UserMessage,
)
from lanewayd.providers.interface import BlockEnded, Failed, ModelRequest, TextDelta

# Calls


def test_the_id_of_the_item_is_kept_beside_the_id_of_the_call() -> None:
    (asked,) = message_of(done(0, call("{}", "call_7", "fc_7")), completed()).tool_calls
    assert (asked.call_id, json.loads(asked.signature)) == ("call_7", {"type": "function_call", "id": "fc_7"})


def test_a_missing_call_id_is_made_up_and_the_id_of_the_item_may_come_at_the_end() -> None:
    stream = [added(0, call("", "", "")), done(0, call("{}", "", "fc_2")), completed()]
    (asked,) = message_of(*stream).tool_calls
    assert (asked.call_id, json.loads(asked.signature)["id"]) == ("made_up_1", "fc_2")


def test_an_id_that_the_session_has_is_replaced() -> None:
    before = AssistantMessage((ToolCall("call_1", "rec", "{}"),), "acme", "m1", StopReason.TOOL_USE)
    request = ModelRequest("m1", "", (UserMessage("hi"), before))
    (asked,) = message_of(done(0, call()), completed(), request=request).tool_calls
    assert asked.call_id == "made_up_1"


def test_all_arguments_replace_what_was_streamed_unless_they_are_empty() -> None:
    begun = [added(0, call("")), arguments(0, '{"a":')]
    item = done(0, call(""))
    assert message_of(*begun, all_arguments(0, '{"a":1}'), item, completed()).tool_calls[0].arguments_json == '{"a":1}'
    assert message_of(*begun, all_arguments(0, '{"b":2}'), item, completed()).tool_calls[0].arguments_json == '{"b":2}'
    kept = [*begun, arguments(0, "3}"), all_arguments(0, ""), item]
    assert message_of(*kept, completed()).tool_calls[0].arguments_json == '{"a":3}'
    late = [*kept, all_arguments(0, '{"late":1}'), arguments(0, "more")]
    assert message_of(*late, completed()).tool_calls[0].arguments_json == '{"a":3}'


def test_arguments_of_nobody_make_the_open_calls_need_their_complete_items() -> None:
    begun = [added(0, call("")), arguments(0, "{}"), arguments(9, "x")]
    assert message_of(*begun, done(0, call('{"a":1}')), completed()).tool_calls[0].arguments_json == '{"a":1}'
    assert "whose they are" in failure_of(*begun, done(0, call("")), completed()).error.message
    # A call that was complete before is not concerned, and one that begins later neither.
    apart = [done(0, call("{}")), arguments(9, "x"), added(1, call("", "c2", "f2")), arguments(1, "{}")]
    assert len(message_of(*apart, done(1, call("", "c2", "f2")), completed()).tool_calls) == 2


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (call(status="incomplete"), "was not completed"),
        (call(status="in_progress"), "was not completed"),
        (call(name=""), "has no name"),
        (call(name=None), "has no name"),
        (call(name="other"), "named other"),
        (call("[1]"), "no JSON object"),
        (call('{"a":'), "no JSON object"),
        (call('{"a":1}{"b":2}'), "no JSON object"),
        (call('{"a":NaN}'), "no JSON object"),
        (call('{"a":"' + "x" * 256_000 + '"}'), "256,000 bytes"),
        ({**call(), "arguments": {"a": [[[[]]]] * 64_000}}, "256,000 bytes"),
    ],
)
def test_a_complete_call_that_breaks_a_rule_fails_the_answer(item: dict[str, Any], problem: str) -> None:
    failed = failure_of(text(0, "a"), added(1, call("", name="rec")), done(1, item), completed())
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert problem in failed.error.message
    assert failed.partial.text == "a"


def test_deltas_beyond_the_limit_are_refused_at_once() -> None:
    begun = [added(0, call("")), *[arguments(0, "x" * 100_000)] * 3]
    decoder = new_decoder()
    events = [event for chunk in begun for event in decoder.feed(chunk)]
    assert isinstance(events[-1], Failed)
    assert "256,000 bytes" in events[-1].error.message


def test_arguments_as_an_object_are_taken() -> None:
    item = {**call(), "arguments": {"a": None}}
    assert message_of(done(0, item), completed()).tool_calls[0].arguments_json == '{"a": null}'


@pytest.mark.parametrize("given", [None, "", "{}"])
def test_no_arguments_are_an_empty_object(given: Any) -> None:
    assert message_of(done(0, {**call(), "arguments": given}), completed()).tool_calls[0].arguments_json == "{}"


def test_a_call_without_a_complete_item_fails_the_answer() -> None:
    begun = [added(0, call("")), arguments(0, "{}"), all_arguments(0, "{}")]
    assert "before it was completed" in failure_of(*begun, completed()).error.message
    assert failure_of(*begun).error.reason == "PROVIDER_STREAM_CUT"


def test_too_many_calls_and_items_fail_the_answer() -> None:
    calls = [done(n, call("{}", f"c{n}", f"f{n}")) for n in range(257)]
    assert len(message_of(*calls[:256], completed()).tool_calls) == 256
    assert "256 tool calls" in failure_of(*calls, completed()).error.message
    items = [done(n, message("", id=f"m{n}")) for n in range(1025)]
    assert "1024 items" in failure_of(*items, completed()).error.message
    listed = [message("", id=f"m{n}") for n in range(1025)]
    assert "1024 items" in failure_of(completed(*listed)).error.message


# What the end of the response recovers


def test_missing_messages_and_calls_are_taken_from_the_end() -> None:
    events = decode(completed(message("Hello", id="m1"), call('{"a":1}')))
    assert events[:-1] == [TextDelta(0, "Hello"), BlockEnded(0)]
    answer = message_of(completed(message("Hello", id="m1"), call('{"a":1}')))
    assert [each.arguments_json for each in answer.tool_calls] == ['{"a":1}']
    begun = [text(0, "Hel"), added(1, call("")), arguments(1, '{"a"')]
    answer = message_of(*begun, completed(message("Hello"), call('{"a":2}')))
    assert (answer.text, answer.tool_calls[0].arguments_json) == ("Hello", '{"a":2}')


def test_what_was_streamed_is_not_taken_again_whatever_its_ids() -> None:
    streamed = [done(0, reasoning("hm", "x")), done(1, message("a", id="m1")), done(2, call("{}", "c1", "f1"))]
    listed = [reasoning("hm", "x", "other"), message("a", id="other"), call("{}", "c1", "other")]
    answer = message_of(*streamed, completed(*listed))
    assert [type(block) for block in answer.content] == [Reasoning, Text, ToolCall]


def test_an_item_that_is_missing_before_streamed_ones_fails_the_answer() -> None:
    streamed = [text(1, "b", item_id="m2"), done(1, message("b", id="m2"))]
    failed = failure_of(*streamed, completed(message("a", id="m1"), message("b", id="m2")))
    assert "was not streamed" in failed.error.message
    assert failed.partial.text == "b"
    two_calls = completed(call("{}", "c1", "f1"), call("{}", "c2", "f2"))
    assert "was not streamed" in failure_of(done(1, call("{}", "c2", "f2")), two_calls).error.message


def test_an_answer_cut_by_its_length_runs_no_call_not_even_one_from_its_end() -> None:
    begun = [text(0, "half"), done(1, call()), done(2, call("{}", "c2", "f2", status="incomplete"))]
    answer = message_of(*begun, incomplete("max_output_tokens", message("half of it"), call(), call("{}", "c3", "f3")))
    assert (answer.stop_reason, answer.provider_stop) == (StopReason.LENGTH, "max_output_tokens")
    assert answer.text == "half of it"
    assert answer.tool_calls == ()
