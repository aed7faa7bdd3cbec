"""Messages responses -> stream events."""

import json
from typing import Any

import pytest
from tests.unit.providers.anthropic.decoding import (
    END,
    block,
    call,
    decode,
    delta,
    event,
    failure_of,
    message_of,
    new_decoder,
    start,
    stop,
    stop_block,
    text,
)

from lanewayd.messages import AssistantMessage, Reasoning, RunError, StopReason, Text, ToolCall, Usage, UserMessage
from lanewayd.providers.anthropic.answer import REDACTED, REDACTED_TEXT, THINKING
from lanewayd.providers.anthropic.decode import MAX_ANSWER_CHARS, MAX_BLOCKS
from lanewayd.providers.arguments import MAX_ARGUMENT_BYTES, MAX_CALLS
from lanewayd.providers.interface import BlockEnded, Done, ModelRequest, ReasoningDelta, TextDelta

HELLO = block(0, "text", text="") + text(0, "Hel") + text(0, "lo") + stop_block(0)


def test_text_comes_piece_by_piece() -> None:
    message = AssistantMessage((Text("Hello"),), "acme", "claude-x", StopReason.STOP, Usage(5, 2), "end_turn")
    assert decode(start(input_tokens=5, output_tokens=1), HELLO, stop(output_tokens=2)) == [
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        BlockEnded(0),
        Done(message),
    ]


def test_a_message_in_one_piece_is_read_too() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "t1", "name": "rec", "input": {"a": 1}},
    ]
    body = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    message = message_of(json.dumps(body).encode())
    assert message.content == (Reasoning("hm", THINKING, "c2ln"), Text("Hello"), ToolCall("t1", "rec", '{"a": 1}'))
    assert (message.stop_reason, message.usage) == (StopReason.TOOL_USE, Usage(3))


# --- Thinking ---


def test_a_signature_counts_when_its_block_has_ended_and_replaces_the_first_one() -> None:
    thought = block(0, "thinking", thinking="a", signature="old") + delta(0, "thinking_delta", thinking="b")
    signed = thought + delta(0, "signature_delta", signature="ne") + delta(0, "signature_delta", signature="w")
    assert failure_of(start(), signed).partial.content == (Reasoning("ab", THINKING),)
    assert message_of(start(), signed, stop_block(0), stop()).content == (Reasoning("ab", THINKING, "new"),)
    assert message_of(start(), thought, stop_block(0), stop()).content == (Reasoning("ab", THINKING, "old"),)


def test_what_comes_for_a_block_that_has_ended_is_nothing() -> None:
    thought = block(0, "thinking", thinking="a", signature="s") + stop_block(0)
    late = delta(0, "thinking_delta", thinking="b") + delta(0, "signature_delta", signature="t") + stop_block(0)
    events = decode(start(), thought, late, HELLO.replace(b'"index": 0', b'"index": 1'), text(1, "!"), stop())
    assert [each for each in events if isinstance(each, BlockEnded)] == [BlockEnded(0), BlockEnded(1)]
    assert isinstance(events[-1], Done)
    assert events[-1].message.content == (Reasoning("a", THINKING, "s"), Text("Hello"))


def test_half_a_surrogate_pair_in_a_signature_can_be_stored() -> None:
    message = message_of(start(), block(0, "thinking", thinking="", signature="a\ud83d"), stop_block(0), stop())
    assert message.content == (Reasoning("", THINKING, "a\ufffd"),)


def test_a_thought_that_is_not_shown_is_kept_for_its_signature() -> None:
    hidden = block(0, "thinking", thinking="", signature="") + delta(0, "signature_delta", signature="s")
    events = decode(start(), hidden, stop_block(0), block(1, "text", text=""), text(1, "hi"), stop())
    assert events[:2] == [BlockEnded(0), TextDelta(1, "hi")]
    assert isinstance(events[-1], Done)
    assert events[-1].message.content == (Reasoning("", THINKING, "s"), Text("hi"))


