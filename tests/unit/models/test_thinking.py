from dataclasses import replace

import pytest

from lanewayd.errors import ErrorCode, FieldError
from lanewayd.messages import UNKNOWN_MODEL, ModelFacts, ThinkingLevel
from lanewayd.models.thinking import check_level, level_for, nearest_level, next_level, valid_levels

L = ThinkingLevel
THINKS = ModelFacts(is_known=True, can_think=True)
GPT_5_1 = replace(THINKS, thinking_levels=(L.LOW, L.MEDIUM, L.HIGH))
GPT_5_PRO = replace(THINKS, thinking_levels=(L.HIGH,))
NEW_CLAUDE = replace(THINKS, thinking_levels=(L.LOW, L.MEDIUM, L.HIGH, L.XHIGH, L.MAX, L.ADAPTIVE))
THINKS_NOT = ModelFacts(is_known=True)


@pytest.mark.parametrize("text", ["xhigh", "x-high", "x_high", "extra-high", "extra high", "extra_high", " X-High "])
def test_spellings_of_xhigh(text: str) -> None:
    assert L.of(text) is L.XHIGH


@pytest.mark.parametrize(("text", "level"), [("highest", L.HIGH), ("High", L.HIGH), ("off", L.OFF), ("more", None)])
def test_other_spellings(text: str, level: ThinkingLevel | None) -> None:
    assert L.of(text) is level


@pytest.mark.parametrize(
    ("wish", "facts", "level"),
    [
        (L.HIGH, GPT_5_1, L.HIGH),
        (L.OFF, NEW_CLAUDE, L.OFF),
        (None, GPT_5_1, L.MEDIUM),
        (None, GPT_5_PRO, L.HIGH),
        (None, THINKS, L.MEDIUM),
        (None, THINKS_NOT, L.OFF),
        (None, UNKNOWN_MODEL, None),
        (L.ULTRA, UNKNOWN_MODEL, L.ULTRA),
    ],
)
def test_without_a_wish_a_model_that_can_think_does_so_in_measure(
    wish: ThinkingLevel | None, facts: ModelFacts, level: ThinkingLevel | None
) -> None:
    assert level_for(wish, facts) is level


@pytest.mark.parametrize(
    ("level", "facts", "stands_for_it"),
    [
        (L.ADAPTIVE, GPT_5_1, L.MEDIUM),
        (L.ADAPTIVE, GPT_5_PRO, L.HIGH),
        (L.ADAPTIVE, NEW_CLAUDE, L.ADAPTIVE),
        (L.XHIGH, GPT_5_1, L.HIGH),
        (L.MAX, GPT_5_1, L.HIGH),
        (L.ULTRA, NEW_CLAUDE, L.MAX),
        (L.XHIGH, GPT_5_PRO, L.HIGH),
        (L.MINIMAL, GPT_5_PRO, L.HIGH),
        (L.MINIMAL, GPT_5_1, L.MINIMAL),
        (L.LOW, replace(THINKS, thinking_levels=(L.MEDIUM, L.HIGH)), L.MEDIUM),
        (L.MEDIUM, replace(THINKS, thinking_levels=(L.LOW, L.HIGH)), L.LOW),
        (L.HIGH, THINKS_NOT, L.OFF),
        (L.OFF, THINKS_NOT, L.OFF),
        (L.MAX, UNKNOWN_MODEL, L.MAX),
    ],
)
def test_a_stored_level_that_the_model_lacks_becomes_another(
    level: ThinkingLevel, facts: ModelFacts, stands_for_it: ThinkingLevel
) -> None:
    assert nearest_level(level, facts) is stands_for_it


def test_a_level_of_the_request_that_the_model_lacks_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(FieldError) as caught:
        check_level(L.XHIGH, GPT_5_1, model="openai/gpt-5.1")
    assert (caught.value.code, caught.value.field) == (ErrorCode.FIELD_INVALID, "thinking")
    assert caught.value.message.endswith(
        "openai/gpt-5.1 does not know the thinking level xhigh; valid: off, minimal, low, medium, high"
    )
    check_level(L.MINIMAL, GPT_5_1, model="m")
    check_level(L.OFF, THINKS_NOT, model="m")
    check_level(L.ULTRA, UNKNOWN_MODEL, model="m")


def test_what_settings_map_is_valid_and_what_they_map_to_nothing_is_not() -> None:
    facts = replace(GPT_5_1, effort_map={"max": "extreme", "low": None})
    assert valid_levels(facts) == (L.OFF, L.MINIMAL, L.MEDIUM, L.HIGH, L.MAX)
    assert valid_levels(replace(facts, effort_map={"off": None, "minimal": None})) == (L.LOW, L.MEDIUM, L.HIGH)


_OPENAI_VALUE = (
    "Unsupported value: 'xhigh' is not supported with the 'gpt-5.1' model. Supported values are: 'low', 'medium', and "
    "'high'. param: reasoning.effort"
)


@pytest.mark.parametrize(
    ("text", "attempted", "expected"),
    [
        (_OPENAI_VALUE, [L.XHIGH], L.LOW),
        (_OPENAI_VALUE, [L.XHIGH, L.LOW], L.MEDIUM),
        (_OPENAI_VALUE, [L.XHIGH, L.LOW, L.MEDIUM, L.HIGH], None),
        ("reasoning_effort: supported values are 'none' and 'high'", [L.LOW], L.OFF),
        ("output_config.effort: Input should be 'medium', 'high' or 'max'", [L.LOW], L.MEDIUM),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", [L.MEDIUM], L.OFF),
        ('"llama3" does not support thinking', [L.MEDIUM], L.OFF),
        ('"llama3" does not support thinking', [L.MEDIUM, L.OFF], None),
        ("Thinking level MEDIUM is not supported for this model.", [L.MEDIUM], L.LOW),
        ("Thinking level MINIMAL is not supported for this model.", [L.MINIMAL], L.OFF),
        ('think value "max" is not supported for this model', [L.MAX], L.HIGH),
        ("the server is overloaded", [L.MEDIUM], None),
        ("thinking took too long", [L.MEDIUM], None),
        ("Unsupported parameter: temperature", [L.MEDIUM], None),
    ],
)
def test_the_next_level_after_a_refusal(
    text: str, attempted: list[ThinkingLevel], expected: ThinkingLevel | None
) -> None:
    assert next_level(text, attempted, GPT_5_1) is expected


def test_however_a_provider_refuses_no_level_is_tried_twice_and_it_ends() -> None:
    for text in (_OPENAI_VALUE, "Thinking level HIGH is not supported", "model does not support thinking"):
        attempted = [L.HIGH]
        while (level := next_level(text, attempted, UNKNOWN_MODEL)) is not None:
            assert level not in attempted
            attempted.append(level)
