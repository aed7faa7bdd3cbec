"""Bytes -> JSON values, in both framings."""

from itertools import chain, islice, repeat

import pytest

from lanewayd.providers.json_events import MAX_BODY_BYTES, Framing, JsonEvent, JsonEvents, ResponseRefused


def read(*pieces: bytes, framing: Framing = "sse") -> list[JsonEvent]:
    """All values of the body."""
    reader = JsonEvents(framing)
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.end()
    assert reader.count == len(events)
    return events


def test_server_sent_events_carry_values_names_and_an_end_mark() -> None:
    body = b': hi\n\nevent: a\ndata: {"n":1}\n\ndata:\n\ndata: [DONE]\n\n'
    expected = [JsonEvent({"n": 1}, "a"), JsonEvent(None, is_end_mark=True)]
    assert read(body) == expected
    assert read(*(bytes([byte]) for byte in body)) == expected


def test_lines_carry_values_and_blank_ones_nothing() -> None:
    body = b'\xef\xbb\xbf{"n":1}\r\n\n  {"n":"\xc3\xa4\xe2\x80\xa8"}\n{"n":3}'
    expected = [JsonEvent({"n": 1}), JsonEvent({"n": "\u00e4\u2028"}), JsonEvent({"n": 3})]
    assert read(body, framing="ndjson") == expected
    assert read(*(bytes([byte]) for byte in body), framing="ndjson") == expected


@pytest.mark.parametrize(
    "body", [b'{"error": "x"}', b'\n \xef\xbb\xbf{"error": "x"}'.strip(), b' \n {\n"error":\n"x"}\n']
)
def test_a_body_that_is_json_is_one_value(body: bytes) -> None:
    assert read(body) == read(*(bytes([byte]) for byte in body)) == [JsonEvent({"error": "x"}, is_body=True)]


@pytest.mark.parametrize(("framing", "body"), [("sse", b'data: {"n":1}\n\ndata: {"n":'), ("ndjson", b'{"n":1}\n{"n":')])
def test_a_value_that_the_end_cuts_is_none(framing: Framing, body: bytes) -> None:
    assert read(body, framing=framing) == [JsonEvent({"n": 1})]


@pytest.mark.parametrize(("framing", "bad"), [("sse", b"data: nope\n\n"), ("ndjson", b"nope\n")])
def test_values_before_an_unreadable_one_still_count(framing: Framing, bad: bytes) -> None:
    good = b'data: {"n":1}\n\n' if framing == "sse" else b'{"n":1}\n'
    reader = JsonEvents(framing)
    seen: list[JsonEvent] = []
    with pytest.raises(ResponseRefused, match="no JSON"):
        seen.extend(reader.feed(good + bad + good))
    assert seen == [JsonEvent({"n": 1})]


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
def test_what_is_no_stream_at_all_is_quoted(framing: Framing) -> None:
    with pytest.raises(ResponseRefused, match="no event stream") as caught:
        read(b"<title>Sign in</title>", framing=framing)
    assert caught.value.cause.said == 'a web page titled "Sign in"'


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
def test_nothing_is_no_value_and_no_fault(framing: Framing) -> None:
    assert read(framing=framing) == read(b"\n \n", framing=framing) == []


@pytest.mark.parametrize(
    ("framing", "begin"),
    [("sse", b"data: x"), ("ndjson", b'{"a": "'), ("sse", b'{"a": "')],
    ids=["sse", "lines", "body"],
)
def test_what_is_too_large_is_refused_and_not_kept(framing: Framing, begin: bytes) -> None:
    reader = JsonEvents(framing)
    pieces = chain([begin], repeat(b"x" * 1_000_000))
    with pytest.raises(ResponseRefused, match="too large"):
        [list(reader.feed(piece)) for piece in islice(pieces, MAX_BODY_BYTES // 1_000_000 + 2)]


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(ResponseRefused, match="no JSON"):
        read(b"data: " + b"[" * 100_000 + b"\n\n")
