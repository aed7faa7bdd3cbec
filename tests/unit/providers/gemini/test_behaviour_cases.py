"""Every gemini case of group a through the decoder, and the fuzzer: any split, any cut, any garbage.

The same cases run through the whole service elsewhere; here is what they say about the decoder alone.
"""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.decoding import one_terminal
from tests.unit.providers.fuzzing import merged
from tests.unit.providers.gemini.decoding import (
    STOP,
    call,
    chunk,
    decode,
    event,
    failure_of,
    message_of,
    new_decoder,
)

from lanewayd.messages import StopReason
from lanewayd.providers.interface import Done, Failed, StreamEvent
from lanewayd.providers.sse import MAX_EVENT_BYTES

CASES: dict[str, bytes] = {
    case["id"]: case["input"]["wire"].encode()
    for case in yaml.safe_load((Path(__file__).parents[3] / "cases" / "a_provider_streams.yaml").read_text())
    if case["input"]["api"] == "gemini"
}
BODIES: dict[str, bytes] = {
    **CASES,
    "thoughts": b"".join(
        (
            chunk({"text": "hm \U0001f600", "thought": True}, usage={"promptTokenCount": 9, "thoughtsTokenCount": 3}),
            chunk({"text": "\ud83d", "thoughtSignature": "b25l"}),
            chunk({"text": "\ude00\u2028 ok"}, call(args={"a": "\u00e9", "n": 2**60}, signature="c2ln")),
            chunk({"text": "", "thoughtSignature": "dHdv"}, finish="STOP", usage={"candidatesTokenCount": 5}),
        )
    ),
    "array": json.dumps([{"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}]).encode(),
    "blocked": event({"promptFeedback": {"blockReason": "SAFETY"}}),
    "failing": chunk({"text": "a"}) + event({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
}


def test_the_cases_are_those_of_the_file() -> None:
    assert sorted(CASES) == ["B-022", "B-023", "B-024"]


def test_b_022_a_malformed_call_is_no_empty_answer() -> None:
    failed = failure_of(CASES["B-022"])
    assert "MALFORMED_FUNCTION_CALL" in failed.error.message
    assert failed.partial.content == ()
    assert failed.partial.usage.input_tokens == 7


def test_b_023_calls_in_events_of_their_own_stay_apart() -> None:
    message = message_of(CASES["B-023"])
    assert [(each.arguments_json, each.signature) for each in message.tool_calls] == [
        ('{"p": "*a*"}', "c2lnQQ=="),
        ('{"p": "*b*"}', ""),
        ('{"p": "*b*"}', ""),
    ]
    assert len({each.call_id for each in message.tool_calls}) == 3
    assert message.stop_reason is StopReason.TOOL_USE


def test_b_024_a_part_with_arguments_only_completes_the_call_before() -> None:
    assert [(each.name, each.arguments_json) for each in message_of(CASES["B-024"]).tool_calls] == [
        ("rec", '{"path": "docs"}')
    ]


# The fuzzer


def check_outcome(events: list[StreamEvent]) -> None:
    """One terminal, last; what it carries can be stored and run."""
    assert one_terminal(events)
    last = events[-1]
    message = last.message if isinstance(last, Done) else last.partial if isinstance(last, Failed) else None
    assert message is not None
    assert isinstance(last, Done) or not message.tool_calls
    for each in message.tool_calls:
        assert each.name
        assert isinstance(json.loads(each.arguments_json), dict)
        each.arguments_json.encode()
    assert len({each.call_id for each in message.tool_calls}) == len(message.tool_calls)
    message.text.encode()


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(BODIES)), data=st.data())
def test_any_split_gives_the_same_events(name: str, data: st.DataObject) -> None:
    body = BODIES[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert merged(decode(*chunks)) == merged(decode(body))


@pytest.mark.parametrize("name", sorted(BODIES))
def test_single_bytes_give_the_same_events(name: str) -> None:
    body = BODIES[name]
    assert merged(decode(*[body[at : at + 1] for at in range(len(body))])) == merged(decode(body))


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(BODIES)), data=st.data())
def test_truncated_garbled_and_reordered_streams_end_in_one_terminal_event(name: str, data: st.DataObject) -> None:
    body = bytearray(b"".join(data.draw(st.permutations(BODIES[name].splitlines(keepends=True)))))
    del body[data.draw(st.integers(0, len(body))) :]
    for at in data.draw(st.lists(st.integers(0, max(0, len(body) - 1)), max_size=4)):
        if body:
            body[at] = data.draw(st.integers(0, 255))
    check_outcome(decode(bytes(body)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_garbage_ends_in_one_failure(body: bytes) -> None:
    for garbage in (body, b"data: " + body + b"\n\n", b"{" + body):
        events = decode(garbage)
        assert one_terminal(events)
        assert isinstance(events[-1], Failed)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.text(st.characters(codec=None), max_size=5) | ANY,
            "thought": st.booleans() | ANY,
            "thoughtSignature": st.sampled_from(["c2ln", "dHdv"]) | ANY,
            "functionCall": ANY
            | st.fixed_dictionaries(
                {}, optional={"name": st.sampled_from(["rec", "now"]) | ANY, "args": ANY, "id": st.just("i") | ANY}
            ),
        },
    )
    | ANY,
    max_size=4,
)
CHUNKS = ANY | st.fixed_dictionaries(
    {},
    optional={
        "candidates": ANY
        | st.fixed_dictionaries(
            {},
            optional={
                "content": ANY | st.fixed_dictionaries({"parts": PARTS}),
                "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY"]) | ANY,
                "finishMessage": ANY,
            },
        ).map(lambda candidate: [candidate]),
        "usageMetadata": ANY | st.dictionaries(st.sampled_from(["promptTokenCount", "thoughtsTokenCount"]), ANY),
        "promptFeedback": ANY | st.fixed_dictionaries({"blockReason": ANY}, optional={"blockReasonMessage": ANY}),
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(CHUNKS, max_size=6))
def test_chunks_of_any_shape_end_in_one_terminal_event(chunks: list[Any]) -> None:
    body = b"".join(map(event, chunks))
    check_outcome(decode(body))
    check_outcome(decode(json.dumps(chunks).encode()))
    assert repr(merged(decode(body, STOP))) == repr(merged(decode(*map(event, chunks), STOP)))


