"""reasoning_tags.py: what of a text is reasoning, at any chunk boundary."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.providers.reasoning_tags import ReasoningTags


def split(*chunks: str) -> list[tuple[bool, str]]:
    tags = ReasoningTags()
    pieces = [piece for chunk in chunks for piece in tags.feed(chunk)] + tags.end()
    return [
        (is_reasoning, "".join(piece.text for piece in group))
        for is_reasoning, group in itertools.groupby(pieces, key=lambda piece: piece.is_reasoning)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", [(False, "plain")]),
        ("<think>a</think>b", [(True, "a"), (False, "b")]),
        ("<THINKING foo='1'>a</ thinking >b", [(True, "a"), (False, "b")]),
        (
            "< thought >a</thought>b<antthinking>c</antthinking>d",
            [(True, "a"), (False, "b"), (True, "c"), (False, "d")],
        ),
        ("\n <think>a</think>\n\nb", [(True, "a"), (False, "b")]),
        ("x<think>a</think>\n\nb", [(False, "x"), (True, "a"), (False, "\n\nb")]),
        ("x</think>y", [(False, "xy")]),
        ("x<think/>y", [(False, "xy")]),
        ("x<think>y", [(False, "x"), (True, "y")]),
        ("a `<think>` b", [(False, "a `<think>` b")]),
        ("```\n<think>\n\n</think>\n``` <think>x</think>", [(False, "```\n<think>\n\n</think>\n``` "), (True, "x")]),
        ("a lone ` mark\n\n<think>x</think>y", [(False, "a lone ` mark\n\n"), (True, "x"), (False, "y")]),
        ("<think>a ` b</think>c", [(True, "a ` b"), (False, "c")]),
        ("1 < 2 and <thin> air", [(False, "1 < 2 and <thin> air")]),
        ("  ", [(False, "  ")]),
        ("<thinker>", [(False, "<thinker>")]),
    ],
)
def test_tags_outside_code_separate_reasoning_from_text(text: str, expected: list[tuple[bool, str]]) -> None:
    assert split(text) == expected


def test_only_what_may_become_a_tag_is_held_back() -> None:
    tags = ReasoningTags()
    assert [piece.text for piece in tags.feed("a <b")] == ["a <b"]
    assert [piece.text for piece in tags.feed("c <thi")] == ["c "]
    assert [piece.text for piece in tags.feed("s is it")] == ["<this is it"]


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["<think>", "</think>", "<think/>", "a", " ", "\n", "`", "```", "<", "thinking", ">", "/"]),
        max_size=14,
    ),
    data=st.data(),
)
def test_any_split_gives_the_same_pieces(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert split(*chunks) == split(text)
