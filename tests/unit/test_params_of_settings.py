"""Params: what the settings say that requests to models carry."""

from pathlib import Path

import pytest
from tests.unit.test_config import load, refusal

from lanewayd.config import Flags


def test_params_can_be_said_in_every_layer_and_an_agents_are_its_own(tmp_path: Path) -> None:
    toml = """
    [agents.defaults.params]
    top_p = 0.5
    stop = ["END"]
    [agents.defaults.params.options]
    num_gpu = 1
    [agents.list.a.params]
    top_k = 3
    """
    environ = {"LANEWAY_AGENTS__DEFAULTS__PARAMS__TOP_P": "0.9", "LANEWAY_AGENTS__DEFAULTS__PARAMS__USER": "ada"}
    flags = Flags(settings={"agents.defaults.params.options.mirostat": "true"})
    settings = load(tmp_path, toml, environ, flags)
    assert dict(settings.agents.defaults.params) == {
        "top_p": 0.9,
        "user": "ada",
        "stop": ["END"],
        "options": {"num_gpu": 1, "mirostat": True},
    }
    assert dict(settings.agents.list["a"].params) == {"top_k": 3}
    assert dict(settings.agents.list["main"].params) == {}
    assert settings.sources["agents.defaults.params.stop"] == f"{tmp_path}/laneway.toml:4"


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[agents.defaults.params]\nmessages = []", ("agents.defaults.params.messages", ":2", "itself writes")),
        ("[agents.defaults.params]\nmax_tokens = 1", ("agents.defaults.params.max_tokens", "`max_output_tokens`")),
        ("[agents.defaults.params]\ntemperature = 3", ("= 3", "a number from 0 to 2")),
        ("[agents.defaults.params]\ntemperature = nan", ("= nan", "a number from 0 to 2")),
        ("[agents.list.a.params]\nseed = 0.5", ("agents.list.a.params.seed", "an integer of 64 bits")),
        ("[models.catalog.'openai/x'.params]\nmax_output_tokens = 0", ("max_output_tokens", "1 or more")),
        ("[agents.defaults.params]\nx = {a = [1979-05-27]}", ("agents.defaults.params.x", "lists and tables of them")),
        ("[agents.defaults.params]\nx = [inf]", ("agents.defaults.params.x", "a finite number")),
        (f"[agents.defaults.params]\nx = {'[' * 33}{']' * 33}", ("agents.defaults.params.x", "32 levels at most")),
        (f"[agents.defaults.params]\nx = {'[' * 5000}{']' * 5000}", ("laneway.toml", "lie too deep")),
        ("[agents.defaults]\nparams = 1", ("agents.defaults.params", "is a section")),
    ],
)
def test_a_param_that_cannot_be_sent_is_refused_with_its_place(
    tmp_path: Path, toml: str, parts: tuple[str, ...]
) -> None:
    text = refusal(tmp_path, toml)
    assert all(part in text for part in parts), text


def test_a_text_that_is_no_json_is_a_text(tmp_path: Path) -> None:
    texts = {"plain": "low", "quoted": '"12"', "number": "12", "deep": "[" * 50_000}
    flags = Flags(settings={f"agents.defaults.params.{name}": text for name, text in texts.items()})
    params = load(tmp_path, flags=flags).agents.defaults.params
    assert dict(params) == {"plain": "low", "quoted": "12", "number": 12, "deep": "[" * 50_000}


def test_as_many_levels_as_are_allowed_are_taken(tmp_path: Path) -> None:
    toml = f"[agents.defaults.params]\nx = {'[' * 32}{']' * 32}"
    assert load(tmp_path, toml).agents.defaults.params["x"]
