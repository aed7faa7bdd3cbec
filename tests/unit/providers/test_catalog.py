import pytest

from lanewayd.messages import LongPrompts, Prices, ThinkingLevel
from lanewayd.providers.catalog import facts_of, listed_models

L = ThinkingLevel
PROVIDERS = ("openai", "anthropic", "gemini", "openrouter")


@pytest.mark.parametrize(
    ("provider", "model", "window", "output", "prices"),
    [
        ("openai", "gpt-5.2", 400_000, 128_000, Prices(1.75, 14.0, 0.175)),
        ("openai", "GPT-5-mini", 400_000, 128_000, Prices(0.25, 2.0, 0.025)),
        ("openai", "gpt-5.2-2025-12-11", 400_000, 128_000, Prices(1.75, 14.0, 0.175)),
        ("anthropic", "claude-sonnet-4-6", 1_000_000, 64_000, Prices(3.0, 15.0, 0.3, 3.75)),
        ("anthropic", "claude-haiku-4-5-20251001", 200_000, 64_000, Prices(1.0, 5.0, 0.1, 1.25)),
        ("anthropic", "claude-opus-4-20250514", 200_000, 32_000, Prices(15.0, 75.0, 1.5, 18.75)),
        ("anthropic", "claude-3-7-sonnet-latest", 200_000, 64_000, Prices(3.0, 15.0, 0.3, 3.75)),
        ("openai", "gpt-6.2-sol", 1_050_000, 128_000, Prices(2.0, 10.0, 0.1, 2.5, LongPrompts(272_000, 2.0, 1.5))),
        (
            "openrouter",
            "openai/gpt-5.4",
            1_050_000,
            128_000,
            Prices(2.5, 15.0, 0.25, None, LongPrompts(272_000, 2, 1.5)),
        ),
        (
            "anthropic",
            "claude-haiku-5-5",
            1_000_000,
            128_000,
            Prices(0.1, 0.5, 0.01, 0.125, LongPrompts(100_000, 5, 5)),
        ),
        ("gemini", "gemini-2.5-pro", 1_048_576, 65_536, Prices(1.25, 10.0, 0.125, None, LongPrompts(200_000, 2, 1.5))),
        ("gemini", "gemini-2.5-flash", 1_048_576, 65_536, Prices(0.3, 2.5, 0.03)),
        (
            "gemini",
            "models/gemini-3-pro-preview",
            1_048_576,
            65_536,
            Prices(2, 12, 0.2, None, LongPrompts(200_000, 2, 1.5)),
        ),
        ("openrouter", "openai/gpt-5.2", 400_000, 128_000, Prices(1.75, 14.0, 0.175)),
        ("openrouter", "anthropic/claude-sonnet-4.5", 200_000, 64_000, Prices(3.0, 15.0, 0.3, 3.75)),
        ("openrouter", "anthropic/claude-3.7-sonnet", 200_000, 64_000, Prices(3.0, 15.0, 0.3, 3.75)),
        ("openrouter", "google/gemini-2.5-flash:nitro", 1_048_576, 65_536, Prices()),
        ("ollama", "qwen3:8b", 40_960, 0, Prices()),
        ("ollama", "library/llama3.3:70b", 131_072, 0, Prices()),
    ],
)
def test_known_models(provider: str, model: str, window: int, output: int, prices: Prices) -> None:
    facts = facts_of(provider, model)
    assert facts is not None
    assert facts.is_known
    assert (facts.context_window, facts.max_output_tokens, facts.prices) == (window, output, prices)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-99"),
        ("openrouter", "qwen/qwen3"),
        ("openrouter", "gpt-5.2"),
        ("acme", "gpt-5.2"),
        ("ollama", "x"),
    ],
)
def test_of_others_nothing_is_known(provider: str, model: str) -> None:
    assert facts_of(provider, model) is None


@pytest.mark.parametrize(
    ("model", "levels"),
    [
        ("gpt-5.6", (L.LOW, L.MEDIUM, L.HIGH, L.XHIGH, L.MAX)),
        ("gpt-5.2", (L.LOW, L.MEDIUM, L.HIGH, L.XHIGH)),
        ("gpt-5.5", (L.LOW, L.MEDIUM, L.HIGH, L.XHIGH)),
        ("gpt-5.1", (L.LOW, L.MEDIUM, L.HIGH)),
        ("gpt-5", (L.MINIMAL, L.LOW, L.MEDIUM, L.HIGH)),
        ("gpt-5-codex", (L.LOW, L.MEDIUM, L.HIGH, L.XHIGH)),
        ("gpt-5.2-codex", (L.LOW, L.MEDIUM, L.HIGH, L.XHIGH)),
        ("gpt-5.1-codex-max", (L.MEDIUM, L.HIGH, L.XHIGH)),
        ("gpt-5.1-codex-mini", (L.MEDIUM,)),
        ("gpt-5-pro", (L.HIGH,)),
        ("gpt-5.2-pro", (L.MEDIUM, L.HIGH, L.XHIGH)),
        ("o3", (L.LOW, L.MEDIUM, L.HIGH)),
        ("gpt-4.1", ()),
    ],
)
def test_the_efforts_of_openais_families(model: str, levels: tuple[ThinkingLevel, ...]) -> None:
    """The table of spec 04, 3.2."""
    facts = facts_of("openai", model)
    assert facts is not None
    assert (facts.thinking_levels, facts.can_think) == (levels, bool(levels))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_listed_model_is_found_under_its_name_and_makes_sense(provider: str) -> None:
    names = listed_models(provider)
    assert len(names) >= 10
    for name in names:
        facts = facts_of(provider, name)
        assert facts is not None, name
        assert 0 < facts.max_output_tokens < facts.context_window, name
        prices = facts.prices
        assert prices.input is not None, name
        assert prices.output is not None, name
        assert prices.input < prices.output, name
        assert prices.cache_read is None or prices.cache_read < prices.input, name
        assert prices.cache_write is None or prices.cache_write >= prices.input, name
        strengths = [level for level in facts.thinking_levels if level is not L.ADAPTIVE]
        assert strengths == sorted(strengths, key=list(L).index), name


@pytest.mark.parametrize(
    ("model", "can_think", "thinks_in_levels"),
    [
        ("gpt-oss:20b", True, True),
        ("qwen3:8b", True, False),
        ("deepseek-r1:7b", True, False),
        ("qwen3:30b-a3b-instruct-2507-q4_K_M", False, False),
        ("qwen3-coder:30b", False, False),
        ("llama3.3:70b", False, False),
    ],
)
def test_which_open_models_think_and_which_know_more_than_on_and_off(
    model: str, can_think: bool, thinks_in_levels: bool
) -> None:
    facts = facts_of("ollama", model)
    assert facts is not None
    assert (facts.can_think, facts.can_think and not facts.thinking_format) == (can_think, thinks_in_levels)


def test_families_that_one_installs_are_not_listed() -> None:
    assert listed_models("ollama") == ()
    assert listed_models("acme") == ()
