"""openai_responses/decode.py: spec 05, R-5.62 to R-5.72 and the stop reasons of section 3, rule by rule."""

import json
from typing import Any

import pytest
from tests.unit.providers.openai_responses.decoding import (
    added,
    arguments,
    call,
    completed,
    decode,
    done,
    event,
    failure_of,
    incomplete,
    message,
    message_of,
    new_decoder,
    reasoning,
    text,
    thought,
)

from lanewayd.messages import (
    Reasoning,
    RunError,
    StopReason,
    Text,
    ToolCall,
    Usage,
)
from lanewayd.providers.interface import BlockEnded, Done, ReasoningDelta, TextDelta

# Items


def test_items_become_blocks_in_their_order() -> None:
    stream = [
        event("response.created", response={"status": "in_progress"}),
        added(0, reasoning()),
        thought(0, "hm"),
        done(0, reasoning("hm", "b3BhcXVl")),
        added(1, message("", id="msg_1")),
        text(1, "Look"),
        text(1, "ing."),
        done(1, message("Looking.", id="msg_1")),
        added(2, call("")),
        arguments(2, '{"a":'),
        arguments(2, "1}"),
        done(2, call('{"a":1}')),
        completed(),
    ]
    events = decode(*stream)
    assert events[:-1] == [
        ReasoningDelta(0, "hm"),
        BlockEnded(0),
        TextDelta(1, "Look"),
        TextDelta(1, "ing."),
        BlockEnded(1),
    ]
    answer = message_of(*stream)
    assert (answer.stop_reason, answer.provider_stop) == (StopReason.TOOL_USE, "completed")
    thinking, said, asked = answer.content
    assert isinstance(thinking, Reasoning)
    assert isinstance(said, Text)
    assert isinstance(asked, ToolCall)
    assert (thinking.text, said.text) == ("hm", "Looking.")
    assert (asked.call_id, asked.name, asked.arguments_json) == ("call_1", "rec", '{"a":1}')


def test_items_are_found_by_their_index_whatever_their_ids() -> None:
    answer = message_of(
        text(0, "a", item_id="x1"), text(0, "b", item_id="x2"), done(0, message("ab", id="x3")), completed()
    )
    assert answer.text == "ab"
    assert len(answer.content) == 1


def test_items_without_an_index_are_found_by_their_ids() -> None:
    stream = [
        added(None, message("", id="m1")),
        added(None, call("", "c1", "f1")),
        added(None, call("", "c2", "f2")),
        arguments(None, '{"n":2}', item_id="f2"),
        arguments(None, '{"n":1}', item_id="f1"),
        text(None, "hey", item_id="m1"),
        done(None, call("", "c1", "f1")),
        done(None, call("", "c2", "f2")),
        completed(),
    ]
    answer = message_of(*stream)
    assert answer.text == "hey"
    assert [(each.call_id, each.arguments_json) for each in answer.tool_calls] == [("c1", '{"n":1}'), ("c2", '{"n":2}')]


def test_items_without_index_and_id_belong_to_the_open_one() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "ab"}]}
    assert message_of(added(None, {"type": "message"}), done(None, item), completed()).content == (Text("ab"),)


def test_items_of_the_services_own_tools_are_nothing() -> None:
    search = {"type": "web_search_call", "id": "ws_1"}
    answer = message_of(added(0, search), done(0, search), text(1, "a"), completed(search, message("a")))
    assert answer.content == (Text("a"),)


def test_the_type_of_an_event_stands_in_its_json_or_else_in_its_line() -> None:
    bare = b'event: response.output_text.delta\ndata: {"output_index":0,"delta":"a"}\n\n'
    wrong = b'event: ping\ndata: {"type":"response.output_text.delta","output_index":0,"delta":"b"}\n\n'
    assert message_of(bare, wrong, completed()).text == "ab"


def test_a_refusal_is_what_the_model_says() -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    assert (
        message_of(event("response.refusal.delta", output_index=0, delta="I cannot."), completed()).text == "I cannot."
    )
    assert message_of(done(0, refused), completed()).text == "I cannot."