def test_redacted_thinking_keeps_its_data_beside_a_placeholder() -> None:
    events = decode(start(), block(0, REDACTED, data="b3A="), stop_block(0), block(1, REDACTED), stop_block(1), stop())
    assert events[:2] == [ReasoningDelta(0, REDACTED_TEXT), BlockEnded(0)]
    assert isinstance(events[-1], Done)
    assert events[-1].message.content == (Reasoning(REDACTED_TEXT, REDACTED, "b3A="),)


# --- Tool calls ---


def test_arguments_come_in_pieces_or_with_the_begin_of_the_call() -> None:
    big = '{"n":12345678901234567890123,"t":"\\u00e4"}'
    calls = call(0, "a", "", big[:9], big[9:]), call(1, "b", call_id="t2", given={"x": None}), call(2, "c", call_id="")
    message = message_of(start(), *calls, stop("tool_use"))
    assert message.stop_reason is StopReason.TOOL_USE
    assert message.tool_calls == (
        ToolCall("toolu_1", "a", big),
        ToolCall("t2", "b", '{"x": null}'),
        ToolCall("made_up_1", "c", "{}"),
    )


def test_an_id_that_the_session_has_already_is_replaced() -> None:
    earlier = AssistantMessage((ToolCall("toolu_1", "a", "{}"),), "acme", "claude-x", StopReason.TOOL_USE)
    request = ModelRequest("claude-x", "", (UserMessage("hi"), earlier))
    message = message_of(start(), call(0, "a"), stop("tool_use"), request=request)
    assert [each.call_id for each in message.tool_calls] == ["made_up_1"]


def test_string_literals_of_arguments_are_repaired_once() -> None:
    message = message_of(start(), call(0, "a", '{"p": "C:\\d\nx"}'), stop("tool_use"))
    assert json.loads(message.tool_calls[0].arguments_json) == {"p": "C:\\d\nx"}


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", '"x"', '{"a":1}{"b":2}', '{"a": NaN}', "{" * 5])
def test_arguments_that_are_no_object_fail_the_answer(arguments: str) -> None:
    failed = failure_of(start(), HELLO, call(1, "a", arguments), stop("tool_use"))
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert failed.partial.content == (Text("Hello"),)
    assert not failed.is_transient


@pytest.mark.parametrize("given", [[1], "x", 3, {"x": "y" * MAX_ARGUMENT_BYTES}])
def test_arguments_that_come_with_the_begin_are_checked_alike(given: Any) -> None:
    assert failure_of(start(), call(0, "a", given=given), stop("tool_use")).error.reason == "PROVIDER_BAD_RESPONSE"


def test_a_call_that_is_not_ended_or_has_no_name_fails_the_answer() -> None:
    open_call = block(0, "tool_use", id="t", name="a", input={})
    assert "was not ended" in failure_of(start(), open_call, stop("tool_use")).error.message
    assert "no name" in failure_of(start(), call(0, " "), stop("tool_use")).error.message


def test_an_answer_cut_by_its_length_has_no_calls() -> None:
    cut = block(1, "tool_use", id="t", name="a", input={}) + delta(1, "input_json_delta", partial_json='{"ha')
    message = message_of(start(), HELLO, call(2, "b"), cut, stop("max_tokens"))
    assert (message.content, message.stop_reason) == ((Text("Hello"),), StopReason.LENGTH)


def test_a_whole_call_runs_whatever_the_stop_reason_says() -> None:
    assert message_of(start(), call(0, "a"), stop("end_turn")).stop_reason is StopReason.TOOL_USE
    assert message_of(start(), HELLO, stop("tool_use")).stop_reason is StopReason.STOP


def test_arguments_above_the_limit_end_the_answer_at_once() -> None:
    decoder = new_decoder()
    piece = "x" * 64_000
    begin = block(0, "tool_use", id="t", name="a", input={})
    events = decoder.feed(begin)
    for _ in range(5):
        events += decoder.feed(delta(0, "input_json_delta", partial_json=piece))
    assert len(events) == 1
    assert decoder.is_finished
    assert decoder.feed(HELLO) == decoder.end() == []


# --- Stop reasons ---


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("end_turn", StopReason.STOP),
        ("stop_sequence", StopReason.STOP),
        ("compaction", StopReason.STOP),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        (None, StopReason.STOP),
    ],
)
def test_stop_reasons_that_end_an_answer(word: str | None, expected: StopReason) -> None:
    message = message_of(start(), HELLO, stop(word))
    assert (message.stop_reason, message.provider_stop) == (expected, word or "")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("refusal", "PROVIDER_REFUSED"),
        ("sensitive", "PROVIDER_REFUSED"),
        ("pause_turn", "PROVIDER_BAD_RESPONSE"),
        ("something_new", "PROVIDER_BAD_RESPONSE"),
    ],
)
def test_stop_reasons_that_fail_it_stand_in_the_error(word: str, reason: str) -> None:
    failed = failure_of(start(), HELLO, stop(word))
    assert (failed.error.reason, failed.is_transient) == (reason, False)
    assert word in failed.error.message
    assert failed.partial.content == (Text("Hello"),)


