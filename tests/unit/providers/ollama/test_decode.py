"""ollama/decode.py beyond the behaviour cases: spec 05, R-5.89 to R-5.92 and the common rules, one by one."""

import json
from typing import Any

import pytest
from tests.unit.providers.ollama.decoding import (
    call,
    called,
    decode,
    done,
    failure_of,
    line,
    message_of,
    new_decoder,
    said,
)

from lanewayd.messages import AssistantMessage, Reasoning, RunError, StopReason, Text, ToolCall, Usage, UserMessage
from lanewayd.providers.interface import BlockEnded, Done, Failed, ModelRequest, ReasoningDelta, TextDelta

# Text and thinking


@pytest.mark.parametrize("field", ["thinking", "reasoning"])
def test_thinking_is_a_block_that_ends_when_the_content_starts(field: str) -> None:
    events = decode(said(**{field: "h"}), said(**{field: "m"}), said("o"), said("k"), done())
    assert events[:-1] == [
        ReasoningDelta(0, "h"),
        ReasoningDelta(0, "m"),
        BlockEnded(0),
        TextDelta(1, "o"),
        TextDelta(1, "k"),
        BlockEnded(1),
    ]
    assert message_of(said(**{field: "hm"}), said("ok"), done()).content == (Reasoning("hm", "thinking"), Text("ok"))


def test_tags_in_the_text_are_thinking_across_lines() -> None:
    assert message_of(said("<thi"), said("nk>a</think>"), said("b"), done()).content == (Reasoning("a"), Text("b"))


def test_content_in_the_line_that_ends_counts() -> None:
    whole = line(done=True, message={"role": "assistant", "content": "ok"}, done_reason="stop")
    assert message_of(whole).text == "ok"
    # An answer that is no stream is one line without a line end.
    assert message_of(whole.rstrip()).text == "ok"


def test_surrogates_split_between_lines_are_joined_and_lone_ones_replaced() -> None:
    lines = [said("\ud83d"), said("\ude00\ud83d!"), said(thinking="\ud83d"), done()]
    assert [block.text for block in message_of(*lines).content if not isinstance(block, ToolCall)] == [
        "\U0001f600\ufffd!",
        "\ufffd",
    ]
    for event in decode(*lines):
        if isinstance(event, TextDelta | ReasoningDelta):
            event.text.encode()


def test_blank_lines_crlf_and_a_byte_order_mark_are_nothing() -> None:
    lines = b"\xef\xbb\xbf" + said("a").replace(b"\n", b"\r\n") + b"\r\n\n" + done()
    assert message_of(lines).text == "a"


def test_unicode_line_separators_are_text() -> None:
    text = "a\u2028b\u2029c\u0085d"
    raw = json.dumps({"message": {"content": text}}, ensure_ascii=False).encode() + b"\n"
    assert message_of(raw, done()).text == text


def test_what_follows_the_end_does_not_matter() -> None:
    decoder = new_decoder()
    assert isinstance(decoder.feed(said("a") + done() + b"garbage\n")[-1], Done)
    assert decoder.is_finished
    assert decoder.feed(b'{"error":"late"}\n') == []
    assert decoder.end() == []


# Calls


def test_calls_of_all_lines_count_and_stand_behind_the_text() -> None:
    message = message_of(said("a"), called(call(arguments={"n": 1})), said("b"), called(call("now", {})), done())
    assert message.stop_reason is StopReason.TOOL_USE
    assert message.content == (
        Text("ab"),
        ToolCall("made_up_1", "rec", '{"n": 1}'),
        ToolCall("made_up_2", "now", "{}"),
    )


def test_a_call_in_the_line_that_ends_counts() -> None:
    whole = line(done=True, message={"content": "", "tool_calls": [call(arguments={})]}, done_reason="stop")
    assert len(message_of(whole).tool_calls) == 1


def test_an_id_is_kept_unless_the_session_has_it() -> None:
    before = AssistantMessage((ToolCall("c1", "rec", "{}"),), "acme", "m1", StopReason.TOOL_USE)
    request = ModelRequest("m1", "", (UserMessage("hi"), before))
    calls = called(call(id="c1"), call(id="c2"), call(id="c2"), call(id=7))
    ids = [each.call_id for each in message_of(calls, done(), request=request).tool_calls]
    assert ids == ["made_up_1", "c2", "made_up_2", "made_up_3"]


@pytest.mark.parametrize("arguments", [None, {}, "", "{}", " {} "])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert [each.arguments_json for each in message_of(called(call("now", arguments)), done()).tool_calls] == ["{}"]


def test_arguments_keep_large_integers_and_may_come_as_text() -> None:
    message = message_of(called(call(arguments={"n": 2**70}), call(arguments='{"n":1.50}')), done())
    assert [each.arguments_json for each in message.tool_calls] == [f'{{"n": {2**70}}}', '{"n":1.50}']