def test_surrogates_split_between_deltas_are_joined_and_lone_ones_replaced() -> None:
    stream = [text(0, "\ud83d"), text(0, "\ude00\ud83d"), done(0, message("ignored")), text(1, "\ude00"), completed()]
    assert message_of(*stream).text == "\U0001f600\ufffd\ufffd"
    glued = message_of(
        added(0, call("")), arguments(0, '{"a":"\ud83d'), arguments(0, '\ude00"}'), done(0, call("")), completed()
    )
    assert json.loads(glued.tool_calls[0].arguments_json) == {"a": "\U0001f600"}


@pytest.mark.parametrize("delta", [None, 1, [], {}, ""])
def test_a_delta_that_is_no_text_is_nothing(delta: Any) -> None:
    assert message_of(text(0, delta), thought(0, delta), arguments(0, delta), completed()).content == ()


# Text


def test_the_complete_item_adds_what_its_deltas_left_out() -> None:
    events = decode(text(0, "Hel"), done(0, message("Hello")), completed(message("Hello")))
    assert events[:-1] == [TextDelta(0, "Hel"), TextDelta(0, "lo"), BlockEnded(0)]
    assert message_of(done(0, message("Hello")), completed()).text == "Hello"
    assert message_of(text(0, "Hello"), done(0, message("Other")), completed()).text == "Hello"


def test_a_message_that_repeats_the_one_before_it_and_goes_on_is_one_text() -> None:
    stream = [
        added(0, message("", id="m1")),
        text(0, "Let me see."),
        done(0, message("Let me see.", id="m1")),
        added(1, message("", id="m2")),
        text(1, "Let me"),
        text(1, " see. Now"),
        text(1, " I know."),
        done(1, message("Let me see. Now I know.", id="m2")),
        completed(),
    ]
    events = decode(*stream)
    assert events[:-1] == [
        TextDelta(0, "Let me see."),
        TextDelta(0, " Now"),
        TextDelta(0, " I know."),
        BlockEnded(0),
    ]
    answer = message_of(*stream)
    assert answer.text == "Let me see. Now I know."
    assert len(answer.content) == 1


def test_a_message_that_only_begins_like_the_one_before_it_is_another_text() -> None:
    first = [text(0, "Let me see."), done(0, message("Let me see."))]
    second = [added(1, message("")), text(1, "Let me"), text(1, " think."), done(1, message("Let me think."))]
    assert [block.text for block in message_of(*first, *second, completed()).content if isinstance(block, Text)] == [
        "Let me see.",
        "Let me think.",
    ]
    shorter = [added(1, message("")), text(1, "Let"), done(1, message("Let"))]
    assert message_of(*first, *shorter, completed()).text == "Let me see.Let"
    unfinished = [added(1, message("")), text(1, "Let")]
    assert message_of(*first, *unfinished, completed()).text == "Let me see.Let"


def test_messages_with_something_between_them_are_apart() -> None:
    between = [done(1, reasoning("hm", item_id="rs_9"))]
    stream = [text(0, "a"), done(0, message("a")), *between, text(2, "ab"), done(2, message("ab")), completed()]
    assert message_of(*stream).text == "aab"
    held = [text(0, "abc"), done(0, message("abc")), text(1, "ab"), added(2, call()), text(1, "c"), done(2, call())]
    answer = message_of(*held, completed())
    assert [block.text for block in answer.content if isinstance(block, Text)] == ["abc", "abc"]


def test_the_phase_of_a_message_is_kept() -> None:
    stream = [done(0, message("a", id="m1", phase="commentary")), done(1, message("b", phase="final_answer"))]
    first, second = message_of(*stream, completed()).content
    assert isinstance(first, Text)
    assert json.loads(first.signature) == {"type": "message", "id": "m1", "phase": "commentary"}
    assert isinstance(second, Text)
    assert json.loads(second.signature) == {"type": "message", "phase": "final_answer"}
    assert message_of(done(0, message("a", phase="odd")), completed()).content == (Text("a"),)


