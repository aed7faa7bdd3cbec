"""The models of an agent as the settings give them: facts, chain, lists."""

from dataclasses import replace
from pathlib import Path

import pytest

from lanewayd.clock import SystemClock
from lanewayd.config import Flags, load_settings
from lanewayd.messages import Attachment, LongPrompts, Prices, ThinkingLevel
from lanewayd.models.candidates import Candidate
from lanewayd.records import Priority, RunRequest
from lanewayd.wiring.model_services import ModelServices

L = ThinkingLevel
PROVIDERS = """
[models.providers.acme]
base_url = "http://127.0.0.1:9/v1"
[models.providers.locked]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "NOBODY_SETS_THIS"
"""


def services(home: Path, toml: str, **environ: str) -> ModelServices:
    (home / "laneway.toml").write_text(toml + PROVIDERS)
    environ = {"LANEWAY_HOME": str(home), "HOME": str(home), **environ}
    return ModelServices(load_settings(environ, Flags()), environ=environ, clock=SystemClock())


def chain_of(models: ModelServices, agent_id: str = "main", requested: str = "", session: str = "") -> list[str]:
    """References of the chain of a run that is accepted so."""
    return [candidate.reference for candidate in candidates(models, agent_id, requested, session)]


def candidates(
    models: ModelServices, agent_id: str = "main", requested: str = "", session: str = "", thinking: str = ""
) -> tuple[Candidate, ...]:
    choice = models.choose(agent_id, requested, session=session)
    request = RunRequest(
        "hi",
        agent_id,
        "main",
        Priority.NORMAL,
        model=choice.reference,
        timeout_s=0,
        model_source=choice.source.value,
        thinking=thinking,
    )
    return models.candidates(request)


AGENTS = """
[agents.defaults]
model = "acme/a"
fallbacks = ["fast", "acme/A", "locked/x", "acme/c"]
model_policy.allow = ["acme/a"]
[agents.list.own]
model = "acme/own"
[agents.list.chained]
model = "acme/own"
fallbacks = ["acme/next", "acme/own"]
[agents.list.strict]
fallbacks = []
[agents.list.same]
model = "acme/a"
[models.aliases]
fast = "acme/b"
"""


@pytest.mark.parametrize(
    ("agent_id", "requested", "session", "expected"),
    [
        ("main", "", "", ["acme/a", "acme/b", "acme/c"]),
        ("main", "acme/a", "", ["acme/a"]),
        ("main", "", "acme/a", ["acme/a"]),
        ("own", "", "", ["acme/own"]),
        ("chained", "", "", ["acme/own", "acme/next"]),
        ("strict", "", "", ["acme/a"]),
        ("same", "", "", ["acme/a"]),
    ],
)
def test_the_chain_of_a_run(tmp_path: Path, agent_id: str, requested: str, session: str, expected: list[str]) -> None:
    """Fallbacks are not filtered by the allow-list (R-4.11), but one without a key cannot be called."""
    assert chain_of(services(tmp_path, AGENTS), agent_id, requested, session) == expected


def test_a_model_of_the_environment_has_the_fallbacks_of_the_defaults(tmp_path: Path) -> None:
    models = services(tmp_path, '[agents.defaults]\nfallbacks = ["acme/b"]\n', OPENAI_API_KEY="sk-1")
    assert chain_of(models) == ["openai/gpt-5.2", "acme/b"]


def test_a_run_of_an_agent_that_is_gone_keeps_its_model(tmp_path: Path) -> None:
    request = RunRequest("hi", "gone", "main", Priority.NORMAL, model="acme/x", timeout_s=0, model_source="agent")
    assert [each.reference for each in services(tmp_path, AGENTS).candidates(request)] == ["acme/x"]


ENTRIES = """
[agents.list.capped]
context_tokens = 60000
thinking = "extra high"
[models.catalog."openai/gpt-5.2"]
context_tokens = 100000
price_output = 7.0
[models.catalog."Acme/Large"]
context_window = 131072
max_output_tokens = 16384
input = ["text", "image"]
supported_reasoning_efforts = ["high", "off", "low"]
thinking_format = "qwen"
replay_reasoning = true
price_input = 0.5
[models.catalog."Acme/Large".reasoning_effort_map]
high = "maximal"
minimal = ""
[models.catalog."openai/gpt-5.1"]
reasoning = false
"""


def test_an_entry_of_the_settings_goes_before_the_catalogue(tmp_path: Path) -> None:
    models = services(tmp_path, ENTRIES, OPENAI_API_KEY="sk-1")
    [large] = candidates(models, requested="acme/large")
    facts = large.facts
    assert (facts.context_window, facts.max_output_tokens, facts.accepts_images) == (131_072, 16_384, True)
    assert (facts.thinking_levels, dict(facts.effort_map)) == ((L.LOW, L.HIGH), {"high": "maximal", "minimal": None})
    assert (facts.can_think, facts.thinking_format, facts.replays_reasoning) == (True, "qwen", True)
    assert facts.prices == Prices(input=0.5)
    [known] = candidates(models, requested="openai/gpt-5.2")
    assert (known.facts.context_window, known.facts.max_output_tokens) == (100_000, 128_000)
    assert known.facts.prices == Prices(1.75, 7.0, 0.175)
    [dull] = candidates(models, requested="openai/gpt-5.1", thinking="high")
    assert (dull.facts.can_think, dull.thinking) == (False, L.OFF)


