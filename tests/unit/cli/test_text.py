import json

import pytest

from laneway.cli.text import (
    error_text,
    excerpt,
    json_line,
    one_line,
    parse_duration,
    safe,
    seconds_text,
    short_arguments,
    state_text,
    usage_text,
    usd_text,
)
from laneway.v1 import run_pb2


def test_control_characters_of_others_never_reach_the_terminal() -> None:
    assert safe("a\x1b]0;title\x07b\x9bc\td\ne\rf") == "a\ufffd]0;title\ufffdb\ufffdc\td\nef"


def test_an_excerpt_says_how_much_is_left_out() -> None:
    assert excerpt("", 2, 10) == []
    assert excerpt("a\nb\n", 2, 10) == ["a", "b"]
    assert excerpt("a\nb\nc", 2, 10) == ["a", "b", "... 1 more line"]
    assert excerpt("x" * 20, 2, 10) == ["xxxxxxx..."]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path":"a b.txt","limit":3}', "path=a b.txt limit=3"),
        ('{"command":"echo\\n\\tx"}', "command=echo x"),
        ('{"list":[1,2]}', "list=[1, 2]"),
        ("{}", ""),
        ("", ""),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
    ],
)
def test_arguments_are_shown_in_one_line(arguments: str, expected: str) -> None:
    assert short_arguments(arguments, 40) == expected


def test_long_lines_are_cut() -> None:
    assert one_line("word " * 10, 12) == "word word..."


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, "0 ms"), (0.0123, "12 ms"), (3.44, "3.4 s"), (125.0, "2 min 5 s"), (3840.0, "1 h 4 min")],
)
def test_times_are_shown_in_fitting_units(seconds: float, expected: str) -> None:
    assert seconds_text(seconds) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), (" 1D ", 86_400)]
)
def test_durations_are_read_with_their_unit(text: str, seconds: int) -> None:
    assert parse_duration(text).seconds == seconds


def test_a_fraction_of_a_second_is_a_duration() -> None:
    assert parse_duration("1.5s").nanos == 500_000_000


@pytest.mark.parametrize("text", ["", "x", "-1", "1w", "nan", "inf", "1e12", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_duration(text)


def test_usage_and_errors_are_words() -> None:
    usage = run_pb2.Usage(input_tokens=5, output_tokens=2, cache_read_tokens=3, reasoning_tokens=1, unavailable=True)
    assert usage_text(usage) == "5 tokens in, 2 out, 3 from cache, 1 reasoning (not all reported)"
    assert usage_text(run_pb2.Usage(input_tokens=5, cost_usd=0.25)) == "5 tokens in, 0 out, $0.25"
    assert usage_text(run_pb2.Usage(input_tokens=5, cost_usd=0)) == "5 tokens in, 0 out"
    error = run_pb2.RunError(reason="PROVIDER_AUTH", message="no", provider="openai", model="m", http_status=401)
    assert error_text(error) == "PROVIDER_AUTH: no (openai/m, HTTP 401)"
    assert state_text(run_pb2.RUN_STATE_TIMED_OUT) == "timed out"


def test_json_has_the_names_of_the_contract() -> None:
    usage = run_pb2.Usage(input_tokens=5)
    assert json.loads(json_line(usage)) == {"input_tokens": "5"}
    assert json.loads(json_line(usage, all_fields=True))["unavailable"] is False


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (1234.567, "$1,234.57"),
        (1.0, "$1.00"),
        (0.5, "$0.50"),
        (0.0042, "$0.0042"),
        (0.000001, "$0.000001"),
        (0.0000001, "less than $0.000001"),
        (0.9999999, "$1.00"),
    ],
)
def test_costs_have_the_digits_that_matter(usd: float, text: str) -> None:
    assert usd_text(usd) == text
