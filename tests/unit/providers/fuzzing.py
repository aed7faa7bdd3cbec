"""What the fuzzers of the dialects share: bodies that are torn, spoilt and mixed up, and what holds all the same."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from lanewayd.messages import StopReason, ToolCall
from lanewayd.providers.interface import Decoder, Done, Failed, ReasoningDelta, StreamEvent, TextDelta

MEGABYTE = 1_000_000

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def chunked(data: st.DataObject, body: bytes) -> list[bytes]:
    """`body` in pieces, cut anywhere."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=20)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def spoilt(data: st.DataObject, frames: Sequence[bytes]) -> bytes:
    """The frames in another order, some missing or doubled, with bytes changed, put in or cut off."""
    order = data.draw(st.lists(st.sampled_from(range(len(frames))), max_size=len(frames) + 2))
    body = b"".join(frames[position] for position in order)
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(len(body), start + 8)))
        body = body[:start] + data.draw(st.binary(max_size=8)) + body[end:]
    return body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body


def decoded(decoder: Decoder, chunks: Sequence[bytes]) -> list[StreamEvent]:
    """All events of a body; checks that progress never falls and that nothing comes after the terminal event."""
    events: list[StreamEvent] = []
    progress = 0
    for chunk in chunks:
        new = decoder.feed(chunk)
        assert decoder.progress >= progress
        progress = decoder.progress
        assert not (new and events and isinstance(events[-1], Done | Failed))
        events += new
    events += decoder.end()
    assert decoder.end() == decoder.feed(b"more") == []
    check_events(events)
    return events


def check_events(events: Sequence[StreamEvent]) -> None:
    """One terminal event, last; its text is what the deltas said; what cannot be run is no call."""
    assert [event for event in events if isinstance(event, Done | Failed)] == list(events[-1:])
    last = events[-1]
    assert isinstance(last, Done | Failed)
    message = last.message if isinstance(last, Done) else last.partial
    shown: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            assert event.text
            event.text.encode()
            if isinstance(event, TextDelta):
                shown.setdefault(event.content_index, []).append(event.text)
    assert "".join("".join(shown[index]) for index in sorted(shown)) == message.text
    calls = [block for block in message.content if isinstance(block, ToolCall)]
    assert len({call.call_id for call in calls} - {""}) == len(calls)
    assert all(call.name for call in calls)
    assert bool(calls) == (message.stop_reason is StopReason.TOOL_USE)
    assert isinstance(last, Done) == (message.stop_reason is not StopReason.ERROR)


def feed_megabytes(decoder: Decoder, begin: bytes, fill: bytes, *, megabytes: int) -> list[StreamEvent]:
    """Events of a body that begins and then never ends its line; fed until the decoder has had enough."""
    events = decoder.feed(begin)
    for _ in range(megabytes):
        if decoder.is_finished:
            break
        events += decoder.feed(fill * (MEGABYTE // len(fill)))
    return events


def merged(events: Sequence[StreamEvent]) -> list[Any]:
    """The events without the boundaries between deltas of one block."""
    result: list[Any] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, TextDelta | ReasoningDelta) and type(last) is type(event):
            assert isinstance(last, TextDelta | ReasoningDelta)
            if last.content_index == event.content_index:
                result[-1] = type(event)(event.content_index, last.text + event.text)
                continue
        result.append(event)
    return result