# Reasoning


def test_reasoning_is_kept_whole_beside_its_readable_text() -> None:
    whole = reasoning("one\n\ntwo", "b3BhcXVl")
    stream = [added(0, reasoning()), thought(0, "one"), thought(0, "two", summary_index=1), done(0, whole), completed()]
    (block,) = message_of(*stream).content
    assert isinstance(block, Reasoning)
    assert block.text == "one\n\ntwo"
    assert json.loads(block.signature) == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        "encrypted_content": "b3BhcXVl",
    }


def test_reasoning_without_a_readable_text_is_kept_and_not_shown() -> None:
    stream = [done(0, reasoning("", "b3BhcXVl")), text(1, "a"), done(1, message("a")), completed()]
    assert decode(*stream)[:-1] == [TextDelta(1, "a"), BlockEnded(1)]
    hidden, _ = message_of(*stream).content
    assert isinstance(hidden, Reasoning)
    assert hidden.text == ""
    assert json.loads(hidden.signature)["encrypted_content"] == "b3BhcXVl"


def test_reasoning_in_plain_text_grows_without_paragraphs() -> None:
    pieces = [
        event("response.reasoning_text.delta", output_index=0, content_index=n, delta=d) for n, d in enumerate("abc")
    ]
    (block,) = message_of(*pieces, completed()).content
    assert block == Reasoning("abc")
    item = {"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "abc"}]}
    (block,) = message_of(done(0, item), completed()).content
    assert isinstance(block, Reasoning)
    assert block.text == "abc"
    assert json.loads(block.signature)["content"] == [{"type": "reasoning_text", "text": "abc"}]


def test_encrypted_content_is_filled_in_from_the_end_of_the_response() -> None:
    stream = [done(0, reasoning("hm")), text(1, "a"), done(1, message("a"))]
    (block, _) = message_of(*stream, completed(reasoning("hm", "bGF0ZQ"), message("a"))).content
    assert isinstance(block, Reasoning)
    assert json.loads(block.signature)["encrypted_content"] == "bGF0ZQ"
    own = [done(0, reasoning("hm", "b3du")), text(1, "a"), done(1, message("a"))]
    (block, _) = message_of(*own, completed(reasoning("hm", "bGF0ZQ"), message("a"))).content
    assert isinstance(block, Reasoning)
    assert json.loads(block.signature)["encrypted_content"] == "b3du"


def test_reasoning_that_was_cut_has_no_signature() -> None:
    failed = failure_of(added(0, reasoning()), thought(0, "hm"))
    assert failed.partial.content == (Reasoning("hm"),)


# The end


def test_usage_comes_with_the_end() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 120,
    }
    assert message_of(text(0, "a"), completed(usage=usage)).usage == Usage(30, 20, 60, 10, 12)
    assert message_of(text(0, "a"), completed()).usage == Usage(unavailable=True)
    odd = {"input_tokens": -1, "output_tokens": "7", "input_tokens_details": [], "output_tokens_details": None}
    assert message_of(text(0, "a"), completed(usage=odd)).usage == Usage(unavailable=True)
    assert message_of(text(0, "a"), completed(usage={**odd, "output_tokens": 7})).usage == Usage(0, 7)


def test_without_calls_a_completed_answer_is_a_stop() -> None:
    assert message_of(text(0, "a"), completed()).stop_reason is StopReason.STOP


def test_other_reasons_to_leave_an_answer_incomplete_are_failures() -> None:
    filtered = failure_of(text(0, "a"), incomplete("content_filter"))
    assert (filtered.error.reason, filtered.partial.text) == ("PROVIDER_REFUSED", "a")
    assert failure_of(incomplete("odd")).error.reason == "PROVIDER_BAD_RESPONSE"
    assert "odd" in failure_of(incomplete("odd")).error.message
    assert failure_of(event("response.incomplete", response={})).error.reason == "PROVIDER_BAD_RESPONSE"


