import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lanewayd.config import KNOWN_PROVIDERS, SERVICE_LINK, Flags, load_settings, read_api_keys
from lanewayd.errors import StartupError
from lanewayd.settings.models import AgentSettings, ProviderSettings
from lanewayd.settings.reader import setting_names
from lanewayd.settings.schema import Settings, TelemetrySettings

NOT_SETTINGS = frozenset({"home", "listen", "is_insecure", "config_path", "sources"})


def load(
    home: Path,
    toml: str = "",
    environ: Mapping[str, str] | None = None,
    flags: Flags | None = None,
    config_path: Path | None = None,
) -> Settings:
    if toml:
        (home / "laneway.toml").write_text(toml, encoding="utf-8")
    return load_settings({"LANEWAY_HOME": str(home), **(environ or {})}, flags or Flags(), config_path)


def refusal(home: Path, toml: str = "", environ: Mapping[str, str] | None = None, flags: Flags | None = None) -> str:
    with pytest.raises(StartupError) as caught:
        load(home, toml, environ, flags)
    return str(caught.value)


def test_without_any_setting_the_documented_defaults_hold(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.home == tmp_path
    assert settings.listen == "127.0.0.1:50551"
    assert settings.config_path is None
    assert dict(settings.sources) == {}
    assert settings.store_path == tmp_path / "laneway.db"
    assert settings.agents.list["main"] == AgentSettings()
    assert settings.agents.defaults.timeout_seconds == 172_800
    assert settings.workspace_of("main") == tmp_path / "workspaces" / "main"
    assert dict(settings.models.providers) == dict(KNOWN_PROVIDERS)
    assert settings.limits.max_queued_runs == 10_000
    assert settings.drain.timeout_s == 300
    assert settings.tools.exec.env == ()


def test_the_home_is_in_the_users_home_by_default() -> None:
    assert load_settings({"HOME": "/home/ada"}).home == Path("/home/ada/.laneway")


def test_the_example_file_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "laneway.example.toml"
    text = example.read_text(encoding="utf-8")
    assert load(tmp_path, config_path=example).sources
    from_file = load(tmp_path, config_path=example)
    plain = load(tmp_path)
    for name in ("agents", "models", "queue", "session", "events", "runs", "limits", "recovery", "drain", "store"):
        assert getattr(from_file, name) == getattr(plain, name), name
    assert (from_file.tools, from_file.telemetry) == (plain.tools, plain.telemetry)
    later = (
        "rpc.debug_services",
        "diagnostics.",
        "limits.max_attachment",
        "limits.tenant.",
    )
    for name in setting_names(Settings, skip=NOT_SETTINGS):
        if not name.startswith(later):
            assert name.rpartition(".")[2] in text, name


def test_the_comments_of_the_example_are_settings_too(tmp_path: Path) -> None:
    example = (Path(__file__).parents[2] / "laneway.example.toml").read_text(encoding="utf-8")
    lines = [line.removeprefix("# ") for line in example.splitlines()[8:]]
    settings = load(tmp_path, "\n".join(line for line in lines if not line.startswith("api_key_file")))
    assert settings.models.providers["acme"].api_key_env == "ACME_KEY"
    assert settings.lanes["reports"].max_concurrent == 4


def test_later_layers_win_and_each_value_keeps_its_source(tmp_path: Path) -> None:
    toml = "[drain]\ntimeout_s = 1\npark_s = 0\n\n[recovery]\nmax_attempts = 1\n[events]\ndelta_interval_ms = 1\n"
    environ = {"LANEWAY_RECOVERY__MAX_ATTEMPTS": "2", "LANEWAY_EVENTS__DELTA_INTERVAL_MS": "2"}
    settings = load(tmp_path, toml, environ, Flags(settings={"events.delta_interval_ms": "3"}))
    assert (settings.drain.timeout_s, settings.recovery.max_attempts, settings.events.delta_interval_ms) == (1.0, 2, 3)
    assert settings.sources["drain.timeout_s"] == f"{tmp_path}/laneway.toml:2"
    assert settings.sources["recovery.max_attempts"] == "environment variable LANEWAY_RECOVERY__MAX_ATTEMPTS"
    assert settings.sources["events.delta_interval_ms"] == "flag --set events.delta_interval_ms"


def test_an_agent_starts_from_the_defaults(tmp_path: Path) -> None:
    toml = """
    [agents.defaults]
    model = "acme/large"
    timeout_seconds = 10
    max_concurrent = 3
    [agents.list.research]
    timeout_seconds = 20
    workspace = "~/research"
    [models.providers.acme]
    base_url = "http://127.0.0.1:9000/v1"
    """
    settings = load(tmp_path, toml, {"HOME": "/home/ada"})
    research = settings.agents.list["research"]
    assert (research.model, research.timeout_seconds, research.max_concurrent) == ("acme/large", 20.0, None)
    assert settings.workspace_of("research") == Path("/home/ada/research")
    assert set(settings.agents.list) == {"main", "research"}
    assert settings.lane_widths()["main"] == 3


def test_fallbacks_are_the_only_setting_of_models_that_an_agent_does_not_take_over(tmp_path: Path) -> None:
    toml = """
    [agents.defaults]
    model = "fast"
    fallbacks = ["openai/x"]
    image_model = "openai/eyes"
    thinking = "x-high"
    context_tokens = 50000
    model_policy.allow = ["openai/*"]
    [agents.list.a]
    [agents.list.b]
    fallbacks = []
    model_policy.allow = ["fast"]
    [models.aliases]
    fast = "openai/small"
    """
    settings = load(tmp_path, toml)
    a, b = settings.agents.list["a"], settings.agents.list["b"]
    assert (a.fallbacks, b.fallbacks, settings.agents.defaults.fallbacks) == (None, (), ("openai/x",))
    assert (a.model, a.image_model, a.thinking, a.context_tokens) == ("fast", "openai/eyes", "x-high", 50_000)
    assert (a.model_policy.allow, b.model_policy.allow) == (("openai/*",), ("fast",))


def test_a_catalogue_entry_can_be_said_in_every_layer(tmp_path: Path) -> None:
    toml = """
    [models.catalog."openai/gpt-9.1"]
    context_window = 1000
    price_input = 1
    [models.catalog."openai/gpt-9.1".reasoning_effort_map]
    high = "maximal"
    """
    environ = {"LANEWAY_MODELS__ALIASES__FAST": "openai/gpt-9.1"}
    flags = Flags(settings={'models.catalog."openai/gpt-9.1".context_window': "2000"})
    settings = load(tmp_path, toml, environ, flags)
    entry = settings.models.catalog["openai/gpt-9.1"]
    assert (entry.context_window, entry.price_input) == (2000, 1.0)
    assert dict(entry.reasoning_effort_map) == {"high": "maximal"}
    assert dict(settings.models.aliases) == {"fast": "openai/gpt-9.1"}
    assert settings.sources["models.aliases.fast"] == "environment variable LANEWAY_MODELS__ALIASES__FAST"
    assert settings.sources['models.catalog."openai/gpt-9.1".price_input'] == f"{tmp_path}/laneway.toml:4"


def test_lane_widths_have_all_lanes_known_by_name(tmp_path: Path) -> None:
    toml = "[lanes.cron]\nmax_concurrent = 2\n[lanes.'nested.1']\nmax_concurrent = 0\n[limits]\nmax_depth = 2"
    widths = load(tmp_path, toml).lane_widths()
    assert widths.pop("main") >= 8
    assert widths == {"cron": 2, "nested.1": 0, "nested.2": 8}


def test_variables_reach_free_names_in_any_case_of_letters(tmp_path: Path) -> None:
    toml = "[agents.list.research]\nmax_turns = 1\n[lanes.Reports]\nmax_concurrent = 1\n"
    environ = {
        "LANEWAY_AGENTS__LIST__RESEARCH__MAX_TURNS": "7",
        "LANEWAY_MODELS__PROVIDERS__ACME__BASE_URL": "http://127.0.0.1:1/v1",
        "LANEWAY_MODELS__PROVIDERS__ACME__SELF_HOSTED": "yes",
        "LANEWAY_LANES__REPORTS__MAX_CONCURRENT": "9",
        "LANEWAY_TOOLS__EXEC__ENV": "AWS_REGION, EDITOR",
    }
    settings = load(tmp_path, toml, environ)
    assert settings.agents.list["research"].max_turns == 7
    assert settings.models.providers["acme"] == ProviderSettings(base_url="http://127.0.0.1:1/v1", self_hosted=True)
    assert settings.lanes["Reports"].max_concurrent == 9
    assert settings.tools.exec.env == ("AWS_REGION", "EDITOR")


def test_reserved_empty_and_service_link_variables_are_no_settings(tmp_path: Path) -> None:
    names = "ADDRESS RUN_ID CALL_ID OWNER SERVICE_HOST SERVICE_PORT SERVICE_PORT_GRPC PORT PORT_50551_TCP_ADDR"
    environ = {f"LANEWAY_{name}": "x" for name in names.split()} | {"LANEWAY_NONSENSE": "", "OTHER": "x"}
    assert dict(load(tmp_path, environ=environ).sources) == {}


def test_no_setting_looks_like_a_service_link() -> None:
    for name in setting_names(Settings, skip=NOT_SETTINGS):
        assert not SERVICE_LINK.fullmatch(name.upper().replace(".", "__")), name


def test_telemetry_captures_nothing_by_default_and_its_settings_are_checked(tmp_path: Path) -> None:
    assert load(tmp_path).telemetry == TelemetrySettings(capture_content=False, semconv="0.1.0", prometheus_port=None)
    environ = {"LANEWAY_TELEMETRY__PROMETHEUS_PORT": "9464", "LANEWAY_TELEMETRY__CAPTURE_CONTENT": "true"}
    settings = load(tmp_path, '[telemetry]\nsemconv = "1.41"\n', environ).telemetry
    assert settings == TelemetrySettings(capture_content=True, semconv="1.41", prometheus_port=9464)
    for wrong in ('semconv = "1.40"', "prometheus_port = 65536", 'capture_content = "some"'):
        with pytest.raises(StartupError, match="telemetry"):
            load(tmp_path, f"[telemetry]\n{wrong}\n")


def test_known_providers_keep_what_is_not_set(tmp_path: Path) -> None:
    settings = load(tmp_path, "[models.providers.openai]\ntimeout_seconds = 5\n")
    assert settings.models.providers["openai"].api_key_env == "OPENAI_API_KEY"
    assert settings.models.providers["openai"].timeout_seconds == 5


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        (
            "[events]\ndelta_intervall_ms = 1",
            ("events.delta_intervall_ms", "laneway.toml:2", "`events.delta_interval_ms`"),
        ),
        ("[agent]\nx = 1", ("`agent`", "laneway.toml:2", "`agents`")),
        ("delta_interval_ms = 1", ("laneway.toml:1", "`events.delta_interval_ms`")),
        ("[agents.list.a]\nmodle = 'x'", ("`agents.list.a.modle`", "`agents.list.a.model`")),
        ("[models.providers.acme]\napi_key = 'sk-secret'", ("`models.providers.acme.api_key_env`",)),
        ("listen = '0.0.0.0:1'", ("`listen`", "LANEWAY_LISTEN")),
    ],
)
def test_an_unknown_name_is_answered_with_its_place_and_the_nearest_one(
    tmp_path: Path, toml: str, parts: tuple[str, ...]
) -> None:
    text = refusal(tmp_path, toml)
    assert all(part in text for part in parts), text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[events]\ndelta_interval_ms = '25'", ("`events.delta_interval_ms` = '25'", ":2", "integer from 0 to 10000")),
        ("[events]\ndelta_interval_ms = true", ("= True", "integer")),
        ("[events]\ndelta_interval_ms = 2.5", ("= 2.5", "integer")),
        ("[events]\ndelta_interval_ms = -1", ("= -1", "integer from 0")),
        ("[events]\ndelta_interval_ms = {}", ("is a setting, not a section",)),
        ("events = 1", ("`events`", "is a section")),
        ("[agents.list]\nresearch = 'x'", ("`agents.list.research`", "is a section")),
        ("[agents.list.'a/b']\nmax_turns = 1", ('agents.list."a/b"', "letters, digits")),
        ("[agents.list.Research]\nmax_turns = 1", ("agents.list.Research", "a-z 0-9")),
        ("[agents.defaults]\ntimeout_seconds = nan", ("a number, 0 or more",)),
        ("[agents.defaults]\nmodel = 'gpt'", ("= 'gpt'", "provider/model")),
        ("[agents.defaults]\nmodel = 'nobody/gpt'", ("agents.defaults.model", ":2", "no provider 'nobody'")),
        ("[agents.list.a]\nmax_concurrent = 2", ("agents.list.a.max_concurrent", "not available")),
        ("[models]\ntransport = 'requests'", ("'requests'", "one of aiohttp, httpx")),
        ("[agents.defaults]\nmodel = 'nobody'", ("agents.defaults.model", ":2", "the name of an alias")),
        ("[agents.defaults]\nfallbacks = ['openai/x', 'nobody/y']", ("agents.defaults.fallbacks", "'nobody/y'")),
        ("[agents.list.a]\nimage_model = 'nobody/y'", ("agents.list.a.image_model", ":2", "no provider 'nobody'")),
        ("[agents.defaults]\nthinking = 'more'", ("agents.defaults.thinking", "one of off, minimal")),
        ("[agents.defaults]\nmodel_policy.allow = ['open*']", ("agents.defaults.model_policy.allow", "provider/*")),
        ("[models.aliases]\nfast = 'small'", ("models.aliases.fast", "expected provider/model")),
        ("[models.aliases]\nfast = 'nobody/small'", ("models.aliases.fast", ":2", "no provider 'nobody'")),
        ("[models.aliases]\n'a/b' = 'openai/x'", ("models.aliases", "a name is letters")),
        ("[models.aliases]\nfast = 1", ("models.aliases.fast", "expected provider/model")),
        ("[models.catalog.large]\nreasoning = true", ("models.catalog.large", ":2", "in quotes")),
        ("[models.catalog.'nobody/x']\nreasoning = true", ("nobody/x", "no provider 'nobody'")),
        ("[models.catalog.'openai/x']\nprice_input = -1", ('catalog."openai/x".price_input', "a number, 0 or more")),
        ("[models.catalog.'openai/x']\ninput = ['sound']", ("input", 'a list of "text" and "image"')),
        ("[models.catalog.'openai/x'.reasoning_effort_map]\nmore = 'x'", ("reasoning_effort_map.more", "one of off")),
        ("[models.providers.acme]\napi = 'openai_chat'", ("models.providers.acme.base_url", "missing")),
        ("[models.providers.scripted]\nbase_url = 'http://h/v1'", ("models.providers.scripted",)),
        ("[models.providers.local]\nbase_url = 'http://h/v1'", ("models.providers.local",)),
        ("[models.providers.Acme]\nbase_url = 'http://h/v1'", ("lower case",)),
        ("[tools.exec]\nenv = ['A', 1]", ("names of environment variables",)),
        ("[runs.retention]\nmax_age_days = 0.5", ("a number, 1 or more",)),
        ("[drain]\npark_s = 400", ("drain.park_s", "drain.timeout_s")),
        ("[limits]\nmax_receive_bytes = 2000000", ("limits.max_receive_bytes", "above")),
        ("[lanes.main]\nmax_concurrent = 2", ("lanes.main", "agents.defaults.max_concurrent")),
        ("[store]\nurl = 'mysql://h'", ("store.url", "sqlite:///PATH")),
        ("[events\n", ("not valid TOML", "line 1")),
    ],
)
def test_a_wrong_value_is_answered_with_name_place_and_expectation(
    tmp_path: Path, toml: str, parts: tuple[str, ...]
) -> None:
    text = refusal(tmp_path, toml)
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    ("toml", "name"),
    [
        ("[store]\nurl = 'postgresql://u:secret@h/db'", "store.url"),
        ("[rpc]\ndebug_services = true", "rpc.debug_services"),
    ],
)
def test_a_capability_that_has_not_landed_is_refused_as_such(tmp_path: Path, toml: str, name: str) -> None:
    text = refusal(tmp_path, toml)
    assert name in text
    assert "not available in this version" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    "environ",
    [
        {"LANEWAY_MODELS__PROVIDERS__ACME__BASE_URL": "http://ada:secret@host/v1"},
        {"LANEWAY_MODELS__PROVIDERS__OPENAI__API_KEY_ENV": "sk-secret"},
        {"LANEWAY_STORE__URL": "mysql://u:secret@h/db"},
    ],
)
def test_a_value_that_may_hold_a_secret_is_never_shown(tmp_path: Path, environ: dict[str, str]) -> None:
    text = refusal(tmp_path, environ=environ)
    assert next(iter(environ)) in text
    assert "secret" not in text


