"""Merging deltas (D-4)."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.runs.deltas import MAX_DELTA_CHARACTERS, DeltaMerger, Piece

INTERVAL_S = 0.025

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(["👩‍👩‍👧", "é", "𝄞", "\0", ""])
STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), TEXTS, st.floats(0, 0.05), st.booleans()), min_size=1, max_size=40
)


def texts(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(STEPS, st.sampled_from([0.0, INTERVAL_S]))
def test_all_pieces_of_a_block_are_its_text_and_their_offsets_count_its_bytes(
    steps: list[tuple[bool, int, str, float, bool]], interval_s: float
) -> None:
    merger = DeltaMerger(interval_s)
    said: dict[tuple[bool, int], str] = {}
    order: list[tuple[bool, int, str]] = []
    pieces: list[Piece] = []
    now_s = 0.0
    for is_reasoning, index, text, pause_s, is_block_end in steps:
        now_s += pause_s
        pieces += merger.add(is_reasoning, index, text, now_s)
        if is_block_end:
            pieces += merger.flush(now_s)
            assert merger.due_at is None
        said[is_reasoning, index] = said.get((is_reasoning, index), "") + text
        order.append((is_reasoning, index, text))
    pieces += merger.flush(now_s)
    got: dict[tuple[bool, int], str] = {}
    for piece in pieces:
        before = got.get((piece.is_reasoning, piece.content_index), "")
        assert piece.offset == len(before.encode())
        assert piece.text
        got[piece.is_reasoning, piece.content_index] = before + piece.text
    assert got == {block: text for block, text in said.items() if text}
    assert "".join(texts(pieces)) == "".join(text for _, _, text in order)
    assert merger.has_shown == bool(pieces)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 0.03), min_size=2, max_size=40))
def test_within_a_block_pieces_keep_the_interval_and_nothing_is_held_longer(pauses: list[float]) -> None:
    merger, now_s, times = DeltaMerger(INTERVAL_S), 0.0, []
    for pause_s in pauses:
        next_s = now_s + pause_s
        due_at = merger.due_at
        if due_at is not None and due_at <= next_s:  # as the timer of the recorder does
            assert texts(merger.flush(due_at))
            times.append(due_at)
        now_s = next_s
        if merger.add(False, 0, "x", now_s):
            times.append(now_s)
        due_at = merger.due_at
        assert due_at is None or due_at <= now_s + INTERVAL_S
    assert times[0] == pauses[0]
    assert all(later - earlier >= INTERVAL_S * 0.999 for earlier, later in pairwise(times))


def test_the_first_delta_goes_at_once_and_the_next_ones_wait_for_the_interval() -> None:
    merger = DeltaMerger(INTERVAL_S)
    assert texts(merger.add(False, 0, "a", 1.0)) == ["a"]
    assert texts(merger.add(False, 0, "b", 1.001)) == []
    assert merger.due_at == 1.0 + INTERVAL_S
    assert texts(merger.add(False, 0, "c", 1.002)) == []
    assert texts(merger.add(False, 0, "d", 1.0 + INTERVAL_S)) == ["bcd"]
    assert merger.due_at is None


def test_an_empty_first_delta_does_not_use_up_the_first_place() -> None:
    merger = DeltaMerger(INTERVAL_S)
    assert merger.add(True, 0, "", 1.0) == []
    assert not merger.has_shown
    assert texts(merger.add(True, 0, "a", 1.001)) == ["a"]


def test_with_interval_0_every_chunk_is_a_piece() -> None:
    merger = DeltaMerger(0)
    assert [texts(merger.add(False, 0, text, 1.0)) for text in "abc"] == [["a"], ["b"], ["c"]]


def test_another_block_pushes_out_what_the_last_one_held() -> None:
    merger = DeltaMerger(INTERVAL_S)
    merger.add(True, 0, "th", 1.0)
    merger.add(True, 0, "ought", 1.001)
    assert merger.add(False, 1, "said", 1.002) == [Piece(True, 0, 2, "ought")]
    assert merger.flush(1.003) == [Piece(False, 1, 0, "said")]


def test_offsets_count_bytes_not_characters() -> None:
    merger = DeltaMerger(0)
    offsets = [piece.offset for text in ("👩‍👩‍👧", "é", "x") for piece in merger.add(False, 0, text, 1.0)]
    assert offsets == [0, 18, 20]


def test_a_huge_delta_is_split_into_pieces_that_join_to_it() -> None:
    text = "👩" * (2 * MAX_DELTA_CHARACTERS + 1)
    pieces = DeltaMerger(INTERVAL_S).add(False, 0, text, 1.0)
    assert [len(piece.text) for piece in pieces] == [MAX_DELTA_CHARACTERS, MAX_DELTA_CHARACTERS, 1]
    assert [piece.offset for piece in pieces] == [0, 4 * MAX_DELTA_CHARACTERS, 8 * MAX_DELTA_CHARACTERS]
    assert "".join(texts(pieces)) == text


def test_text_that_is_due_waits_for_as_long_as_it_is_told_to() -> None:
    merger = DeltaMerger(INTERVAL_S)
    merger.add(False, 0, "a", 1.0)
    assert merger.add(False, 0, "b", 1.1, holds_on=True) == []
    assert merger.add(False, 0, "c", 1.2, holds_on=True) == []
    assert merger.add(False, 0, "d", 1.3) == [Piece(False, 0, 1, "bcd")]


def test_the_end_of_a_block_waits_for_nothing() -> None:
    merger = DeltaMerger(INTERVAL_S)
    merger.add(True, 0, "a", 1.0)
    merger.add(True, 0, "b", 1.001)
    assert merger.add(False, 1, "c", 1.1, holds_on=True) == [Piece(True, 0, 1, "b")]
