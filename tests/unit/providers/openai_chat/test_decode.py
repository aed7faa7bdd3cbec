"""openai_chat/decode.py beyond the behaviour cases: spec 05, R-5.34 to R-5.61, rule by rule."""

import json
from typing import Any

import pytest
from tests.unit.providers.openai_chat.decoding import (
    DONE,
    call,
    decode,
    delta,
    event,
    failure_of,
    message_of,
    new_decoder,
)

from lanewayd.messages import Reasoning, RunError, StopReason, Text, ToolCall
from lanewayd.providers.interface import BlockEnded, Done, Failed, ReasoningDelta, TextDelta

# Reasoning


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_keeps_the_field_it_came_in(field: str) -> None:
    events = decode(delta(**{field: "hm"}), delta(**{field: "m"}), delta("stop", content="ok"), DONE)
    assert events[:5] == [
        ReasoningDelta(0, "hm"),
        ReasoningDelta(0, "m"),
        BlockEnded(0),
        TextDelta(1, "ok"),
        BlockEnded(1),
    ]
    assert message_of(delta("stop", content="ok", **{field: "hm"})).content == (Reasoning("hm", field), Text("ok"))


def test_the_first_reasoning_field_that_is_not_empty_counts() -> None:
    chunk = delta("stop", reasoning_content="", reasoning="a", reasoning_text="b", content="x")
    assert message_of(chunk).content[0] == Reasoning("a", "reasoning")


def test_readable_reasoning_details_count_when_no_field_has_them() -> None:
    details = [{"type": "reasoning.summary", "summary": "sum"}, {"type": "reasoning.text", "text": "txt"}]
    assert message_of(delta("stop", reasoning_details=details)).content == (Reasoning("sumtxt", "reasoning"),)
    assert message_of(delta("stop", reasoning="a", reasoning_details=details)).content == (Reasoning("a", "reasoning"),)


def test_encrypted_reasoning_stays_with_the_call_of_its_id() -> None:
    item = {"type": "reasoning.encrypted", "id": "c1", "data": "b3BhcXVl"}
    message = message_of(call(0, "c1", name="rec", arguments="{}"), delta("tool_calls", reasoning_details=[item]), DONE)
    assert json.loads(message.tool_calls[0].signature) == item
    assert message.content == message.tool_calls


def test_think_tags_become_reasoning_across_chunks() -> None:
    events = decode(delta(content="<thi"), delta(content="nk>a</th"), delta(content="ink>b"), delta("stop"), DONE)
    assert [type(event) for event in events] == [ReasoningDelta, BlockEnded, TextDelta, BlockEnded, Done]
    assert message_of(delta("stop", content="<think>a</think>b")).content == (Reasoning("a"), Text("b"))


def test_the_beginning_of_a_tag_at_the_end_is_text() -> None:
    assert message_of(delta("stop", content="1 <thi")).text == "1 <thi"


# Text


def test_a_frame_that_repeats_all_text_is_not_appended() -> None:
    frames = [delta(content="Hello "), delta(content="world"), delta("stop", content="Hello world"), DONE]
    assert message_of(*frames).text == "Hello world"


def test_a_whole_message_at_the_end_completes_the_deltas() -> None:
    whole = event({"choices": [{"message": {"content": "Hey you"}, "finish_reason": "stop"}]})
    assert message_of(delta(content="H"), delta(content="ey"), whole).text == "Hey you"


def test_short_repetitions_are_text() -> None:
    assert message_of(delta(content="ha"), delta(content="ha"), delta(content="haha"), delta("stop")).text == "hahahaha"
    assert message_of(delta(content="----"), delta(content="--------"), delta("stop")).text == "-" * 12


def test_a_message_may_stand_in_place_of_the_delta() -> None:
    assert message_of(event({"choices": [{"message": {"content": "a"}}]}), DONE).text == "a"


def test_a_whole_message_does_not_repeat_streamed_calls() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "rec", "arguments": "{}"}}]
    whole = event({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})
    assert len(message_of(call(0, "c1", name="rec", arguments="{}"), whole, DONE).tool_calls) == 1
    assert len(message_of(whole).tool_calls) == 1


def test_a_refusal_is_what_the_model_says() -> None:
    assert message_of(delta("stop", refusal="I cannot.")).text == "I cannot."


def test_surrogates_split_between_chunks_are_joined_and_lone_ones_replaced() -> None:
    chunks = [delta(content="\ud83d"), delta(content="\ude00\ud83d!"), delta("stop")]
    events = decode(*chunks)
    assert message_of(*chunks).text == "\U0001f600\ufffd!"
    for item in events:
        if isinstance(item, TextDelta):
            item.text.encode()


def test_text_behind_an_open_call_comes_after_it() -> None:
    chunks = [
        delta(content="before"),
        call(0, "c1", name="rec", arguments='{"a":'),
        delta(content="behind"),
        call(0, None, arguments="1}"),
        delta("tool_calls"),
        DONE,
    ]
    events = decode(*chunks)
    assert events[:4] == [TextDelta(0, "before"), BlockEnded(0), TextDelta(2, "behind"), BlockEnded(2)]
    message = message_of(*chunks)
    assert message.content == (Text("before"), ToolCall("c1", "rec", '{"a":1}'), Text("behind"))
    assert isinstance(message.content[2], Text)


def test_too_much_text_behind_an_open_call_is_an_error() -> None:
    failed = failure_of(call(0, "c1", name="rec"), delta(content="x" * 256_001))
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"


def test_content_index_is_the_place_in_the_final_message_also_when_calls_are_dropped() -> None:
    chunks = [delta(content="a"), call(0, "c1", name="rec", arguments="{}"), delta(content="b"), delta("length"), DONE]
    events = decode(*chunks)
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message.content == (Text("a"), Text("b"))
    assert TextDelta(1, "b") in events