# --- Ends ---


def test_without_message_stop_a_stop_reason_ends_an_answer_of_others_than_anthropic() -> None:
    body = start() + HELLO + stop().removesuffix(END)
    assert message_of(body).stop_reason is StopReason.STOP
    assert message_of(body + b"data: [DONE]\n\n").stop_reason is StopReason.STOP
    failed = failure_of(body, needs_end_mark=True)
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_STREAM_CUT", True)
    assert message_of(body, END, needs_end_mark=True).stop_reason is StopReason.STOP


@pytest.mark.parametrize("body", [b"", start(), start() + HELLO, start() + b"data: [DONE]\n\n"])
def test_a_stream_without_any_end_was_cut(body: bytes) -> None:
    failed = failure_of(body)
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_STREAM_CUT", True)


def test_a_fault_of_the_connection_keeps_what_was_shown_and_no_calls() -> None:
    decoder = new_decoder()
    decoder.feed(start(input_tokens=4) + HELLO + call(1, "a"))
    failed = decoder.fail(RunError("X", "x"), is_transient=True)
    assert failed.partial.content == (Text("Hello"),)
    assert failed.partial.usage == Usage(4)
    assert decoder.feed(stop()) == decoder.end() == []


# --- Errors ---


@pytest.mark.parametrize(
    ("kind", "said", "reason", "is_transient"),
    [
        ("overloaded_error", "Overloaded", "PROVIDER_UNAVAILABLE", True),
        ("api_error", "Internal server error", "PROVIDER_UNAVAILABLE", True),
        ("rate_limit_error", "Number of requests per minute exceeded", "PROVIDER_RATE_LIMITED", True),
        ("authentication_error", "invalid x-api-key", "PROVIDER_AUTH", False),
        ("permission_error", "no", "PROVIDER_AUTH", False),
        ("billing_error", "Your credit balance is too low", "PROVIDER_BILLING", False),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000", "CONTEXT_OVERFLOW", False),
        ("invalid_request_error", "messages: roles must alternate", "PROVIDER_REQUEST_REJECTED", False),
        ("timeout_error", "Request timed out", "PROVIDER_STALLED", False),
        ("new_error", "?", "PROVIDER_BAD_RESPONSE", False),
    ],
)
def test_an_error_event_is_classed_by_its_type_not_by_http_200(
    kind: str, said: str, reason: str, is_transient: bool
) -> None:
    error = {"type": kind, "message": said}
    failed = failure_of(start(), block(0, "text", text=""), text(0, "Half"), event("error", error=error), HELLO, stop())
    assert (failed.error.reason, failed.is_transient) == (reason, is_transient)
    assert said in failed.error.message
    assert failed.partial.content == (Text("Half"),)
    whole = failure_of(json.dumps({"type": "error", "error": error}).encode())
    assert whole.error.reason == reason


