"""Whatever comes, however it is cut: the same events, one terminal, nothing raised, nothing hoarded."""

from dataclasses import astuple
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.anthropic.decoding import (
    block,
    call,
    delta,
    event,
    new_decoder,
    start,
    stop,
    stop_block,
    text,
)
from tests.unit.providers.fuzzing import check_events, chunked, decoded, spoilt

from lanewayd.messages import AssistantMessage, Reasoning
from lanewayd.providers.interface import Done, Failed, ReasoningDelta, StreamEvent

THOUGHT = [
    block(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="hm\ud83d"),
    delta(0, "thinking_delta", thinking="\ude00"),
    delta(0, "signature_delta", signature="c2ln"),
    stop_block(0),
]
STREAM = [
    start(input_tokens=3),
    event("ping"),
    *THOUGHT,
    block(1, "redacted_thinking", data="b3A="),
    stop_block(1),
    block(2, "text", text=""),
    text(2, "Hello \u2028"),
    text(2, "w\u00f6rld"),
    stop_block(2),
    call(3, "rec", '{"a": ', '"\\u00e4"}'),
    call(4, "rec", call_id="toolu_1", given={"x": [1]}),
    stop("tool_use", output_tokens=7),
]
FRAGMENTS = [
    *STREAM,
    *(piece.replace(b"\n", b"\r\n") for piece in STREAM[:6]),
    stop("max_tokens"),
    stop("pause_turn"),
    stop(None),
    event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
    event("content_block_start"),
    event("content_block_delta", index=None, delta=3),
    event("message_start", message=[]),
    event("message", content=[{"type": "text", "text": "x"}, 3], stop_reason=[]),
    b"data: [DONE]\n\n",
    b"data: [[[[\n\n",
    b"data: null\n\n",
    b": hi\n\n",
    b"\xff\xfe\x00",
    b"{",
]


def play(pieces: list[bytes]) -> list[StreamEvent]:
    """All events of these pieces; checks what holds for any."""
    decoder = new_decoder()
    events: list[StreamEvent] = []
    for piece in pieces:
        events += decoder.feed(piece)
        assert decoder.is_finished == any(isinstance(each, Done | Failed) for each in events)
    events += decoder.end()
    assert decoder.is_finished
    last = events[-1]
    assert isinstance(last, Done | Failed)
    check_message(events, last.message if isinstance(last, Done) else last.partial)
    return events


def check_message(events: list[StreamEvent], message: AssistantMessage) -> None:
    """It holds what was shown, block by block, and can be stored as UTF-8."""
    check_events(events)
    thoughts = [each for each in events if isinstance(each, ReasoningDelta)]
    by_block = sorted(thoughts, key=lambda delta: delta.content_index)
    kept = [each.text for each in message.content if isinstance(each, Reasoning)]
    assert "".join(kept) == "".join(each.text for each in by_block)
    for word in (message.provider_stop, *(word for each in message.content for word in astuple(each))):
        word.encode()


def cut(body: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted({place % (len(body) + 1) for place in places}), len(body)]
    return [body[begin:end] for begin, end in pairwise(bounds)]


PLACES = st.lists(st.integers(0, 1 << 16), max_size=12)


@settings(max_examples=60, deadline=None)
@given(PLACES)
def test_where_the_stream_is_cut_into_pieces_changes_nothing(places: list[int]) -> None:
    body = b"".join(STREAM)
    assert isinstance(play([body])[-1], Done)
    assert play(cut(body, places)) == play([body])


def test_single_bytes_are_pieces_too() -> None:
    body = b"".join(STREAM)
    assert play([body[at : at + 1] for at in range(len(body))]) == play([body])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 16))
def test_a_truncated_stream_ends_in_one_failure(length: int) -> None:
    body = b"".join(STREAM)
    last = play([body[: length % (len(body) - len(STREAM[-1]))]])[-1]
    assert isinstance(last, Failed)
    assert last.partial.tool_calls == ()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30), PLACES)
def test_any_order_of_any_events_ends_once_wherever_it_is_cut(fragments: list[bytes], places: list[int]) -> None:
    body = b"".join(fragments)
    assert play(cut(body, places)) == play([body])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"data: {text}\n\n".encode()), PLACES)
def test_garbage_ends_in_one_failure(body: bytes, places: list[int]) -> None:
    assert isinstance(play(cut(body, places))[-1], Failed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=5) | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message"]
)
ODD_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 2) | JSON,
        "content_block": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use"])},
            optional=dict.fromkeys(["text", "thinking", "signature", "data", "id", "name", "input"], JSON),
        )
        | JSON,
        "delta": st.fixed_dictionaries(
            {
                "type": st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]),
                "stop_reason": JSON,
            },
            optional=dict.fromkeys(["text", "thinking", "signature", "partial_json"], JSON),
        )
        | JSON,
        "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens"]), JSON) | JSON,
        "content": JSON,
        "message": JSON,
        "error": JSON,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(KINDS, ODD_FIELDS), max_size=8))
def test_events_with_odd_fields_end_once(events: list[tuple[str, dict[str, object]]]) -> None:
    play([*(event(kind, **fields) for kind, fields in events), stop()])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_spoilt_stream_ends_once(data: st.DataObject) -> None:
    body = spoilt(data, STREAM)
    events = decoded(new_decoder(), chunked(data, body))
    assert events == play([body])
