"""The decoder of responses against torn, spoilt and endless answers: the same events at any cut, and always one end."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.case_files import cases
from tests.unit.providers.fuzzing import chunked, decoded, feed_megabytes, json_values, spoilt
from tests.unit.providers.openai_responses.decoding import (
    added,
    all_arguments,
    arguments,
    call,
    completed,
    done,
    event,
    incomplete,
    message,
    new_decoder,
    reasoning,
    text,
    thought,
)

from lanewayd.providers.interface import Done, Failed

_CASES = [case.body() for case in cases().values() if case.input.get("api") == "responses"]
_GOOD = [
    event("response.created", response={"status": "in_progress"}),
    added(0, reasoning()),
    thought(0, "hm \ud83d"),
    thought(0, "\ude00", summary_index=1),
    done(0, reasoning("hm \U0001f600", "b3BhcXVl")),
    added(1, message("", id="msg_1")),
    text(1, "Look"),
    text(1, "ing\u2028 \U0001f600"),
    done(1, message("Looking\u2028 \U0001f600.", id="msg_1", phase="commentary")),
    added(2, message("", id="msg_2")),
    text(2, "Looking"),
    done(2, message("Looking elsewhere", id="msg_2")),
    added(3, call("")),
    arguments(3, '{"a":"\ud83d'),
    arguments(3, '\ude00"}'),
    done(3, call("")),
    completed(usage={"input_tokens": 3, "output_tokens": 2}),
]

_indexes = st.sampled_from([0, 1, 2, None]) | json_values
_texts = st.sampled_from(["a", "ab", "b", "", "\ud83d", "\ude00", '{"a":', "1}"]) | json_values
_items: st.SearchStrategy[Any] = st.one_of(
    st.builds(message, st.sampled_from(["", "a", "ab", "abb"]), id=st.sampled_from(["m1", "m2", ""])),
    st.builds(
        call,
        st.sampled_from(["", "{}", '{"a":1}', "[", "{}{}"]),
        st.sampled_from(["c1", "c2", ""]),
        st.sampled_from(["f1", "f2", ""]),
    ),
    st.builds(reasoning, st.sampled_from(["", "a", "a\n\nb"]), st.none() | st.just("x"), st.sampled_from(["r1", ""])),
    json_values,
)
_kinds = st.sampled_from(
    [
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.done",
        "error",
        "odd",
    ]
)
_makers: list[Callable[[int | None, Any], bytes]] = [text, thought, arguments, all_arguments]
_deltas = st.sampled_from(_makers)


_events = st.one_of(
    st.builds(
        lambda take, index, item: take(0, item) if isinstance(item, dict) else event("x", item=item),
        st.sampled_from([added, done]),
        _indexes,
        _items,
    ),
    st.builds(
        lambda make, index, piece: make(index if isinstance(index, int) else None, piece), _deltas, _indexes, _texts
    ),
    st.builds(lambda items: completed(*items), st.lists(_items, max_size=4)),
    st.builds(lambda items: incomplete("max_output_tokens", *items), st.lists(_items, max_size=3)),
    st.builds(
        lambda kind, value: event(kind, item=value, response=value, delta=value, output_index=value),
        _kinds,
        json_values,
    ),
    st.builds(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n", json_values),
    st.just(b"data: [DONE]\n\n"),
)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_split_of_any_answer_gives_the_same_events(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from([*_CASES, b"".join(_GOOD)]))
    whole = decoded(new_decoder(), [body])
    assert isinstance(whole[-1], Done)
    assert decoded(new_decoder(), chunked(data, body)) == whole


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_whatever_comes_there_is_one_end_and_no_exception(data: st.DataObject) -> None:
    events = st.one_of(_events, st.sampled_from(_GOOD))
    frames = data.draw(st.lists(events, min_size=1, max_size=12))
    decoded(new_decoder(), chunked(data, spoilt(data, frames)) if data.draw(st.booleans()) else frames)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_events_in_any_order_end_in_one_way_or_the_other(data: st.DataObject) -> None:
    decoded(new_decoder(), data.draw(st.permutations(_GOOD)))


@settings(max_examples=50, deadline=None)
@given(cut=st.integers(0), body=st.sampled_from([*_CASES, b"".join(_GOOD)]))
def test_an_answer_that_is_cut_anywhere_before_its_end_fails(cut: int, body: bytes) -> None:
    assert isinstance(decoded(new_decoder(), [body[: cut % (len(body.rstrip()) - 1)]])[-1], Failed)


@settings(max_examples=30, deadline=None)
@given(depth=st.integers(1, 100_000), value=st.sampled_from(["[%s]", '{"a":%s}']))
def test_nesting_of_any_depth_ends_in_one_way_or_the_other(depth: int, value: str) -> None:
    begin, end = value.split("%s")
    nested = begin * depth + "1" + end * depth
    item = f'{{"type":"function_call","name":"rec","call_id":"c","arguments":{nested},"status":"completed"}}'
    for data in (
        f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}',
        f'{{"type":"response.completed","response":{{"status":"completed","output":[{item}]}}}}',
        f'{{"type":"response.failed","response":{{"error":{nested}}}}}',
        f'{{"type":"error","error":{nested}}}',
        nested,
    ):
        decoded(new_decoder(), [f"data: {data}\n\n".encode(), completed()])
        decoded(new_decoder(), [data.encode()])


def test_an_event_or_a_body_without_end_is_refused_at_ten_megabytes() -> None:
    for begin in (b'data: {"type":"response.output_text.delta","delta":"', b": ", b'{"output":"', b"data: x\ndata: "):
        decoder = new_decoder()
        (failed,) = feed_megabytes(decoder, begin, b"x", megabytes=30)
        assert isinstance(failed, Failed)
        assert failed.error.reason == "PROVIDER_BAD_RESPONSE"
        assert "too large" in failed.error.message


def test_arguments_above_256_kilobytes_are_refused() -> None:
    def whole(size: int) -> str:
        return '{"x":"' + "y" * (size - 8) + '"}'

    assert isinstance(decoded(new_decoder(), [done(0, call(whole(256_000))), completed()])[-1], Done)
    for frames in (
        [done(0, call(whole(256_001)))],
        [added(0, call("")), all_arguments(0, whole(256_001))],
        [added(0, call("")), arguments(0, whole(200_000)), arguments(0, whole(60_000))],
        [added(0, call(whole(256_001)))],
        [completed(call(whole(256_001)))],
    ):
        failed = decoded(new_decoder(), [*frames, completed()])[-1]
        assert isinstance(failed, Failed)
        assert "256,000 bytes" in failed.error.message
