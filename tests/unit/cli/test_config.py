"""`laneway config` as a process."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.processes import run

TOML = """\
[agents.defaults]
model = "acme/large"
max_turns = 7
[agents.list.research]
max_turns = 9
[models.providers.acme]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "ACME_KEY"
[drain]
timeout_s = 20
park_s = 5
announce_s = 1
"""
KEY = "sk-0123456789abcdef-very-secret"


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """Of a home with a settings file and a key."""
    (home / "laneway.toml").write_text(TOML)
    return {"LANEWAY_HOME": str(home), "ACME_KEY": KEY}


async def shown(*arguments: str, environ: dict[str, str]) -> dict[str, Any]:
    """What `config show --json` says of each setting, by name."""
    ended = await run("config", "show", "--json", *arguments, environ=environ)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    settings = {row.pop("name"): row for row in document.pop("settings")}
    return document | settings


async def test_each_value_is_shown_with_the_layer_that_won(home: Path, environ: dict[str, str]) -> None:
    environ |= {"LANEWAY_DRAIN__PARK_S": "4", "LANEWAY_DRAIN__ANNOUNCE_S": "2"}
    rows = await shown("--set", "drain.announce_s=3", environ=environ)
    file = f"{home}/laneway.toml"
    assert rows["drain.timeout_s"] == {"value": 20, "source": "file", "from": f"{file}:10"}
    assert rows["drain.park_s"] == {"value": 4, "source": "environment", "from": "LANEWAY_DRAIN__PARK_S"}
    assert rows["drain.announce_s"] == {"value": 3, "source": "flag", "from": "--set drain.announce_s"}
    assert rows["events.delta_interval_ms"] == {"value": 25, "source": "default", "from": ""}
    assert rows["store.url"] == {"value": None, "source": "default", "from": ""}


async def test_an_agent_shows_what_it_takes_from_the_defaults_of_all(home: Path, environ: dict[str, str]) -> None:
    rows = await shown(environ=environ)
    file = f"{home}/laneway.toml"
    assert rows["agents.list.research.max_turns"] == {"value": 9, "source": "file", "from": f"{file}:5"}
    assert rows["agents.list.research.model"] == {"value": "acme/large", "source": "file", "from": f"{file}:2"}
    assert rows["agents.list.main.max_turns"] == {"value": 7, "source": "file", "from": f"{file}:3"}


async def test_the_places_of_everything_are_shown(home: Path, environ: dict[str, str]) -> None:
    rows = await shown("--listen", "127.0.0.1:7", environ=environ)
    assert rows["home"] == {"value": str(home), "source": "environment", "from": "LANEWAY_HOME"}
    assert rows["config"] == {"value": f"{home}/laneway.toml", "source": "default", "from": ""}
    assert rows["listen"] == {"value": "127.0.0.1:7", "source": "flag", "from": "--listen"}


async def test_keys_are_shown_nowhere(home: Path, environ: dict[str, str]) -> None:
    (home / "key").write_text("another-very-secret-key\n")
    toml = f'{TOML}[models.providers.filed]\nbase_url = "http://h/{KEY}/v1"\napi_key_file = "key"\n'
    # Somebody put the key where the name of its variable belongs.
    toml += '[models.providers.slip]\nbase_url = "http://h/v1"\napi_key_env = "abcdef0123456789"\n'
    (home / "laneway.toml").write_text(toml)
    for arguments in (("show",), ("show", "--json"), ("check",), ("check", "--json")):
        ended = await run("config", *arguments, environ=environ)
        assert ended.code == 0
        assert not any(secret in ended.out for secret in (KEY, "another-very", "abcdef0123456789"))
    rows = await shown(environ=environ)
    assert rows["models.providers.acme.api_key_env"]["value"] == "ACME_KEY"
    assert rows["models.providers.acme.api_key_env"]["note"] == "set"
    assert rows["models.providers.openai.api_key_env"]["note"] == "not set"
    assert rows["models.providers.slip.api_key_env"]["value"] == "[hidden]"
    assert rows["models.providers.filed.base_url"]["value"] == "http://h/[redacted]/v1"


async def test_without_a_terminal_each_setting_is_one_line(home: Path, environ: dict[str, str]) -> None:
    ended = await run("config", "show", environ=environ)
    lines = {line.split()[0]: line.split() for line in ended.out.splitlines()}
    assert lines["drain.timeout_s"] == ["drain.timeout_s", "20.0", "file", f"{home}/laneway.toml:10"]
    assert lines["drain.announce_s"][1:] == ["1.0", "file", f"{home}/laneway.toml:12"]
    assert lines["store.url"] == ["store.url", "-", "default"]
    assert "\x1b" not in ended.out


async def test_good_settings_pass(home: Path, environ: dict[str, str]) -> None:
    ended = await run("config", "check", environ=environ)
    assert (ended.code, ended.out) == (0, f"ok: {home}/laneway.toml, 8 settings given\n")
    ended = await run("config", "check", "--json", environ=environ)
    expected = {"ok": True, "home": str(home), "config": f"{home}/laneway.toml", "listen": "127.0.0.1:50551"}
    assert json.loads(ended.out) == expected | {"given": 8}


async def test_without_a_settings_file_everything_is_a_default(home: Path) -> None:
    ended = await run("config", "check", environ={"LANEWAY_HOME": str(home)})
    assert (ended.code, ended.out) == (
        0,
        f"ok: no settings file ({home}/laneway.toml does not exist), 0 settings given\n",
    )
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "show"])
async def test_an_unknown_setting_ends_with_2_and_the_nearest_known_one(
    home: Path, environ: dict[str, str], command: str
) -> None:
    (home / "laneway.toml").write_text("[drain]\ntimout_s = 1\n")
    ended = await run("config", command, environ=environ)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"laneway: unknown setting `drain.timout_s` ({home}/laneway.toml:2); "
        "the nearest known one is `drain.timeout_s`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "drain.park_s=soon"), "expected a number"),
        (("--set", "drain.park_s"), "must be NAME=VALUE"),
        (("--config", "/nonexistent.toml"), "does not exist"),
        (("--listen", "0.0.0.0:1"), "--insecure"),
    ],
)
async def test_what_a_server_would_refuse_is_refused(
    environ: dict[str, str], arguments: tuple[str, ...], reason: str
) -> None:
    ended = await run("config", "check", "--json", *arguments, environ=environ)
    assert ended.code == 2
    document = json.loads(ended.out)
    assert document["ok"] is False
    assert reason in document["error"]
    assert document["error"] in ended.err


async def test_a_key_that_no_request_can_carry_is_refused_without_showing_it(environ: dict[str, str]) -> None:
    ended = await run("config", "check", environ=environ | {"ACME_KEY": "two\nlines"})
    assert (ended.code, ended.out) == (2, "")
    assert "ACME_KEY must hold the key and nothing else" in ended.err
    assert "two" not in ended.err


async def test_several_keys_show_their_places_and_their_order_and_no_value(home: Path, environ: dict[str, str]) -> None:
    work = home / "work.key"
    work.write_text("sk-work-0123456789-very-secret")
    more = '[models.providers.acme.profiles.work]\napi_key_file = "work.key"\n'
    more += (
        '[models.providers.acme.profiles.home]\napi_key_env = "HOME_KEY"\n[auth.order]\nacme = ["work", "default"]\n'
    )
    (home / "laneway.toml").write_text(TOML + more)
    rows = await shown(environ=environ | {"HOME_KEY": KEY + "-home"})
    profiles = "models.providers.acme.profiles"
    assert rows[f"{profiles}.work.api_key_file"]["value"] == str(work)
    assert rows[f"{profiles}.home.api_key_env"] == {
        "value": "HOME_KEY",
        "note": "set",
        "source": "file",
        "from": f"{home}/laneway.toml:16",
    }
    assert rows["auth.order.acme"]["value"] == ["work", "default"]
    assert "very-secret" not in json.dumps(rows)
