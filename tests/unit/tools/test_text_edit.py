import pytest

from lanewayd.tools.text_edit import EditRefused, replace_once


@pytest.mark.parametrize(
    ("text", "old", "new", "result", "line"),
    [
        ("a\nb\nc\n", "b", "x", "a\nx\nc\n", 2),
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", 1),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n", 1),
        ("mixed\r\nlines\nhere\nand\n", "here", "two\nlines", "mixed\r\nlines\ntwo\nlines\nand\n", 3),
        ("a\r\n\r\nb\r\n", "\n\n", "\n", "a\r\nb\r\n", 1),
        ("x = \u201cquoted\u201d \u2013 yes\n", 'x = "quoted" - yes', "x", "x\n", 1),
        ("one  \ntwo\t\nthree\n", "one\ntwo\nthree", "x", "x\n", 1),
        ("no\u00a0break\u202fspace\n", "no break space", "x", "x\n", 1),
        ("\ufb01ne and \uff21\uff22\n", "fine and AB", "x", "x\n", 1),
        ("cafe\u0301 au lait\n", "caf\u00e9", "tea", "tea au lait\n", 1),
        ("keep\u00a0this, change \u2018that\u2019\n", "'that'", "it", "keep\u00a0this, change it\n", 1),
        ("end", "end", "", "", 1),
    ],
)
def test_one_place_is_replaced_and_the_rest_keeps_every_character(
    text: str, old: str, new: str, result: str, line: int
) -> None:
    edited = replace_once(text, old, new)
    assert (edited.text, edited.line) == (result, line)


def test_an_exact_match_wins_over_tolerant_ones() -> None:
    assert replace_once('\u201ca\u201d\n"a"\n', '"a"', "b").text == "\u201ca\u201d\nb\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        ("a\nb\n", "c", "x", "does not occur"),
        ("a\nb\na\n", "a", "x", "occurs 2 times, at lines 1, 3"),
        ("aaa", "aa", "x", "occurs 2 times"),
        ("\u201ca\u201d \u201ca\u201d", '"a"', "x", "occurs 2 times"),
        ("a\nb\n", "b", "b", "would change nothing"),
        ("a\r\nb\r\n", "a\nb", "a\nb", "would change nothing"),
        ("a", "", "x", "oldText is empty"),
        ("a\n", " ", "x", "does not occur"),
        ("\ufb01x", "f", "x", "does not occur"),
        ("x\n" * 50, "x", "y", "..."),
    ],
)
def test_no_place_several_places_and_no_change_are_refused(text: str, old: str, new: str, problem: str) -> None:
    with pytest.raises(EditRefused) as refused:
        replace_once(text, old, new)
    assert problem in str(refused.value)
