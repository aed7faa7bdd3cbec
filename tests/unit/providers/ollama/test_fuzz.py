"""Ollama's decoder against torn, spoilt and endless answers: the same events at any cut, and always one end."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.case_files import cases
from tests.unit.providers.fuzzing import chunked, decoded, feed_megabytes, json_values, spoilt
from tests.unit.providers.ollama.decoding import call, called, done, new_decoder, said

from lanewayd.providers.interface import Done, Failed

_CASES = [case.body() for case in cases().values() if case.input.get("api") == "ollama"]

_texts = st.text(max_size=12) | st.sampled_from(["<think>", "</think>", "\U0001f600", "`", "\ud83d", "\n"])
_objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
_calls = st.builds(call, st.sampled_from(["rec", "now", "", " "]) | json_values, _objects | json_values)
_good_lines = st.one_of(st.builds(said, _texts), st.builds(lambda text: said(thinking=text), _texts))
_lines = st.one_of(
    _good_lines,
    st.builds(called, _calls),
    st.builds(done, st.sampled_from(["stop", "length", "load"])),
    st.builds(lambda value: json.dumps(value).encode() + b"\n", json_values),
    st.builds(lambda value: json.dumps({"message": value}).encode() + b"\n", json_values),
    st.builds(lambda value: json.dumps({"error": value, "done": value}).encode() + b"\n", json_values),
)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_split_of_any_answer_gives_the_same_events(data: st.DataObject) -> None:
    lines = data.draw(st.lists(_good_lines, max_size=6))
    good = b"".join(lines) + called(call(arguments={"a": 1})) + done(eval_count=3)
    body = data.draw(st.sampled_from([*_CASES, good]))
    whole = decoded(new_decoder(), [body])
    assert decoded(new_decoder(), chunked(data, body)) == whole
    assert isinstance(whole[-1], Done) or body in _CASES


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_comes_there_is_one_end_and_no_exception(data: st.DataObject) -> None:
    frames = data.draw(st.lists(_lines, min_size=1, max_size=8))
    decoded(new_decoder(), chunked(data, spoilt(data, frames)))


@settings(max_examples=50, deadline=None)
@given(cut=st.integers(0), case=st.sampled_from(_CASES))
def test_an_answer_that_is_cut_anywhere_before_its_end_fails(cut: int, case: bytes) -> None:
    last = decoded(new_decoder(), [case[: cut % (len(case) - 2)]])[-1]
    assert isinstance(last, Failed)


@settings(max_examples=30, deadline=None)
@given(depth=st.integers(1, 100_000), value=st.sampled_from(["[%s]", '{"a":%s}']))
def test_nesting_of_any_depth_ends_in_one_way_or_the_other(depth: int, value: str) -> None:
    begin, end = value.split("%s")
    nested = begin * depth + "1" + end * depth
    arguments = f'{{"message":{{"tool_calls":[{{"function":{{"name":"rec","arguments":{{"a":{nested}}}}}}}]}}}}\n'
    for body in (arguments, f'{{"error":{nested}}}\n', f"{nested}\n"):
        decoded(new_decoder(), [body.encode(), done()])


def test_a_line_without_end_is_refused_at_ten_megabytes() -> None:
    for begin in (b'{"message":{"content":"', b"", b"\n  "):
        decoder = new_decoder()
        (failed,) = feed_megabytes(decoder, begin, b"x", megabytes=30)
        assert isinstance(failed, Failed)
        assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
        assert "too large" in failed.error.message


def test_a_whole_line_above_ten_megabytes_is_refused() -> None:
    (failed,) = decoded(new_decoder(), [said("x" * 10_000_000), done()])
    assert isinstance(failed, Failed)
    assert "too large" in failed.error.message


def test_arguments_above_256_kilobytes_are_refused() -> None:
    def arguments(size: int) -> dict[str, Any]:
        return {"x": "y" * (size - len('{"x": ""}'))}

    assert isinstance(decoded(new_decoder(), [called(call(arguments=arguments(256_000))), done()])[-1], Done)
    failed = decoded(new_decoder(), [called(call(arguments=arguments(256_001))), done()])[-1]
    assert isinstance(failed, Failed)
    assert "256,000 bytes" in failed.error.message