# The end


@pytest.mark.parametrize(
    ("word", "stop_reason"),
    [("stop", "stop"), ("end", "stop"), ("length", "length"), ("tool_calls", "stop"), ("tool_call", "stop")],
)
def test_finish_reasons_without_calls(word: str, stop_reason: str) -> None:
    message = message_of(delta(word, content="x"), DONE)
    assert (message.stop_reason.value, message.provider_stop) == (stop_reason, word)


@pytest.mark.parametrize(
    ("word", "reason", "is_transient"),
    [
        ("content_filter", "PROVIDER_REFUSED", False),
        ("error", "PROVIDER_UNAVAILABLE", True),
        ("network_error", "PROVIDER_STREAM_CUT", True),
        ("abort", "PROVIDER_STREAM_CUT", True),
        ("malformed_response", "PROVIDER_BAD_RESPONSE", False),
        ("banana", "PROVIDER_BAD_RESPONSE", False),
    ],
)
def test_finish_reasons_that_are_failures_keep_the_word(word: str, reason: str, is_transient: bool) -> None:
    failed = failure_of(delta(content="x"), call(0, "c", name="rec", arguments="{}"), delta(word), DONE)
    assert (failed.error.reason, failed.is_transient) == (reason, is_transient)
    assert word == "content_filter" or word in failed.error.message
    assert failed.partial.text == "x"


def test_an_end_without_finish_reason_and_mark_is_a_cut() -> None:
    assert failure_of(delta(content="x")).error.reason == "PROVIDER_STREAM_CUT"
    assert failure_of().error.reason == "PROVIDER_STREAM_CUT"
    assert failure_of(b": only comments\n\n").error.reason == "PROVIDER_STREAM_CUT"
    assert message_of(delta(content="x"), DONE).stop_reason is StopReason.STOP


def test_nothing_follows_the_terminal_event() -> None:
    decoder = new_decoder()
    events = decoder.feed(delta("stop", content="x") + DONE + delta(content="more") + DONE)
    assert isinstance(events[-1], Done)
    assert decoder.is_finished
    assert decoder.feed(delta(content="more")) == []
    assert decoder.end() == []


def test_a_fault_from_outside_carries_what_was_emitted() -> None:
    decoder = new_decoder()
    decoder.feed(delta(content="Half") + call(0, "c", name="rec", arguments="{}"))
    error = RunError("PROVIDER_STALLED", "still")
    failed = decoder.fail(error, is_transient=True)
    assert (failed.error, failed.is_transient, failed.partial.content) == (error, True, (Text("Half"),))
    assert decoder.is_finished


def test_a_finish_reason_makes_the_answer_complete() -> None:
    decoder = new_decoder()
    states = []
    for chunk in (delta(content="x"), delta("stop"), DONE):
        decoder.feed(chunk)
        states.append((decoder.is_complete, decoder.is_finished))
    assert states == [(False, False), (True, False), (True, True)]


def test_an_event_over_the_limit_is_refused() -> None:
    decoder = new_decoder()
    events = [item for chunk in [b"data: ", *[b"x" * 1_000_000] * 11] for item in decoder.feed(chunk)]
    assert len(events) == 1
    assert isinstance(events[0], Failed)
    assert "too large" in events[0].error.message


def test_a_json_body_over_the_limit_is_refused() -> None:
    decoder = new_decoder()
    events = decoder.feed(b'{"a":"' + b"x" * 10_000_001)
    assert isinstance(events[-1], Failed)


# Errors and usage


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, "PROVIDER_UNAVAILABLE"),
        (
            {"error": {"code": 429, "message": "slow down"}, "choices": [{"finish_reason": "error"}]},
            "PROVIDER_RATE_LIMITED",
        ),
        ({"error": "model overloaded"}, "PROVIDER_UNAVAILABLE"),
        ({"error": {"message": "the prompt is too long"}}, "CONTEXT_OVERFLOW"),
        ({"error": {"message": "???"}}, "PROVIDER_BAD_RESPONSE"),
    ],
)
def test_an_error_in_the_stream_is_classified_by_its_body(chunk: Any, reason: str) -> None:
    failed = failure_of(delta(content="Half"), event(chunk), DONE)
    assert (failed.error.reason, failed.partial.text) == (reason, "Half")


def test_an_event_of_type_error_is_an_error() -> None:
    assert failure_of(b'event: error\ndata: {"message":"overloaded"}\n\n').error.reason == "PROVIDER_UNAVAILABLE"


def test_usage_separates_cached_and_reasoning_tokens() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    found = message_of(delta("stop", content="x"), event({"choices": [], "usage": usage}), DONE).usage
    assert (found.input_tokens, found.cache_read_tokens, found.cache_write_tokens) == (30, 60, 10)
    assert (found.output_tokens, found.reasoning_tokens, found.total_tokens) == (50, 20, 150)


def test_usage_on_the_choice_counts_once_and_never_below_zero() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}}
    choice = {"delta": {"content": "x"}, "finish_reason": "stop", "usage": usage}
    found = message_of(event({"choices": [choice]}), event({"choices": [choice]}), DONE).usage
    assert (found.input_tokens, found.output_tokens, found.unavailable) == (0, 2, False)


def test_no_usage_is_said() -> None:
    assert message_of(delta("stop", content="x")).usage.unavailable


def test_numbers_that_are_no_counts_are_none() -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": "7", "prompt_tokens_details": 3}
    assert message_of(delta("stop"), event({"usage": usage}), DONE).usage.total_tokens == 0
