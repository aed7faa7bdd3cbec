import random

import pytest

from lanewayd.tools.text_pages import Page, PageLimits, PageReader

WIDE = PageLimits(lines=10_000, size_bytes=1_000_000, chars=1_000_000)


def page_of(content: bytes, first_line: int = 1, limits: PageLimits = WIDE, piece: int = 1_000_000) -> Page:
    reader = PageReader(first_line, limits)
    for start in range(0, len(content), piece):
        reader.feed(content[start : start + piece])
    return reader.page()


@pytest.mark.parametrize(
    ("content", "text", "total"),
    [
        (b"", "", 0),
        (b"a", "a", 1),
        (b"a\n", "a", 1),
        (b"a\nb", "a\nb", 2),
        (b"\n\n", "\n", 2),
        (b"a\r\nb\r\n", "a\nb", 2),
        (b"\xef\xbb\xbfa\n", "a", 1),
        ("\u2028line separator\u0085stays\n".encode(), "\u2028line separator\u0085stays", 1),
    ],
)
def test_a_whole_file_is_one_page(content: bytes, text: str, total: int) -> None:
    page = page_of(content)
    assert (page.text, page.total_lines, page.is_last) == (text, total, True)


@pytest.mark.parametrize(
    ("first", "limits", "lines"),
    [
        (1, PageLimits(3, 1_000, 1_000), [1, 2, 3]),
        (4, PageLimits(3, 1_000, 1_000), [4, 5, 6]),
        (9, PageLimits(3, 1_000, 1_000), [9, 10]),
        (1, PageLimits(100, 15, 1_000), [1, 2]),
        (1, PageLimits(100, 1_000, 21), [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("piece", [1, 5, 1_000])
def test_a_page_ends_with_the_first_limit_and_knows_the_total(
    first: int, limits: PageLimits, lines: list[int], piece: int
) -> None:
    content = b"".join(b"line %02d\n" % number for number in range(1, 11))
    limits = PageLimits(limits.lines, limits.size_bytes, limits.chars)
    page = page_of(content, first, limits, piece)
    # 8 bytes a line with its end: 15 bytes hold one.
    wanted = lines[: limits.size_bytes // 8] if limits.size_bytes < 1_000 else lines[: limits.chars // 8]
    assert page.text == "\n".join(f"line {number:02}" for number in wanted)
    assert page.total_lines == 10
    assert page.next_line == wanted[-1] + 1


def test_a_page_beyond_the_end_is_empty() -> None:
    page = page_of(b"a\nb\n", 5)
    assert (page.text, page.line_count, page.total_lines, page.is_last) == ("", 0, 2, True)


def test_a_line_that_alone_is_too_long_is_measured_not_shown() -> None:
    page = page_of(b"a\n" + b"x" * 5_000 + b"\nb\n", 2, PageLimits(10, 1_000, 1_000), piece=300)
    assert (page.text, page.too_long_line_bytes, page.total_lines) == ("", 5_000, 3)
    page = page_of(b"a\n" + b"x" * 5_000 + b"\nb\n", 1, PageLimits(10, 1_000, 1_000))
    assert (page.text, page.too_long_line_bytes, page.next_line) == ("a", 0, 2)


def test_it_does_not_matter_how_the_file_was_cut() -> None:
    rng = random.Random(3)
    content = b"\n".join(b"x" * rng.randrange(40) for _ in range(200))
    limits = PageLimits(20, 300, 300)
    for first in (1, 50, 199, 200, 201):
        assert len({page_of(content, first, limits, piece) for piece in (1, 7, 64, 100_000)}) == 1


def test_bytes_that_are_no_text_are_replaced_and_told() -> None:
    page = page_of(b"a\xffb\n")
    assert (page.text, page.is_valid_utf8) == ("a\ufffdb", False)
    assert page_of("\ufffd\n".encode()).is_valid_utf8
