"""providers/sse.py: the rules of event streams, at any chunk boundary."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.providers.sse import SseEvent, SseParser


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.end()


def data_of(*chunks: bytes) -> list[str]:
    return [text for _, text in parse(*chunks)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_cr_lf_and_crlf_end_lines(line_end: bytes) -> None:
    assert data_of(b"data: a" + line_end + b"data: b" + line_end * 2 + b"data: c" + line_end * 2) == ["a\nb", "c"]


def test_a_crlf_split_between_chunks_is_one_line_end() -> None:
    assert data_of(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\ndata: c\r\n\r\n") == ["a\nb", "c"]


def test_no_other_character_ends_a_line() -> None:
    text = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1ee"
    assert data_of(f"data: {text}\n\n".encode()) == [text]


def test_one_bom_at_the_start_is_dropped_also_in_pieces() -> None:
    assert data_of(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == ["a"]
    assert data_of(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []


def test_at_most_one_space_behind_the_colon_is_dropped() -> None:
    assert data_of(b"data:a\n\ndata:  b\n\n") == ["a", " b"]


def test_comments_other_fields_and_empty_events_produce_nothing() -> None:
    assert parse(b": hi\n\nretry: 3\nid: 1\n\ndata\n\ndata:\n\nunknown: x\n\n") == []


def test_the_type_of_an_event_belongs_to_it_alone() -> None:
    assert parse(b"event: error\ndata: a\n\ndata: b\n\n") == [("error", "a"), ("", "b")]
    assert parse(b"event: error\n\ndata: b\n\n") == [("", "b")]


def test_the_end_of_the_body_completes_the_last_event() -> None:
    assert data_of(b"data: a\n") == ["a"]
    assert data_of(b"data: a") == ["a"]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert data_of(b"data: a\xff\n\n") == ["a\ufffd"]


@pytest.mark.parametrize("body", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 20, b": " + b"x" * 200])
def test_a_line_or_event_over_the_limit_stops_the_parser_after_what_came_before(body: bytes) -> None:
    parser = SseParser(max_event_bytes=100)
    events = parser.feed(b"data: before\n\n" + body)
    assert events == [("", "before")]
    assert parser.is_overflowed
    assert parser.feed(b"\n\ndata: after\n\n") == []
    assert parser.end() == []


def test_what_is_no_event_stream_is_told_from_an_empty_one() -> None:
    html, comment = SseParser(), SseParser()
    html.feed(b"<html>\n<p>a: b</p>\n")
    comment.feed(b": keepalive\n")
    assert (html.is_recognised, comment.is_recognised) == (False, True)


LINES = st.lists(
    st.sampled_from([b"data: a", b"data:b", b"event: e", b": c", b"", b"data", b"data: \xe2\x80\xa8", b"junk"]),
    max_size=12,
)


@settings(deadline=None)
@given(lines=LINES, ends=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12), data=st.data())
def test_any_split_gives_the_same_events(lines: list[bytes], ends: list[bytes], data: st.DataObject) -> None:
    body = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert parse(*chunks) == parse(body)
