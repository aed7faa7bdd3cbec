"""What a Claude model takes, told by its name."""

import pytest

from lanewayd.providers.anthropic.families import OTHER, Off, Thinks, family_of

NEVER, BUDGET, ADAPTIVE = Thinks.NEVER, Thinks.BUDGET, Thinks.ADAPTIVE
NOTHING, DISABLED, BETWEEN, IMPOSSIBLE = Off.NOTHING, Off.DISABLED, Off.BETWEEN_TOOLS, Off.IMPOSSIBLE


@pytest.mark.parametrize(
    ("model", "thinks", "off", "most_output"),
    [
        ("claude-3-haiku-20240307", NEVER, NOTHING, 4_096),
        ("claude-2.1", NEVER, NOTHING, 4_096),
        ("claude-instant-1.2", NEVER, NOTHING, 4_096),
        ("claude-3-5-haiku-20241022", NEVER, NOTHING, 8_192),
        ("claude-3-7-sonnet-latest", BUDGET, DISABLED, 64_000),
        ("claude-sonnet-4-20250514", BUDGET, DISABLED, 64_000),
        ("claude-opus-4-20250514", BUDGET, DISABLED, 32_000),
        ("claude-opus-4-1-20250805", BUDGET, DISABLED, 32_000),
        ("claude-opus-4-5-20251101", BUDGET, DISABLED, 64_000),
        ("claude-haiku-4-5", BUDGET, DISABLED, 64_000),
        ("claude-sonnet-4-5@20250929", BUDGET, DISABLED, 64_000),
        ("claude-sonnet-4-6", ADAPTIVE, NOTHING, 64_000),
        ("us.anthropic.claude-opus-4-6-v1", ADAPTIVE, NOTHING, 128_000),
        ("anthropic/claude-4.7-opus", ADAPTIVE, NOTHING, 128_000),
        ("anthropic/claude-opus-4.8", ADAPTIVE, NOTHING, 128_000),
        ("claude-opus-5", ADAPTIVE, DISABLED, 128_000),
        ("claude-sonnet-5", ADAPTIVE, DISABLED, 128_000),
        ("claude-haiku-5-5", ADAPTIVE, DISABLED, 128_000),
        ("claude-sonnet-5-5", ADAPTIVE, BETWEEN, 128_000),
        ("claude-opus-5-5", ADAPTIVE, IMPOSSIBLE, 128_000),
        ("claude-fable-5-1", ADAPTIVE, IMPOSSIBLE, 128_000),
        ("claude-mythos-5", ADAPTIVE, IMPOSSIBLE, 128_000),
        ("claude-mythos-preview", ADAPTIVE, IMPOSSIBLE, 128_000),
        ("claude-x", ADAPTIVE, NOTHING, 128_000),
    ],
)
def test_how_a_model_thinks_and_how_much_it_says(model: str, thinks: Thinks, off: Off, most_output: int) -> None:
    family = family_of(model)
    assert (family.thinks, family.off, family.most_output) == (thinks, off, most_output)
    assert family.default_cap == min(32_000, most_output)


@pytest.mark.parametrize(
    ("model", "has_max", "has_xhigh", "takes_sampling", "has_schema"),
    [
        ("claude-opus-4-1", False, False, True, False),
        ("claude-sonnet-4-5", False, False, True, True),
        ("claude-sonnet-4-6", True, False, True, True),
        ("claude-opus-4-6", True, False, True, True),
        ("claude-opus-4-7", True, True, False, True),
        ("claude-sonnet-5", True, True, False, True),
        ("claude-haiku-5-5", True, True, False, True),
        ("claude-fable-5", True, True, False, True),
        ("claude-mythos-preview", True, False, False, True),
    ],
)
def test_what_came_with_which_version(
    model: str, has_max: bool, has_xhigh: bool, takes_sampling: bool, has_schema: bool
) -> None:
    family = family_of(model)
    assert (family.has_max, family.has_xhigh) == (has_max, has_xhigh)
    assert (family.takes_sampling, family.has_schema) == (takes_sampling, has_schema)
    assert family.hides_thoughts == (not takes_sampling)


def test_models_of_other_makers_think_by_budget() -> None:
    for model in ("kimi-k2", "deepseek-chat", "glm-4.7", "anthropic/minimax-m2"):
        assert family_of(model) is OTHER
