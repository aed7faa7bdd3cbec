"""rpc/wire_text.py: valid UTF-8, cut at characters."""

from hypothesis import given
from hypothesis import strategies as st

from lanewayd.messages import valid_text
from lanewayd.rpc.wire_text import cut, has_control_characters, pieces, size_bytes

_ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


@given(_ANY_TEXT)
def test_scrubbed_text_always_encodes_and_keeps_its_length_in_characters(text: str) -> None:
    scrubbed = valid_text(text)
    assert scrubbed.encode().decode() == scrubbed
    assert len(scrubbed) == len(text)


def test_each_lone_surrogate_becomes_one_replacement_character() -> None:
    assert valid_text("a\udc80\ud800b") == "a\ufffd\ufffdb"


@given(_ANY_TEXT, st.integers(-1, 200))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, limit_bytes: int) -> None:
    part = cut(text, limit_bytes)
    whole = valid_text(text)
    assert whole.startswith(part)
    assert size_bytes(part) <= max(limit_bytes, 0)
    if part != whole:
        assert size_bytes(whole[: len(part) + 1]) > limit_bytes


@given(_ANY_TEXT, st.integers(4, 20))
def test_pieces_together_are_the_text_and_each_fits(text: str, limit_bytes: int) -> None:
    found = pieces(text, limit_bytes)
    assert "".join(found) == valid_text(text)
    assert all(size_bytes(piece) <= limit_bytes for piece in found)
    assert all(found) or found == [""]


def test_control_characters_are_those_of_c0_and_c1_and_delete() -> None:
    assert all(has_control_characters(f"a{character}") for character in "\0\n\x1f\x7f\x85\x9f")
    assert not any(has_control_characters(f"a{character}") for character in " ~\xa0é\u2028😀")