@pytest.mark.parametrize(
    ("code", "said", "reason", "is_transient"),
    [
        ("server_error", "An error occurred.", "PROVIDER_UNAVAILABLE", True),
        ("rate_limit_exceeded", "Rate limit reached per min", "PROVIDER_RATE_LIMITED", True),
        ("invalid_api_key", "Incorrect API key provided", "PROVIDER_AUTH", False),
        ("context_length_exceeded", "Your input exceeds the context window", "CONTEXT_OVERFLOW", False),
    ],
)
@pytest.mark.parametrize("shape", ["failed", "flat", "nested"])
def test_an_error_in_the_stream_fails_the_answer(
    code: str, said: str, reason: str, is_transient: bool, shape: str
) -> None:
    error = {"code": code, "message": said}
    events = {
        "failed": event("response.failed", response={"status": "failed", "error": error}),
        "flat": event("error", **error, param=None),
        "nested": event("error", error=error),
    }
    failed = failure_of(text(0, "a"), events[shape], completed())
    assert (failed.error.reason, failed.is_transient, failed.error.http_status) == (reason, is_transient, 200)
    assert said in failed.error.message
    assert failed.partial.text == "a"


def test_an_answer_that_failed_or_was_cancelled_says_so_without_an_error_object() -> None:
    assert failure_of(event("response.failed", response={})).error.reason == "PROVIDER_UNAVAILABLE"
    assert failure_of(event("response.cancelled")).error.reason == "PROVIDER_STREAM_CUT"
    assert failure_of(event("response.done", response={"status": "odd"})).error.reason == "PROVIDER_BAD_RESPONSE"
    assert message_of(event("response.done", response={"status": "completed", "output": [message("a")]})).text == "a"


def test_a_stream_without_its_last_event_was_cut() -> None:
    failed = failure_of(text(0, "a"), b"data: [DONE]\n\n")
    assert (failed.error.reason, failed.is_transient, failed.partial.text) == ("PROVIDER_STREAM_CUT", True, "a")
    assert failed.partial.usage.unavailable
    assert decode(text(0, "a"))[:-1] == [TextDelta(0, "a")]


def test_another_language_is_told_from_a_cut() -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
    assert failure_of(chunk).error.reason == "PROVIDER_BAD_RESPONSE"
    assert failure_of(b"<html>no</html>").error.reason == "PROVIDER_BAD_RESPONSE"
    assert failure_of(b"data: [1]\n\n").error.reason == "PROVIDER_BAD_RESPONSE"
    assert failure_of(b"data: {\n\n").error.reason == "PROVIDER_BAD_RESPONSE"


def test_a_whole_response_in_place_of_a_stream_counts() -> None:
    whole = {"object": "response", "status": "completed", "error": None, "output": [message("a"), call()]}
    answer = message_of(json.dumps(whole).encode())
    assert (answer.text, len(answer.tool_calls)) == ("a", 1)
    error = failure_of(b'{"error":{"message":"the model `m1` does not exist","code":"model_not_found"}}')
    assert error.error.reason == "PROVIDER_MODEL_NOT_FOUND"
    assert failure_of(b"{}").error.reason == "PROVIDER_BAD_RESPONSE"


def test_what_follows_the_end_does_not_matter() -> None:
    decoder = new_decoder()
    assert isinstance(decoder.feed(completed(message("a")) + b"data: garbage\n\n")[-1], Done)
    assert decoder.is_finished
    assert decoder.feed(event("error", message="late")) == []
    assert decoder.end() == []


def test_a_fault_outside_the_body_keeps_what_was_said() -> None:
    decoder = new_decoder()
    decoder.feed(text(0, "a") + added(1, call("")) + event("response.in_progress"))
    assert (decoder.progress, decoder.is_complete) == (3, False)
    failed = decoder.fail(RunError("PROVIDER_STALLED", "x"), is_transient=True)
    assert (failed.partial.content, decoder.is_finished, decoder.end()) == ((Text("a"),), True, [])