def test_what_long_prompts_cost_more_can_be_said_and_denied(tmp_path: Path) -> None:
    toml = """
    [models.catalog."acme/large"]
    long_prompt_tokens = 1000
    long_prompt_input_factor = 3.0
    [models.catalog."openai/gpt-6.2-sol"]
    price_input = 1.0
    long_prompt_output_factor = 1.2
    [models.catalog."openai/gpt-5.4"]
    long_prompt_tokens = 0
    """
    models = services(tmp_path, toml, OPENAI_API_KEY="sk-1")
    said = {
        reference: candidates(models, requested=reference)[0].facts.prices.long_prompts
        for reference in ("acme/large", "openai/gpt-6.2-sol", "openai/gpt-5.4", "openai/gpt-5.2")
    }
    assert said == {
        "acme/large": LongPrompts(1000, 3.0, 1.0),
        "openai/gpt-6.2-sol": LongPrompts(272_000, 2.0, 1.2),
        "openai/gpt-5.4": None,
        "openai/gpt-5.2": None,
    }


def test_models_of_ollama_cost_nothing_unless_the_settings_say_so(tmp_path: Path) -> None:
    priced = '[models.providers.home]\napi = "ollama"\nbase_url = "http://127.0.0.1:9/"\n'
    priced += '[models.catalog."home/dear"]\nprice_input = 3.0\n'
    models = services(tmp_path, priced)
    for reference in ("ollama/qwen3:8b", "home/qwen3:8b"):
        [free] = candidates(models, requested=reference)
        assert (free.facts.prices.input, free.facts.prices.output) == (0.0, 0.0)
    [dear] = candidates(models, requested="home/dear")
    assert (dear.facts.prices.input, dear.facts.prices.output) == (3.0, None)


def test_of_an_unknown_model_the_stated_defaults_hold(tmp_path: Path) -> None:
    [unknown] = candidates(services(tmp_path, ""), requested="acme/nobody-knows-it")
    assert (unknown.facts.context_window, unknown.facts.max_output_tokens) == (200_000, 0)
    assert not unknown.facts.is_known
    assert unknown.thinking is None


@pytest.mark.parametrize(
    ("agent_id", "requested", "thinking", "level"),
    [
        ("main", "openai/gpt-5.2", "", L.MEDIUM),
        ("main", "openai/gpt-5-pro", "", L.HIGH),
        ("main", "openai/gpt-4.1", "", L.OFF),
        ("main", "acme/x", "", None),
        ("capped", "openai/gpt-5.2", "", L.XHIGH),
        ("capped", "openai/gpt-5", "", L.HIGH),
        ("capped", "openai/gpt-5.2", "low", L.LOW),
        ("capped", "openai/gpt-5.2", "adaptive", L.MEDIUM),
        ("capped", "acme/x", "", L.XHIGH),
    ],
)
def test_the_level_of_a_candidate(
    tmp_path: Path, agent_id: str, requested: str, thinking: str, level: ThinkingLevel | None
) -> None:
    [candidate] = candidates(services(tmp_path, ENTRIES, OPENAI_API_KEY="sk-1"), agent_id, requested, thinking=thinking)
    assert candidate.thinking is level


@pytest.mark.parametrize(
    ("image_model", "model", "mime_type", "expected"),
    [
        ("acme/eyes", "acme/blind", "image/png", ["acme/eyes", "acme/blind"]),
        ("acme/eyes", "acme/blind", "application/pdf", ["acme/blind"]),
        ("acme/eyes", "openai/gpt-5.2", "image/png", ["openai/gpt-5.2"]),
        ("locked/eyes", "acme/blind", "image/png", ["acme/blind"]),
        ("acme/Blind", "acme/blind", "image/png", ["acme/Blind"]),
    ],
)
def test_images_go_to_the_image_model_where_the_chosen_one_cannot_see(
    tmp_path: Path, image_model: str, model: str, mime_type: str, expected: list[str]
) -> None:
    models = services(tmp_path, f"[agents.defaults]\nimage_model = '{image_model}'\n", OPENAI_API_KEY="sk-1")
    run = RunRequest("see", "main", "main", Priority.NORMAL, model=model, timeout_s=0, model_source="request")
    run = replace(run, attachments=(Attachment("a", mime_type, "0" * 64, 5),))
    assert [each.reference for each in models.candidates(run)] == expected


def test_an_agents_cap_lowers_every_window(tmp_path: Path) -> None:
    models = services(tmp_path, ENTRIES, OPENAI_API_KEY="sk-1")
    for requested in ("openai/gpt-5.2", "acme/large", "acme/x"):
        assert candidates(models, "capped", requested)[0].facts.context_window == 60_000


def test_the_list_has_what_is_known_of_usable_providers_and_what_the_settings_name(tmp_path: Path) -> None:
    models = services(tmp_path, AGENTS + ENTRIES.replace("[agents.list.capped]", "[agents.list.c]"), OPENAI_API_KEY="k")
    listed = {each.model: each for each in models.models()}
    assert (listed["openai/gpt-5-mini"].context_window, listed["openai/gpt-5-mini"].available) == (400_000, True)
    assert listed["openai/gpt-5.2"].context_window == 100_000
    assert (listed["Acme/Large"].context_window, listed["Acme/Large"].api) == (131_072, "openai_chat")
    assert (listed["acme/own"].context_window, listed["acme/own"].available) == (0, True)
    assert listed["acme/b"].available
    assert (listed["anthropic/*"].available, listed["openai/*"].available) == (False, True)
    assert not [name for name in listed if name.startswith("anthropic/") and name != "anthropic/*"]
    assert len({name.lower() for name in listed}) == len(listed)
