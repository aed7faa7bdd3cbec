"""When the embedded model is used, and what is said when it is not."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.config import load_settings
from lanewayd.errors import ErrorCode, LanewayError
from lanewayd.providers.local.weights import EMBEDDED_MODEL, INSTALL_COMMAND, LocalWeights, WeightsFault
from lanewayd.wiring import local_model
from lanewayd.wiring.model_services import ModelServices

REFERENCE = f"local/{EMBEDDED_MODEL}"
Services = Callable[..., ModelServices]


@pytest.fixture
def services(tmp_path: Path) -> Services:
    def make(toml: str = "", **environ: str) -> ModelServices:
        (tmp_path / "laneway.toml").write_text(toml)
        variables: Mapping[str, str] = {"LANEWAY_HOME": str(tmp_path), **environ}
        return ModelServices(load_settings(variables), environ=variables, clock=FakeClock())

    return make


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[LocalWeights]:
    """What is found of the model, one after the other; the last one again and again."""
    found = [LocalWeights(EMBEDDED_MODEL, None, fault=WeightsFault.ENGINE_MISSING, advice=f"do {INSTALL_COMMAND}")]
    monkeypatch.setattr(local_model, "find_weights", lambda _gguf: found.pop(0) if len(found) > 1 else found[0])
    return found


def test_without_a_key_every_agent_has_the_embedded_model(services: Services) -> None:
    models = services()
    assert models.choose("main").reference == REFERENCE
    assert [agent.model for agent in models.agents(())] == [REFERENCE]
    assert [(model.model, model.available) for model in models.models() if model.model.startswith("local")] == [
        (REFERENCE, True)
    ]


def test_with_a_key_it_is_there_only_for_those_who_name_it(services: Services) -> None:
    models = services(OPENAI_API_KEY="sk-test")
    assert models.choose("main").reference == "openai/gpt-5.2"
    assert models.choose("main", REFERENCE).reference == REFERENCE


def test_it_can_be_the_default_by_name(services: Services) -> None:
    models = services(f'[agents.defaults]\nmodel = "{REFERENCE}"\n', OPENAI_API_KEY="sk-test")
    assert models.choose("main").reference == REFERENCE


def test_switched_off_it_is_not_used_silently_nor_by_name(services: Services) -> None:
    models = services("[models.local]\nenabled = false\n")
    for requested in ("", REFERENCE):
        with pytest.raises(LanewayError, match=r"models\.local\.enabled") as caught:
            models.choose("main", requested)
        assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED
    assert [model.available for model in models.models() if model.model == REFERENCE] == [False]


def test_not_installed_the_refusal_says_the_one_command(services: Services, installed: list[LocalWeights]) -> None:
    models = services()
    with pytest.raises(LanewayError) as caught:
        models.choose("main")
    assert INSTALL_COMMAND in caught.value.message
    assert [model.available for model in models.models() if model.model == REFERENCE] == [False]
    with pytest.raises(LanewayError, match="which this run was accepted for"):
        models.provider("local")


def test_installed_meanwhile_it_is_used_without_a_restart(services: Services, installed: list[LocalWeights]) -> None:
    models = services()
    with pytest.raises(LanewayError):
        models.choose("main")
    installed.append(LocalWeights(EMBEDDED_MODEL, Path("/somewhere"), "0" * 64))
    installed.pop(0)
    assert models.choose("main").reference == REFERENCE


def test_not_installed_it_is_not_looked_for_when_another_model_is_used(
    services: Services, installed: list[LocalWeights], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = services(OPENAI_API_KEY="sk-test")
    # Looking through all folders of packages takes milliseconds, and each message would wait for it.
    monkeypatch.setattr(local_model, "find_weights", lambda _gguf: pytest.fail("it was looked for"))
    assert models.choose("main").reference == "openai/gpt-5.2"
    assert models.choose("main", "scripted/x").reference == "scripted/x"


def test_the_key_of_its_endpoint_is_one_of_the_secrets(services: Services) -> None:
    first, second = services(), services()
    assert len(first.secrets()) == 1
    assert first.secrets() != second.secrets()