def test_variables_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    text = refusal(tmp_path, environ={"LANEWAY_DRAIN": "1", "LANEWAY_DRAIN__PARK_S": "1"})
    assert "LANEWAY_DRAIN " in text
    assert "LANEWAY_DRAIN__PARK_S" in text


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:1", "localhost:50551", "[::1]:1", "unix:/run/l.sock"])
def test_local_addresses_are_accepted(tmp_path: Path, listen: str) -> None:
    assert load(tmp_path, environ={"LANEWAY_LISTEN": "0.0.0.0:1"}, flags=Flags(listen=listen)).listen == listen


@pytest.mark.parametrize("listen", ["0.0.0.0:50551", "[::]:50551", "10.0.0.7:1", "example.org:1", "localhost.evil:1"])
def test_other_addresses_are_refused_without_insecure(tmp_path: Path, listen: str) -> None:
    assert "--insecure" in refusal(tmp_path, environ={"LANEWAY_LISTEN": listen})
    assert load(tmp_path, environ={"LANEWAY_LISTEN": listen}, flags=Flags(is_insecure=True)).listen == listen


@pytest.mark.parametrize(
    "listen", ["50551", ":50551", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:5", "unix:"]
)
def test_a_malformed_address_is_refused(tmp_path: Path, listen: str) -> None:
    assert "HOST:PORT" in refusal(tmp_path, flags=Flags(listen=listen))


def test_a_socket_path_above_the_kernels_limit_is_refused(tmp_path: Path) -> None:
    assert "107 bytes" in refusal(tmp_path, flags=Flags(listen="unix:/" + "x" * 107))


def test_a_settings_file_that_is_named_must_exist(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(StartupError, match=r"none\.toml \(--config\) does not exist"):
        load(tmp_path, config_path=missing)
    assert "(LANEWAY_CONFIG) does not exist" in refusal(tmp_path, environ={"LANEWAY_CONFIG": str(missing)})


def test_a_settings_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "laneway.toml").mkdir()
    assert "cannot be read" in refusal(tmp_path)
    (tmp_path / "laneway.toml").rmdir()
    (tmp_path / "laneway.toml").write_bytes(b"\xff")
    assert "not valid TOML" in refusal(tmp_path)


def test_a_key_comes_from_its_variable_or_its_file(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("  from-file\n")
    by_file = ProviderSettings(base_url="http://h", api_key_file=key_file, api_key_env="K")
    by_variable = ProviderSettings(base_url="http://h", api_key_env="K")
    assert read_api_keys("acme", by_file, {"K": "from-env"}) == {"default": "from-file"}
    assert read_api_keys("acme", by_variable, {"K": "from-env"}) == {"default": "from-env"}
    assert read_api_keys("acme", by_variable, {}) == {"default": ""}
    assert read_api_keys("acme", ProviderSettings(base_url="http://h"), {"": "x"}) == {}
    assert by_file.key_source == f"the file {key_file}"
    assert by_variable.key_source == "the environment variable K"


@pytest.mark.parametrize("content", [b"", b"a\nb", "schlüssel".encode(), b"\xff"])
def test_a_bad_key_file_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(content)
    with pytest.raises(StartupError, match=r"models\.providers\.acme") as caught:
        read_api_keys("acme", ProviderSettings(api_key_file=key_file), {})
    assert "schl" not in str(caught.value)


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="No such file"):
        read_api_keys("acme", ProviderSettings(api_key_file=tmp_path / "none"), {})


def test_both_places_for_a_key_are_refused(tmp_path: Path) -> None:
    toml = "[models.providers.acme]\nbase_url='http://h/v1'\napi_key_env = 'K'\napi_key_file = 'k'"
    assert "either `api_key_env` or `api_key_file`" in refusal(tmp_path, toml)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    providers: Any = load(tmp_path).models.providers
    with pytest.raises(TypeError):
        providers["x"] = ProviderSettings()


def test_the_block_of_the_design_is_valid_but_for_what_has_not_landed(tmp_path: Path) -> None:
    text = (
        '[agents.defaults]\nmodel = "openai/gpt-5.2"\n[models.providers.acme]\napi = "openai_chat"\n'
        'base_url = "http://127.0.0.1:9000/v1"\napi_key_env = "ACME_KEY"\ntimeout_seconds = 300\n'
        "[lanes.cron]\nmax_concurrent = 8\n[queue]\n[session.write_lock]\nacquire_timeout_ms = 60000\n"
    )
    assert tomllib.loads(text)
    assert load(tmp_path, text).models.providers["acme"].timeout_seconds == 300