def test_an_event_that_never_ends_is_refused_in_bounded_memory() -> None:
    decoder = new_decoder()
    piece = b"x" * 65_536
    decoder.feed(b'data: {"candidates":[{"content":{"parts":[{"text":"')
    tracemalloc.start()
    events: list[StreamEvent] = []
    for _ in range(2 * MAX_EVENT_BYTES // len(piece)):
        events += decoder.feed(piece)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(each) for each in events] == [Failed]
    assert decoder.is_finished
    assert decoder.feed(piece) == decoder.end() == []
    assert peak_bytes < 2 * MAX_EVENT_BYTES


def test_a_line_of_10_mb_and_arguments_of_256_kb_are_refused() -> None:
    for body in (chunk({"text": "x" * MAX_EVENT_BYTES}), json.dumps(["x" * MAX_EVENT_BYTES]).encode()):
        assert "too large" in failure_of(body).error.message
    assert "256,000 bytes" in failure_of(chunk(call(args={"a": "x" * 256_000})), STOP).error.message


def test_many_blocks_take_time_in_proportion() -> None:
    """Thousands of changes between thought and text: nothing is gone through again at each of them."""
    pair = chunk({"text": "a", "thought": True, "thoughtSignature": "c2ln"}, {"text": "b", "thoughtSignature": "dHdv"})
    message = message_of(pair * 5_000, STOP)
    assert len(message.content) == 10_000