@pytest.mark.parametrize(
    "broken",
    [
        "rec",
        {},
        {"function": "rec"},
        call(""),
        call(" "),
        call(None),
        call(arguments=[]),
        call(arguments=1),
        call(arguments='{"a":'),
        call(arguments='{"a":1}{"b":2}'),
        call(arguments={"x": float("nan")}),
        call(arguments={"x": "y" * 256_000}),
        call(arguments='{"x":' + "[" * 200 + "]" * 200 + "}"),
    ],
)
def test_a_call_that_cannot_be_run_fails_the_whole_answer(broken: Any) -> None:
    failed = failure_of(said("a"), called(call(), broken), done())
    assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
    assert "tool call" in failed.error.message
    assert failed.partial.text == "a"


def test_too_many_calls_fail_the_answer() -> None:
    assert len(message_of(called(*[call()] * 256), done()).tool_calls) == 256
    assert "256 tool calls" in failure_of(called(*[call()] * 257), done()).error.message


def test_an_answer_cut_by_its_length_runs_no_call() -> None:
    message = message_of(said("half"), called(call()), done("length", eval_count=9))
    assert (message.stop_reason, message.provider_stop, message.content) == (
        StopReason.LENGTH,
        "length",
        (Text("half"),),
    )


# The end


@pytest.mark.parametrize("reason", ["stop", "load", "unload", "", None])
def test_done_without_calls_is_a_stop(reason: str | None) -> None:
    assert message_of(said("a"), done(reason)).stop_reason is StopReason.STOP


def test_usage_comes_with_the_end() -> None:
    usage = message_of(done(prompt_eval_count=31, eval_count=5)).usage
    assert usage == Usage(input_tokens=31, output_tokens=5)
    assert message_of(done(eval_count=5)).usage == Usage(output_tokens=5)


@pytest.mark.parametrize("count", [None, -1, 1.5, True, "7", 2**60])
def test_what_is_no_count_is_no_usage(count: Any) -> None:
    assert message_of(done(prompt_eval_count=count)).usage == Usage(unavailable=True)


def test_a_stream_without_an_end_was_cut_and_leaves_its_block_open() -> None:
    events = decode(said("Yes"))
    assert events[:-1] == [TextDelta(0, "Yes")]
    failed = failure_of(said("Yes"))
    assert (failed.error.reason, failed.is_transient) == ("PROVIDER_STREAM_CUT", True)
    assert failed.partial.text == "Yes"
    assert failure_of(called(call())).error.reason == "PROVIDER_STREAM_CUT"
    assert failure_of().error.reason == "PROVIDER_STREAM_CUT"


def test_a_line_that_the_end_cuts_is_a_cut_stream() -> None:
    assert failure_of(said("Yes") + done()[:-6]).error.reason == "PROVIDER_STREAM_CUT"


@pytest.mark.parametrize("error", ["model runner has unexpectedly stopped", {"message": "model runner stopped"}])
def test_an_error_in_the_stream_is_a_failing_service(error: Any) -> None:
    failed = failure_of(said("Yes"), json.dumps({"error": error}).encode() + b"\n", done())
    assert (failed.error.reason, failed.is_transient, failed.error.http_status) == ("PROVIDER_UNAVAILABLE", True, 200)
    assert "model runner" in failed.error.message
    assert failed.partial.text == "Yes"


def test_an_error_of_a_known_kind_keeps_it() -> None:
    gone = b'{"error":"model \\"m1\\" not found, try pulling it first"}\n'
    assert failure_of(gone).error.reason == "PROVIDER_MODEL_NOT_FOUND"
    long = b'{"error":"the prompt exceeds the available context size"}\n'
    assert failure_of(long).error.reason == "CONTEXT_OVERFLOW"


@pytest.mark.parametrize("garbage", [b"<html>no</html>\n", b"[]\n", b"7\n", b"\xff\xfe\n", b"data: {}\n", b'"a"\n'])
def test_what_is_no_line_of_an_answer_fails_it(garbage: bytes) -> None:
    assert failure_of(said("a"), garbage).error.reason == "PROVIDER_BAD_RESPONSE"


def test_a_fault_outside_the_body_keeps_what_was_said() -> None:
    decoder = new_decoder()
    decoder.feed(said("a") + called(call()))
    assert (decoder.progress, decoder.is_complete) == (2, False)
    failed = decoder.fail(RunError("PROVIDER_STALLED", "x"), is_transient=True)
    assert isinstance(failed, Failed)
    assert (failed.partial.content, decoder.is_finished, decoder.end()) == ((Text("a"),), True, [])
