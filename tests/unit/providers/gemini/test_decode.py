"""gemini/decode.py: spec 05, 3 and R-5.83 to R-5.87, rule by rule."""

import json
from typing import Any

import pytest
from tests.unit.providers.gemini.decoding import (
    REQUEST,
    STOP,
    call,
    chunk,
    decode,
    event,
    failure_of,
    message_of,
    new_decoder,
)

from lanewayd.errors import ErrorCode
from lanewayd.messages import (
    AssistantMessage,
    Reasoning,
    RunError,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from lanewayd.providers.arguments import MAX_ARGUMENT_BYTES, MAX_CALLS
from lanewayd.providers.interface import BlockEnded, Done, ModelRequest, ReasoningDelta, TextDelta

# Text, thoughts and their signatures


def test_text_is_shown_as_it_comes() -> None:
    events = decode(chunk({"text": "Hel"}), chunk({"text": "lo"}), chunk({"text": "!"}, finish="STOP"))
    assert events[:4] == [TextDelta(0, "Hel"), TextDelta(0, "lo"), TextDelta(0, "!"), BlockEnded(0)]
    message = message_of(chunk({"text": "Hello"}), STOP)
    assert (message.content, message.stop_reason) == ((Text("Hello"),), StopReason.STOP)
    assert (message.provider, message.model, message.provider_stop) == ("google", "gemini-3.8-flash", "STOP")


def test_thought_alone_marks_a_thought() -> None:
    events = decode(chunk({"text": "hm", "thought": True}), chunk({"text": "ok", "thought": False}), STOP)
    assert events[:-1] == [ReasoningDelta(0, "hm"), BlockEnded(0), TextDelta(1, "ok"), BlockEnded(1)]
    signed = message_of(chunk({"text": "ok", "thoughtSignature": "c2ln"}), STOP)
    assert signed.content == (Text("ok", "c2ln"),)


def test_a_signature_stays_with_its_part_and_the_last_of_a_block_is_kept() -> None:
    message = message_of(
        chunk({"text": "a", "thought": True, "thoughtSignature": "b25l"}),
        chunk({"text": "b", "thought": True, "thoughtSignature": ""}),
        chunk({"text": "", "thought": True, "thoughtSignature": "dHdv"}),
        chunk({"text": "c"}),
        chunk({"text": "", "thoughtSignature": "dGhyZWU="}, finish="STOP"),
    )
    assert message.content == (Reasoning("ab", "thought", "dHdv"), Text("c", "dGhyZWU="))


def test_a_part_that_is_a_signature_only_is_kept_for_replay_and_shows_nothing() -> None:
    events = decode(chunk({"text": "a", "thought": True}), chunk({"thoughtSignature": "c2ln"}, finish="STOP"))
    assert events[:-1] == [ReasoningDelta(0, "a"), BlockEnded(0)]
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message.content == (Reasoning("a", "thought"), Text("", "c2ln"))


def test_a_signature_behind_an_unsigned_call_is_the_calls() -> None:
    message = message_of(chunk(call()), chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"))
    assert message.content == (ToolCall("made_up_1", "rec", "{}", "c2ln"),)
    signed = message_of(chunk(call(signature="b25l"), {"thoughtSignature": "dHdv"}, finish="STOP"))
    assert signed.content == (ToolCall("made_up_1", "rec", "{}", "b25l"), Text("", "dHdv"))


def test_the_halves_of_a_surrogate_pair_are_joined_and_a_lone_one_is_replaced() -> None:
    message = message_of(chunk({"text": "a\ud83d"}), chunk({"text": "\ude00b\ud83d"}), STOP)
    assert message.text == "a\U0001f600b\ufffd"
    assert decode(chunk({"text": "\ud83d"}), STOP)[:-1] == [TextDelta(0, "\ufffd"), BlockEnded(0)]


def test_parts_of_other_kinds_are_passed_over() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert message_of(chunk({"text": "a"}, image, {"executableCode": {}}, {"text": "b"}), STOP).text == "ab"


# Calls


def test_calls_get_ids_that_are_new_in_the_session() -> None:
    earlier = AssistantMessage((ToolCall("made_up_1", "rec", "{}"),), "google", "gemini-3.8-flash", StopReason.TOOL_USE)
    history = (UserMessage("hi"), earlier, ToolResultMessage("made_up_1", "rec", "r"))
    request = ModelRequest(REQUEST.model, "", history)
    calls = message_of(chunk(call(), call(id="own"), call(id="own"), call(id=" ")), STOP, request=request).tool_calls
    assert [each.call_id for each in calls] == ["made_up_2", "own", "made_up_3", "made_up_4"]


def test_parts_keep_their_order_and_calls_make_the_turn_a_tool_turn() -> None:
    parts = ({"text": "a"}, call("one", {"n": 1}, signature="c2ln"), {"text": "b"}, call("two", {"n": 2}))
    message = message_of(chunk(*parts, finish="STOP"))
    assert message.stop_reason is StopReason.TOOL_USE
    assert message.content == (
        Text("a"),
        ToolCall("made_up_1", "one", '{"n": 1}', "c2ln"),
        Text("b"),
        ToolCall("made_up_2", "two", '{"n": 2}'),
    )
    events = decode(chunk(*parts, finish="STOP"))
    assert events[:-1] == [TextDelta(0, "a"), BlockEnded(0), TextDelta(2, "b"), BlockEnded(2)]


def test_large_numbers_and_nested_values_come_through() -> None:
    args = {"big": 2**70, "deep": {"x": [1, None, True, 1.5]}, "text": "\u2028\U0001f600"}
    assert json.loads(message_of(chunk(call(args=args)), STOP).tool_calls[0].arguments_json) == args
    escaped = event({"candidates": [{"content": {"parts": [call(args={"t": "x\ud800"})]}, "finishReason": "STOP"}]})
    assert json.loads(message_of(escaped).tool_calls[0].arguments_json) == {"t": "x\ufffd"}


def test_an_answer_cut_by_its_length_has_no_calls() -> None:
    message = message_of(chunk({"text": "a"}, call(), finish="MAX_TOKENS"))
    assert (message.content, message.stop_reason) == ((Text("a"),), StopReason.LENGTH)


def test_arguments_in_a_part_of_their_own_belong_to_the_call_before() -> None:
    nameless = {"functionCall": {"args": {"path": "docs"}}}
    calls = message_of(chunk(call(args={})), chunk(nameless), STOP).tool_calls
    assert [(each.name, each.arguments_json) for each in calls] == [("rec", '{"path": "docs"}')]
    assert len(message_of(chunk(call(args={"a": 1})), chunk({"functionCall": {}}), STOP).tool_calls) == 1


@pytest.mark.parametrize(
    "parts",
    [
        [{"functionCall": {"args": {"a": 1}}}],
        [call(args={"a": 1}), {"functionCall": {"args": {"b": 2}}}],
        [call(), {"text": "x"}, {"functionCall": {"args": {"b": 2}}}],
        [{"functionCall": {"name": " ", "args": {"a": 1}}}],
        [{"functionCall": "rec"}],
        [call(args=[1])],
        [call(args="{}")],
        [call(args=7)],
        [call(args={"a": "x" * MAX_ARGUMENT_BYTES})],
        [call(args={"a": float("inf")})],
        [call()] * (MAX_CALLS + 1),
    ],
)
def test_calls_that_cannot_be_run_fail_the_turn(parts: list[dict[str, Any]]) -> None:
    failed = failure_of(chunk(*parts), STOP)
    assert failed.error.reason == ErrorCode.PROVIDER_BAD_RESPONSE
    assert "tool call" in failed.error.message
    assert not failed.is_transient


def test_arguments_of_nearly_the_limit_are_taken_and_too_deep_ones_refused() -> None:
    large = message_of(chunk(call(args={"a": "x" * (MAX_ARGUMENT_BYTES - 9)})), STOP)
    assert len(large.tool_calls[0].arguments_json) == MAX_ARGUMENT_BYTES
    for depth in (200, 900, 100_000):
        nested = '{"a":' * depth + "1" + "}" * depth
        body = f'{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"rec","args":{nested}}}}}]}}}}]}}'
        assert failure_of(f"data: {body}\n\n".encode(), STOP).error.reason == ErrorCode.PROVIDER_BAD_RESPONSE


# Ends


@pytest.mark.parametrize("word", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"])
def test_what_the_filters_stop_is_refused_and_keeps_what_was_shown(word: str) -> None:
    failed = failure_of(chunk({"text": "a"}), chunk(call(), finish=word))
    assert failed.error.reason == ErrorCode.PROVIDER_REFUSED
    assert word in failed.error.message
    assert (failed.partial.content, failed.partial.provider_stop) == ((Text("a"),), word)


@pytest.mark.parametrize(
    "word",
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
        "NO_IMAGE",
        "OTHER",
        "SOMETHING_NEW",
    ],
)
def test_every_other_reason_is_an_error_that_names_it(word: str) -> None:
    failed = failure_of(chunk({"text": "a", "thoughtSignature": "c2ln"}), chunk(call(), finish=word))
    assert failed.error.reason == ErrorCode.PROVIDER_BAD_RESPONSE
    assert word in failed.error.message
    assert failed.partial.content == (Text("a"),)


def test_what_the_service_says_of_a_failure_stands_in_the_error() -> None:
    candidate = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed: default_api.rec("}
    assert "default_api.rec(" in failure_of(event({"candidates": [candidate]})).error.message


def test_a_blocked_prompt_is_told_apart_from_a_stopped_answer() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "not here"}
    failed = failure_of(event({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 7}}))
    assert failed.error.reason == ErrorCode.PROVIDER_REFUSED
    assert "prompt was blocked" in failed.error.message
    assert "not here" in failed.error.message
    assert failed.partial.usage.input_tokens == 7


def test_feedback_beside_an_answer_and_unspecified_reasons_are_nothing() -> None:
    rated = {"candidates": [{"content": {"parts": [{"text": "a"}]}}], "promptFeedback": {"safetyRatings": []}}
    unspecified = event({"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}})
    assert message_of(unspecified, event(rated), chunk(finish="FINISH_REASON_UNSPECIFIED"), STOP).text == "a"
    assert failure_of(chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED")).error.reason == "PROVIDER_STREAM_CUT"


def test_an_end_without_a_reason_is_a_cut() -> None:
    for chunks in ([chunk({"text": "a"}), chunk(call())], [event({"usageMetadata": {"promptTokenCount": 1}})], []):
        failed = failure_of(*chunks)
        assert failed.error.reason == ErrorCode.PROVIDER_STREAM_CUT
        assert failed.is_transient


def test_an_answer_is_complete_with_its_reason_and_text_behind_it_still_counts() -> None:
    decoder = new_decoder()
    decoder.feed(chunk({"text": "a"}))
    assert (decoder.is_complete, decoder.is_finished) == (False, False)
    decoder.feed(STOP)
    assert (decoder.is_complete, decoder.is_finished) == (True, False)
    decoder.feed(chunk({"text": "b"}, usage={"candidatesTokenCount": 2}))
    done = decoder.end()[-1]
    assert isinstance(done, Done)
    assert (done.message.text, done.message.usage.output_tokens) == ("ab", 2)
    assert decoder.feed(STOP) == decoder.end() == []


def test_the_end_mark_of_a_proxy_ends_a_complete_answer_only() -> None:
    mark = b"data: [DONE]\n\n"
    decoder = new_decoder()
    decoder.feed(chunk({"text": "a"}, finish="STOP"))
    assert isinstance(decoder.feed(mark)[-1], Done)
    assert failure_of(chunk({"text": "a"}), mark).error.reason == ErrorCode.PROVIDER_STREAM_CUT


@pytest.mark.parametrize(
    ("error", "reason", "is_transient"),
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, "PROVIDER_UNAVAILABLE", True),
        ({"code": 500, "message": "Internal error", "status": "INTERNAL"}, "PROVIDER_UNAVAILABLE", True),
        ({"code": 429, "message": "Try again in 7s", "status": "RESOURCE_EXHAUSTED"}, "PROVIDER_RATE_LIMITED", True),
        (
            {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens", "status": "X"},
            "CONTEXT_OVERFLOW",
            False,
        ),
        ({"message": "?"}, "PROVIDER_BAD_RESPONSE", False),
    ],
)
def test_an_error_in_the_stream_ends_it(error: dict[str, Any], reason: str, is_transient: bool) -> None:
    for chunks in ([], [chunk({"text": "a"})], [chunk({"text": "a"}, finish="STOP")]):
        failed = failure_of(*chunks, event({"error": error}))
        assert (failed.error.reason, failed.is_transient) == (reason, is_transient)
        assert failed.partial.text == ("a" if chunks else "")
    named = failure_of(b"event: error\r\ndata: " + json.dumps(error).encode() + b"\r\n\r\n")
    assert named.error.reason == reason


def test_usage_counts_thoughts_as_output_and_the_cache_apart() -> None:
    first = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "thoughtsTokenCount": 3, "candidatesTokenCount": 1}
    last = {"candidatesTokenCount": 9, "thoughtsTokenCount": 5, "toolUsePromptTokenCount": 7, "totalTokenCount": 121}
    message = message_of(chunk({"text": "a"}, usage=first), chunk(finish="STOP", usage=last))
    assert message.usage == Usage(67, 14, 40, 0, 5)
    assert message_of(chunk({"text": "a"}), STOP).usage == Usage(unavailable=True)


@pytest.mark.parametrize("value", [None, "7", True, -1, 2**60, float("nan"), {}, []])
def test_counts_that_are_none_read_as_absent(value: Any) -> None:
    said = {"promptTokenCount": value}
    assert message_of(chunk({"text": "a"}, finish="STOP", usage=said)).usage == Usage(unavailable=True)
    some = message_of(chunk({"text": "a"}, finish="STOP", usage={**said, "candidatesTokenCount": 1})).usage
    assert some == Usage(0, 1)


# Bodies of other shapes


def test_the_array_of_a_service_that_sends_no_events_is_read() -> None:
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]},
    ]
    assert message_of(json.dumps(chunks, indent=1).encode()).text == "ab"
    assert message_of(json.dumps(chunks[1]).encode()).text == "b"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'[{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}]', "PROVIDER_AUTH"),
        (b'{"choices":[{"delta":{"content":"hi"}}]}', "PROVIDER_BAD_RESPONSE"),
        (b"[]", "PROVIDER_BAD_RESPONSE"),
        (b"{}", "PROVIDER_BAD_RESPONSE"),
        (b"[1]", "PROVIDER_BAD_RESPONSE"),
        (b'{"candidates":', "PROVIDER_BAD_RESPONSE"),
        (b"<html><title>Sign in</title></html>", "PROVIDER_BAD_RESPONSE"),
        (b"data: 7\n\n", "PROVIDER_BAD_RESPONSE"),
        (b"data: {\n\n", "PROVIDER_BAD_RESPONSE"),
        (b"data: {}\n\n", "PROVIDER_STREAM_CUT"),
    ],
)
def test_what_is_no_answer_is_one_failure(body: bytes, reason: str) -> None:
    assert failure_of(body).error.reason == reason


def test_a_fault_outside_keeps_what_was_shown() -> None:
    decoder = new_decoder()
    decoder.feed(chunk({"text": "a"}, call()))
    failed = decoder.fail(RunError("PROVIDER_STALLED", "x"), is_transient=True)
    assert (failed.partial.content, failed.is_transient) == ((Text("a"),), True)
    assert decoder.is_finished
