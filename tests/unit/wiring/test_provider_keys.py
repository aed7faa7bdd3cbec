"""Several keys of a provider: which can be used, files that change, and what must be shown nowhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.fake_clock import FakeClock

from lanewayd.config import load_settings
from lanewayd.errors import ErrorCode, LanewayError, StartupError
from lanewayd.models.profiles import ProfileGroup
from lanewayd.tools.redaction import Redactor
from lanewayd.wiring.model_services import ModelServices

ACME = """
[models.providers.acme]
base_url = "http://127.0.0.1:1/v1"
api_key_env = "OWN"

[models.providers.acme.profiles.work]
api_key_file = "work.key"

[models.providers.acme.profiles.home]
api_key_env = "HOME_KEY"
"""
OWN, WORK, HOME = "sk-own-0123456789", "sk-work-0123456789", "sk-home-0123456789"
Services = Callable[..., ModelServices]


@pytest.fixture
def work_key(tmp_path: Path) -> Path:
    path = tmp_path / "work.key"
    path.write_text(f"{WORK}\n")
    return path


@pytest.fixture
def services(tmp_path: Path, work_key: Path) -> Services:
    def make(toml: str = "", **environ: str) -> ModelServices:
        (tmp_path / "laneway.toml").write_text(ACME + toml)
        variables = {"LANEWAY_HOME": str(tmp_path), **environ}
        return ModelServices(load_settings(variables), environ=variables, clock=FakeClock())

    return make


def test_without_an_order_all_profiles_that_have_a_key_are_used_the_providers_own_first(services: Services) -> None:
    group = services(OWN=OWN, HOME_KEY=HOME).keys.groups["acme"]
    assert group == ProfileGroup(("default", "work", "home"), is_explicit=False)
    assert services(OWN=OWN).keys.groups["acme"].names == ("default", "work")


def test_with_an_order_only_those_in_it_are_used(services: Services) -> None:
    models = services('[auth.order]\nacme = ["home", "default"]\n', OWN=OWN, HOME_KEY=HOME)
    assert models.keys.groups["acme"] == ProfileGroup(("home", "default"), is_explicit=True)
    assert models.profiles.count("acme") == 2


def test_an_order_can_come_from_the_environment(services: Services) -> None:
    models = services(LANEWAY_AUTH__ORDER__ACME="work, default", OWN=OWN)
    assert models.keys.groups["acme"].names == ("work", "default")


def test_each_profile_has_its_key_and_a_call_that_names_none_gets_the_first(services: Services) -> None:
    models = services('[auth.order]\nacme = ["work", "home"]\n', OWN=OWN, HOME_KEY=HOME)
    assert [models.keys.key("acme", name) for name in ("work", "home", "", "gone")] == [WORK, HOME, WORK, WORK]


def test_one_key_of_several_is_enough_and_none_refuses_the_model_with_the_places_of_its_order(
    services: Services, work_key: Path
) -> None:
    assert services().choose("main", "acme/m").reference == "acme/m"
    with pytest.raises(LanewayError) as caught:
        services('[auth.order]\nacme = ["home", "default"]\n').choose("main", "acme/m")
    assert caught.value.code is ErrorCode.MODEL_NOT_CONFIGURED
    assert "variable OWN" in caught.value.message
    assert "variable HOME_KEY" in caught.value.message
    assert str(work_key) not in caught.value.message


def test_a_file_is_read_again_for_each_call_and_an_empty_one_is_just_being_written(
    services: Services, work_key: Path
) -> None:
    keys = services(OWN=OWN).keys
    work_key.write_text("sk-rotated-0123456789")
    assert keys.key("acme", "work") == "sk-rotated-0123456789"
    work_key.write_text("")
    assert keys.key("acme", "work") == "sk-rotated-0123456789"
    work_key.unlink()
    with pytest.raises(FileNotFoundError):
        keys.key("acme", "work")


async def test_a_refused_key_is_another_one_only_if_its_file_has_changed(services: Services, work_key: Path) -> None:
    models = services(OWN=OWN)
    models.keys.key("acme", "work")
    assert not await models.profiles.refresh("acme", "work")
    work_key.write_text("sk-rotated-0123456789")
    assert await models.profiles.refresh("acme", "work")
    assert not await models.profiles.refresh("acme", "work")
    work_key.unlink()
    for provider, profile in (("acme", "work"), ("acme", "default"), ("ollama", ""), ("scripted", "")):
        assert not await models.profiles.refresh(provider, profile)


def test_the_mark_of_a_key_is_another_one_when_the_key_is_and_tells_nothing(services: Services, work_key: Path) -> None:
    keys, same = services(OWN=OWN).keys, services(OWN=OWN, HOME_KEY=OWN).keys
    before = keys.mark("acme", "work")
    assert before == same.mark("acme", "work") != keys.mark("acme", "default") == same.mark("acme", "home")
    assert len(before) == 6
    work_key.write_text("sk-rotated-0123456789")
    after = keys.mark("acme", "work")
    assert after != before
    work_key.unlink()
    assert keys.mark("acme", "work") == after


def test_all_keys_are_secrets_also_those_that_a_file_had_before(services: Services, work_key: Path) -> None:
    models = services(OWN=OWN, HOME_KEY=HOME)
    redactor = Redactor(models.secrets)
    said = f"{OWN} {WORK} {HOME} rotated-0123456789"
    assert redactor.text(said) == "[redacted] [redacted] [redacted] rotated-0123456789"
    work_key.write_text("rotated-0123456789")
    models.keys.key("acme", "work")
    assert redactor.text(said) == "[redacted] [redacted] [redacted] [redacted]"
    for number in range(50):
        work_key.write_text(f"rotated-again-{number}")
        models.keys.key("acme", "work")
    assert len(models.secrets()) < 15


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[models.providers.acme.profiles.default]\napi_key_env = 'K'", "profiles.default`: that is the name"),
        ("[models.providers.acme.profiles.x]", "profiles.x`: give either `api_key_env` or `api_key_file`"),
        ("[models.providers.acme.profiles.x]\napi_key_env = 'K'\napi_key_file = 'k'", "profiles.x`: give either"),
        ("[models.providers.acme.profiles.x]\napi_key_env = 'sk-secret'", "the name of an environment variable"),
        ("[models.providers.acme.profiles.x]\napi_key_file = 'none'", "profiles.x.api_key_file`: "),
        ("[models.providers.acme.profiles.x]\nbase_url = 'http://h'", "unknown setting"),
        ("[auth.order]\nacme = ['work', 'gone']", "no profile 'gone'; it has default, work, home"),
        ("[auth.order]\nollama = ['x']", "no profile 'x'; it has none: it needs no key"),
        ("[auth.order]\nnobody = ['x']", "no provider 'nobody'"),
        ("[auth.order]\nacme = []", "name at least one profile"),
        ("[auth.order]\nacme = ['work', 'work']", "each once"),
        ("[auth.order]\nacme = 'work'", "a list of profiles"),
        ("[auth.order.acme]\nwork = 1", "is a setting, not a section"),
        ("[auth]\norder = ['work']", "is a section, not a setting"),
    ],
)
def test_wrong_profiles_and_orders_are_refused_without_showing_what_may_be_a_key(
    services: Services, toml: str, said: str
) -> None:
    with pytest.raises(StartupError) as caught:
        services(toml)
    assert said in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("content", ["two\nlines", "schlüssel"])
def test_a_bad_key_file_of_a_profile_is_refused_at_the_start(services: Services, work_key: Path, content: str) -> None:
    work_key.write_text(content)
    with pytest.raises(StartupError, match=r"models\.providers\.acme\.profiles\.work") as caught:
        services()
    assert content not in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "too large"])
def test_what_is_no_small_regular_file_is_no_key_and_nobody_waits_for_it(
    services: Services, work_key: Path, kind: str
) -> None:
    keys = services(OWN=OWN).keys
    work_key.unlink()
    match kind:
        case "pipe":  # reading it would wait for its writer, on the loop that everything runs on
            os.mkfifo(work_key)
        case "device":  # it never ends
            work_key.symlink_to("/dev/zero")
        case "folder":
            work_key.mkdir()
        case _:
            work_key.write_text("k" * 65_537)
    with pytest.raises(OSError):  # noqa: PT011 - whatever the reason is, it is that of the file
        keys.key("acme", "work")
    assert keys.reread("acme", "work") is False
    with pytest.raises(StartupError, match=r"profiles.work.api_key_file`: .* cannot be read: "):
        services(OWN=OWN)
