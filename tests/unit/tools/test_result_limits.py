import re

import pytest

from lanewayd.tools.result_limits import NO_OUTPUT, Ends, limit_result, result_limit_chars, shorten


@pytest.mark.parametrize(
    ("window_tokens", "limit_chars"),
    [
        (0, 16_000),
        (1, 2_200),
        (8_000, 9_600),
        (99_999, 16_000),
        (100_000, 32_000),
        (199_999, 32_000),
        (200_000, 64_000),
        (1_000_000, 64_000),
    ],
)
def test_the_limit_follows_the_window(window_tokens: int, limit_chars: int) -> None:
    assert result_limit_chars(window_tokens) == limit_chars


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_result_says_so(text: str) -> None:
    assert limit_result(text, 16_000) == NO_OUTPUT


def test_what_fits_is_untouched() -> None:
    assert limit_result("x" * 16_000, 16_000) == "x" * 16_000


def test_an_unimportant_tail_is_left_out_with_a_hint() -> None:
    text = "word " * 10_000
    result = limit_result(text, 16_000)
    kept = result.split("\n[")[0]
    assert text.startswith(kept)
    assert f"\n[{len(text) - len(kept)} of 50000 characters left out." in result
    assert len(result) <= 16_000


@pytest.mark.parametrize("end", ["ValueError: no", "exit code 3", "Total: 12", '{"a": {"b": 1}}'])
def test_an_important_tail_is_kept(end: str) -> None:
    result = limit_result("word " * 10_000 + end, 16_000)
    assert result.endswith(end)
    assert "characters left out ...]" in result


def test_cuts_are_at_line_breaks() -> None:
    line = "a line of the listing, number fifteen of many\n"
    result = limit_result(line * 2_000 + "error: it failed\n", 16_000)
    head, _, rest = result.partition("\n[... ")
    assert set(head.split("\n")) == {line.strip()}
    assert set(rest.split("...]\n")[1].strip().split("\n")) == {line.strip(), "error: it failed"}


def test_a_limited_result_is_not_limited_again() -> None:
    for text in ("word " * 10_000, "line\n" * 10_000 + "error", "x" * 100_000):
        once = limit_result(text, 16_000)
        assert limit_result(once, 16_000) == once


@pytest.mark.parametrize("text", ["x" * 9_000, "line\n" * 3_000, "line\n" * 3_000 + "error"])
def test_two_thousand_characters_are_kept_whatever_the_limit(text: str) -> None:
    result = limit_result(text, 10)
    kept = re.sub(r"\n\[.*?left out.*?\]\n?", "", result)
    assert len(kept) >= 2_000


def test_a_text_known_by_its_ends_says_how_much_is_missing_of_all() -> None:
    result = shorten(Ends("h" * 5_000, "t" * 5_000, 1_000_000), 4_000, always_keep_tail=True)
    kept = result.count("h") + result.count("t")
    # The mark itself has letters of that kind, too.
    mark = result[result.index("[") : result.index("]")]
    kept -= mark.count("h") + mark.count("t")
    assert f"[... {1_000_000 - kept} of 1000000 characters left out ...]" in result
    assert result.startswith("h")
    assert result.endswith("t")
