import json
import random

import pytest

from lanewayd.tools.output import OutputCollector
from lanewayd.tools.terminal_text import TerminalCleaner, without_nul


def cleaned(*pieces: str) -> str:
    cleaner = TerminalCleaner()
    return "".join([*(cleaner.feed(piece) for piece in pieces), cleaner.finish()])


def test_b048_lone_surrogates_become_replacement_characters_and_good_text_stays() -> None:
    text = "a\ud83d b\udc00 c\x00 d\ufffe e\U0001f600 f\ud83d"
    result = without_nul(text)
    assert result == "a\ufffd b\ufffd c\ufffd d\ufffe e\U0001f600 f\ufffd"
    assert json.loads(json.dumps(result).encode()) == result


def test_a_pair_that_was_built_from_two_halves_is_one_character() -> None:
    assert without_nul("\ud83d" + "\ude00") == "\U0001f600"


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07text\n", "text\n"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("\x1b]0;never ended\nreal\n", "\nreal\n"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b(Bplain\x1b=\x1b>", "plain"),
        ("10 %\r50 %\r100 %\n", "100 %\n"),
        ("10 %\r50 %\r", "50 %"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("b\x08bo\x08ol\x08ld", "bold"),
        ("\x08\x08a\x00\x07b", "ab"),
        ("tab\tand text äöü 漢字\n", "tab\tand text äöü 漢字\n"),
        ("cut \x1b[38;2;1", "cut "),
        ("", ""),
    ],
)
def test_a_reader_of_the_terminal_would_see_the_same(raw: str, seen: str) -> None:
    assert cleaned(raw) == seen


def test_it_does_not_matter_how_the_stream_was_cut() -> None:
    raw = "a\x1b[2K\rb\x1b]0;t\x1b\\c\r\nd\r\x1b[1Ae\n\x1b[38;2;1;2;3mf\x1b]0;u\x07g\r\n" * 3
    rng = random.Random(7)
    whole = cleaned(raw)
    assert whole == "bc\ne\nfg\n" * 3
    for _ in range(200):
        cuts = sorted(rng.sample(range(len(raw)), 5))
        assert cleaned(*(raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True))) == whole


def test_b053_escape_sequences_and_progress_do_not_push_real_text_out() -> None:
    output = OutputCollector()
    real = [f"real line {number} of the text that matters" for number in range(50)]
    noise = "".join(f"\x1b[2K\x1b[1A\x1b[38;2;1;2;3m[{'#' * (n % 50):50}] {n % 100} %\r" for n in range(110))
    raw = "".join(noise + "\x1b[0m\r\x1b[2K" + line + "\n" for line in real).encode()
    assert len(raw) > 400 * 1024
    for start in range(0, len(raw), 1000):
        output.feed(raw[start : start + 1000])
    output.finish()
    assert output.text(16_000) == "\n".join(real) + "\n"


def test_a_long_output_keeps_head_and_tail_and_says_what_is_missing() -> None:
    output = OutputCollector()
    lines = [f"line {number}\n" for number in range(200_000)]
    raw = "".join(lines).encode()
    for start in range(0, len(raw), 65_536):
        output.feed(raw[start : start + 65_536])
    output.finish()
    text = output.text(16_000)
    head, mark, tail = text.partition("\n[... ")
    missing = int(mark and tail.split()[0])
    tail = tail.split("left out ...]\n")[1]
    assert head.startswith("line 0\nline 1\n")
    assert tail.endswith("line 199999\n")
    assert missing + len(head) + len(tail) == len(raw)
    assert 12_000 < len(text) <= 16_000


def test_bytes_that_are_no_text_are_named_and_bounded() -> None:
    output = OutputCollector()
    output.feed(random.Random(1).randbytes(1_000_000))
    output.finish()
    text = output.text(16_000)
    assert text.startswith("[binary output, 1000000 bytes")
    assert len(text) < 2_500
    text.encode()


def test_a_character_cut_by_a_read_is_whole_and_the_last_byte_is_kept() -> None:
    output = OutputCollector()
    for byte in "naïve 漢字 \U0001f600 end".encode():
        output.feed(bytes([byte]))
    output.finish()
    assert output.text(16_000) == "naïve 漢字 \U0001f600 end"


def test_the_line_that_is_being_written_is_shown() -> None:
    output = OutputCollector()
    output.feed(b"first\n10 %\r20 %\r")
    assert output.text(8_000) == "first\n20 %"
