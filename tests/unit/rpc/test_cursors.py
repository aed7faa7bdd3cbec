"""rpc/cursors.py: what was made is read back, everything else is recognised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.rpc.cursors import cursor_position, cursor_text


@given(st.integers(0, 2**63 - 1))
def test_a_cursor_gives_its_position_back(position: int) -> None:
    text = cursor_text("store-1", position)
    assert cursor_position(text, "store-1") == position
    assert len(text) == 28
    assert text.replace("-", "").replace("_", "").isalnum()


def test_a_cursor_of_another_store_is_refused() -> None:
    with pytest.raises(FieldError, match="another store") as refused:
        cursor_position(cursor_text("store-1", 7), "store-2")
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "cursor")


@pytest.mark.parametrize("text", ["x", "=" * 28, "A" * 28, "é" * 28, "A" * 29, "12", "A" * 10_000, " " * 28, "\0" * 28])
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as refused:
        cursor_position(text, "store-1")
    assert refused.value.code is ErrorCode.FIELD_INVALID


@given(st.integers(0, 27), st.sampled_from("ABCxyz019-_+/= "))
def test_one_changed_character_is_noticed(index: int, character: str) -> None:
    text = cursor_text("store-1", 123_456)
    damaged = text[:index] + character + text[index + 1 :]
    if damaged != text:
        with pytest.raises(FieldError):
            cursor_position(damaged, "store-1")


@given(st.text())
def test_any_text_gives_a_position_or_a_field_error(text: str) -> None:
    try:
        outcome: int | FieldError = cursor_position(text, "store-1")
    except FieldError as refused:
        outcome = refused
    assert outcome.field == "cursor" if isinstance(outcome, FieldError) else outcome >= 0
