"""What services say of tokens, in all the spellings there are (R-8.72)."""

import math
from typing import Any

import pytest

from lanewayd.messages import Usage
from lanewayd.providers.anthropic.usage import UsageCounts
from lanewayd.providers.gemini.chunk_fields import usage_of as gemini_usage_of
from lanewayd.providers.usage_fields import count_of, usage_of


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, 5)),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, 5)),
        ({"promptTokens": 10, "completionTokens": 5}, Usage(10, 5)),
        ({"inputTokens": 10, "outputTokens": 5}, Usage(10, 5)),
        ({"prompt_tokens": 10}, Usage(10)),
        ({"completion_tokens": 5}, Usage(0, 5)),
        ({"prompt_tokens": 0, "input_tokens": 10, "output_tokens": 5}, Usage(10, 5)),
        ({"prompt_tokens": 10, "input_tokens": 99}, Usage(10)),
        ({"prompt_tokens": None, "input_tokens": 10}, Usage(10)),
        ({"prompt_tokens": -1, "input_tokens": 0}, Usage()),
        ({"prompt_tokens": 10.0, "completion_tokens": 5.0}, Usage(10, 5)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(6, 0, 4)),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}}, Usage(6, 0, 4)),
        ({"promptTokens": 10, "promptTokensDetails": {"cachedTokens": 4}}, Usage(6, 0, 4)),
        ({"prompt_tokens": 10, "cached_tokens": 4}, Usage(6, 0, 4)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, Usage(6, 0, 4)),
        ({"prompt_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}, Usage(3, 0, 4, 3)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cache_write_tokens": 3}}, Usage(7, 0, 0, 3)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 4}, Usage(6, 0, 4)),
        ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(0, 0, 4)),
        ({"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 2}}, Usage(0, 5, 0, 0, 2)),
        ({"output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}, Usage(0, 5, 0, 0, 2)),
        ({"prompt_tokens": 10, "prompt_tokens_details": "none"}, Usage(10)),
    ],
)
def test_the_spellings_of_openais_languages(said: dict[str, Any], usage: Usage) -> None:
    assert usage_of(said) == usage


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        "10",
        {},
        {"total_tokens": 15},
        *({"prompt_tokens": odd} for odd in ("10", math.inf, math.nan, True, 2**53, None, 1.5, -1)),
    ],
    ids=repr,
)
def test_without_a_finite_count_there_is_no_usage(said: Any) -> None:
    assert usage_of(said) is None


def test_the_first_positive_count_wins_then_the_first_there_is() -> None:
    assert count_of({"a": 0, "b": 2, "c": 3}, "a", "b", "c") == 2
    assert count_of({"a": None, "b": 0}, "a", "b") == 0
    assert count_of({"a": None}, "a", "b") is None


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"promptTokenCount": 10, "candidatesTokenCount": 5}, Usage(10, 5)),
        ({"prompt_token_count": 10, "candidates_token_count": 5}, Usage(10, 5)),
        ({"promptTokenCount": 10, "cachedContentTokenCount": 4, "thoughtsTokenCount": 2}, Usage(6, 2, 4, 0, 2)),
        ({"promptTokenCount": 10, "toolUsePromptTokenCount": 3}, Usage(13)),
        ({"totalTokenCount": 10}, None),
        ({}, None),
    ],
)
def test_the_spellings_of_gemini(said: dict[str, Any], usage: Usage | None) -> None:
    assert gemini_usage_of(said) == usage


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, 5)),
        ({"inputTokens": 10, "outputTokens": 5}, Usage(10, 5)),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
            Usage(10, 0, 4, 3),
        ),
        ({"input_tokens": None}, Usage(unavailable=True)),
        ({}, Usage(unavailable=True)),
        (None, Usage(unavailable=True)),
    ],
)
def test_the_spellings_of_anthropic(said: Any, usage: Usage) -> None:
    counts = UsageCounts()
    counts.take(said)
    assert counts.total() == usage