@pytest.mark.parametrize("body", [b"[]", b'{"object":"list"}', b'data: "x"\n\n', b"data: {\n\n", b"<html>", b"no\n"])
def test_what_is_no_message_is_a_bad_response(body: bytes) -> None:
    assert failure_of(body).error.reason == "PROVIDER_BAD_RESPONSE"


# --- Odd events ---


def test_pings_and_unknown_events_are_progress_and_nothing_else() -> None:
    decoder = new_decoder()
    assert decoder.feed(event("ping") + event("something_new", x=1) + b": comment\n\n") == []
    assert decoder.progress == 2


def test_text_for_an_unknown_block_opens_one_and_other_deltas_are_nothing() -> None:
    stray = delta(7, "thinking_delta", thinking="x") + delta(8, "input_json_delta", partial_json="{}")
    message = message_of(start(), stray, text(9, "hi"), stop_block(3), stop())
    assert message.content == (Text("hi"),)


def test_blocks_of_the_services_own_tools_are_left_out() -> None:
    search = block(0, "server_tool_use", id="s", name="web_search", input={})
    search += delta(0, "input_json_delta", partial_json='{"q":1}') + stop_block(0)
    found = block(1, "web_search_tool_result", tool_use_id="s", content=[{"url": "u"}]) + stop_block(1)
    said = block(2, "text", text="") + delta(2, "citations_delta", citation={}) + text(2, "It is so.") + stop_block(2)
    assert message_of(start(), search, found, said, stop()).content == (Text("It is so."),)


def test_an_index_that_is_used_anew_is_another_block() -> None:
    again = block(0, "text", text="") + text(0, "again")
    assert message_of(start(), HELLO, again, stop()).content == (Text("Hello"), Text("again"))


def test_empty_blocks_are_none() -> None:
    empty = block(0, "text", text="") + stop_block(0) + block(1, "thinking", thinking="", signature="") + stop_block(1)
    assert message_of(start(), empty, stop()).content == ()


def test_halves_of_a_surrogate_pair_are_joined_across_deltas() -> None:
    pieces = b'"\\ud83d"', b'"\\ude00!"', b'"\\ud83d"'
    deltas = [text(0, "@").replace(b'"@"', piece) for piece in pieces]
    assert message_of(start(), *deltas, stop()).content == (Text("\U0001f600!\ufffd"),)


def test_what_is_null_in_a_later_usage_changes_nothing() -> None:
    first = start(input_tokens=9, cache_read_input_tokens=3, cache_creation_input_tokens=2, output_tokens=1)
    last = stop(input_tokens=None, cache_read_input_tokens=4, output_tokens=20)
    assert message_of(first, HELLO, last).usage == Usage(9, 20, 4, 2)
    assert message_of(HELLO, stop()).usage == Usage(unavailable=True)
    odd = start(input_tokens=-1, output_tokens="3", cache_read_input_tokens=True, cache_creation_input_tokens=1e300)
    assert message_of(odd, HELLO, stop()).usage == Usage(unavailable=True)


# --- Limits ---


def test_too_many_blocks_calls_and_characters_are_refused() -> None:
    many = b"".join(block(n, "mystery") for n in range(MAX_BLOCKS + 1))
    assert "too many blocks" in failure_of(start(), many).error.message
    calls = b"".join(call(n, "a", call_id=f"t{n}") for n in range(MAX_CALLS + 1))
    assert str(MAX_CALLS) in failure_of(start(), calls).error.message
    decoder, piece = new_decoder(), text(0, "x" * 1_000_000)
    events = [each for _ in range(MAX_ANSWER_CHARS // 1_000_000 + 1) for each in decoder.feed(piece)]
    assert decoder.is_finished
    assert len(events) == MAX_ANSWER_CHARS // 1_000_000 + 1


def test_a_line_of_ten_megabytes_is_refused() -> None:
    failed = failure_of(start(), HELLO, b"data: ", *[b"x" * 1_000_000] * 11)
    assert "too large" in failed.error.message
    assert failed.partial.content == (Text("Hello"),)
