"""Settings of the service: one TOML file, then environment variables, then flags; later ones win (D-10).

Read once at the start by app.py, checked as a whole, frozen. A setting's variable is LANEWAY_ and its dotted name in
upper case with __ for each dot; an empty variable counts as unset. A wrong setting is a StartupError before anything
has been opened.
"""

import errno
import ipaddress
import os
import re
import stat
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lanewayd.errors import StartupError
from lanewayd.messages import LOCAL_PROVIDER, SCRIPTED_PROVIDER
from lanewayd.records import DEFAULT_AGENT
from lanewayd.settings.models import OWN_PROFILE, AgentSettings, ProfileSettings, ProviderSettings
from lanewayd.settings.reader import NamePath, Raw, Reader, Tree, dotted, merge, put_text, read_toml, setting_names
from lanewayd.settings.rules import MIB, is_agent_id, is_postgresql_url
from lanewayd.settings.schema import Settings

MAX_KEY_FILE_BYTES = 65_536
"""More than any key or token has."""
DEFAULT_LISTEN = "127.0.0.1:50551"
VARIABLE_PREFIX = "LANEWAY_"
RESERVED_VARIABLES = frozenset({"LISTEN", "HOME", "CONFIG", "ADDRESS", "RUN_ID", "CALL_ID", "OWNER"})
"""Variables with the prefix that are no settings."""
# Kubernetes sets such variables in every container of a namespace that has a Service called laneway...
# Two underscores mean a dot of a setting: telemetry.prometheus_port is one.
SERVICE_LINK = re.compile(
    r"(?!\w*__)(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)

KNOWN_PROVIDERS: Mapping[str, ProviderSettings] = types.MappingProxyType(
    {
        "openai": ProviderSettings(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
        "anthropic": ProviderSettings(
            api="anthropic", base_url="https://api.anthropic.com", api_key_env="ANTHROPIC_API_KEY"
        ),
        "gemini": ProviderSettings(
            api="gemini", base_url="https://generativelanguage.googleapis.com", api_key_env="GEMINI_API_KEY"
        ),
        "openrouter": ProviderSettings(base_url="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"),
        "ollama": ProviderSettings(api="ollama", base_url="http://127.0.0.1:11434"),
    }
)
OWN_PROVIDERS = (SCRIPTED_PROVIDER, LOCAL_PROVIDER)
"""They always exist; no settings can take their names."""

_NO_SETTINGS = frozenset({"home", "listen", "is_insecure", "config_path", "sources"})
_START_NAMES = {"home": "LANEWAY_HOME", "listen": "--listen or LANEWAY_LISTEN", "config": "--config or LANEWAY_CONFIG"}
_UNIX_PATH_BYTES = 107
"""The kernel's limit for the path of a socket."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says. `settings`: dotted name -> text."""

    listen: str | None = None
    is_insecure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *, listen: str | None = None, is_insecure: bool = False, assignments: Sequence[str] = ()) -> "Flags":
        """From the texts of `--listen`, `--insecure` and each `--set`. Raises StartupError."""
        settings: dict[str, str] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise StartupError("what follows --set must be NAME=VALUE")
            settings[name.strip()] = value
        return cls(listen=listen, is_insecure=is_insecure, settings=settings)


def load_settings(environ: Mapping[str, str], flags: Flags = Flags(), config_path: Path | None = None) -> Settings:
    """The settings of all layers, checked. `config_path` None: LANEWAY_CONFIG, else laneway.toml in home if it exists.

    Raises StartupError that names the setting, where it stands and what to do.
    """
    home = home_of(environ)
    file_path = _settings_file(environ, home, config_path)
    tree = read_toml(file_path) if file_path else {}
    for name, where in _START_NAMES.items():
        if name in tree:
            raise StartupError(f"`{name}` in {file_path} is no setting: use {where}")
    tree = merge(merge(tree, _environment_layer(environ)), _flag_layer(flags))

    def expand(text: str) -> Path:
        return home / _with_user(text, environ)

    start = Settings(home=home, listen=_listen(environ, flags), is_insecure=flags.is_insecure, config_path=file_path)
    names = tuple(setting_names(Settings, skip=_NO_SETTINGS))
    settings = _read(start, tree, Reader(expand, lambda _path, entry_type: entry_type(), names))
    _check_listen(settings)
    _check_together(settings)
    return settings


def read_api_keys(name: str, provider: ProviderSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The keys of a provider by the names of their profiles; empty where there is none. Raises StartupError on a bad
    one."""
    return {
        profile: _read_api_key(f"models.providers.{name}" + _section_of(profile), place, environ)
        for profile, place in provider.all_profiles.items()
    }


def _section_of(profile: str) -> str:
    return "" if profile == OWN_PROFILE else f".profiles.{profile}"


def read_key_file(path: Path) -> bytes:
    """What the file of a key holds. Never waits: it is read again for every call, on the event loop.

    Raises OSError when it cannot be read, is no regular file (a pipe waits for its writer, a device has no end), or
    holds more than MAX_KEY_FILE_BYTES.
    """
    # A pipe opened with O_NONBLOCK does not wait for a writer; for regular files it means nothing.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = os.read(handle, MAX_KEY_FILE_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > MAX_KEY_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it holds more than {MAX_KEY_FILE_BYTES:,} bytes")
    return content


def _read_api_key(section: str, place: ProfileSettings, environ: Mapping[str, str]) -> str:
    if place.api_key_file is not None:
        try:
            key = read_key_file(place.api_key_file).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise StartupError(f"`{section}.api_key_file`: {place.api_key_file} cannot be read: {reason}") from error
    else:
        key = environ.get(place.api_key_env, "").strip() if place.api_key_env else ""
    if not key.isascii() or not key.isprintable() or (place.api_key_file is not None and not key):
        raise StartupError(f"`{section}`: {place.key_source} must hold the key and nothing else")
    return key


def _with_user(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / text[2:]
    return Path(text)


def home_of(environ: Mapping[str, str]) -> Path:
    """The home, absolute: LANEWAY_HOME, else ~/.laneway."""
    return Path.cwd() / _with_user(environ.get("LANEWAY_HOME") or "~/.laneway", environ)


def _settings_file(environ: Mapping[str, str], home: Path, config_path: Path | None) -> Path | None:
    if config_path is None and not environ.get("LANEWAY_CONFIG"):
        usual_path = home / "laneway.toml"
        return usual_path if usual_path.exists() else None
    named_path = Path.cwd() / (config_path or _with_user(environ["LANEWAY_CONFIG"], environ))
    if not named_path.exists():
        where = "--config" if config_path else "LANEWAY_CONFIG"
        raise StartupError(f"the settings file {named_path} ({where}) does not exist")
    return named_path


def _environment_layer(environ: Mapping[str, str]) -> Tree:
    layer: Tree = {}
    for variable, text in sorted(environ.items()):
        name = variable.removeprefix(VARIABLE_PREFIX)
        if name == variable or name in RESERVED_VARIABLES or not text or SERVICE_LINK.fullmatch(name):
            continue
        raw = Raw(text, f"environment variable {variable}", is_text=True)
        put_text(layer, tuple(name.lower().split("__")), raw)
    return layer


def _flag_layer(flags: Flags) -> Tree:
    layer: Tree = {}
    for name, text in flags.settings.items():
        path = tuple(part.strip('"') for part in re.findall(r'"[^"]*"|[^.]+', name)) or (name,)
        put_text(layer, path, Raw(text, f"flag --set {name}", is_text=True))
    return layer


def _read(start: Settings, tree: Tree, reader: Reader) -> Settings:
    """Build `agents.defaults` first: it is what the entries of `agents.list` start from."""
    agents = tree.get("agents", {})
    given_defaults = agents.get("defaults") if isinstance(agents, dict) else None
    defaults = start.agents.defaults
    if isinstance(given_defaults, dict):
        defaults = reader.build(defaults, given_defaults, ("agents", "defaults"))

    def entry_base(path: NamePath, entry_type: type) -> Any:
        if entry_type is AgentSettings:
            return replace(defaults, max_concurrent=None, fallbacks=None, params={})
        if entry_type is ProviderSettings:
            return KNOWN_PROVIDERS.get(path[-1], ProviderSettings())
        return entry_type()

    reader.entry_base = entry_base
    settings: Settings = reader.build(start, tree, skip=_NO_SETTINGS)
    agent_list = dict(settings.agents.list)
    agent_list.setdefault(DEFAULT_AGENT, entry_base((), AgentSettings))
    providers = {**KNOWN_PROVIDERS, **settings.models.providers}
    return replace(
        settings,
        sources=types.MappingProxyType(reader.sources),
        agents=replace(settings.agents, list=types.MappingProxyType(agent_list)),
        models=replace(settings.models, providers=types.MappingProxyType(providers)),
    )


def _listen(environ: Mapping[str, str], flags: Flags) -> str:
    return flags.listen or environ.get("LANEWAY_LISTEN") or DEFAULT_LISTEN


def _check_listen(settings: Settings) -> None:
    listen = settings.listen
    expected = f"the address to listen on, {listen!r}, must be HOST:PORT, [IPV6]:PORT or unix:PATH"
    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:").removeprefix("//")
        if not path or len(os.fsencode(path)) > _UNIX_PATH_BYTES:
            raise StartupError(f"{expected}; PATH has 1 to {_UNIX_PATH_BYTES} bytes")
        return
    host, colon, port = listen.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise StartupError(expected)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise StartupError(expected)
    if not (settings.is_insecure or _is_loopback(host.strip("[]"))):
        raise StartupError(
            f"refusing to listen on {listen}: other machines could reach it, without encryption and without "
            "authentication. Listen on 127.0.0.1 or unix:PATH, or accept the risk with --insecure"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_together(settings: Settings) -> None:
    """What a single value cannot show."""
    _check_agents(settings)
    _check_models(settings)
    _check_providers(settings)
    _check_auth_order(settings)
    limits = settings.limits
    largest = limits.max_message_bytes + limits.max_extra_system_prompt_bytes + limits.max_attachments_bytes
    if limits.max_receive_bytes < largest + MIB:
        raise StartupError(
            "`limits.max_receive_bytes` must lie above `max_message_bytes`, `max_extra_system_prompt_bytes` and "
            "`max_attachments_bytes` together, with 1 MiB to spare: beyond it requests are refused without a reason"
        )
    if settings.drain.park_s > settings.drain.timeout_s:
        raise StartupError("`drain.park_s` must not exceed `drain.timeout_s`: it is the last part of it")
    if "main" in settings.lanes:
        raise StartupError("`lanes.main`: the width of the lane main is `agents.defaults.max_concurrent`")
    if settings.store.url is not None and is_postgresql_url(settings.store.url):
        source = settings.sources["store.url"]
        raise StartupError(f"`store.url` ({source}): PostgreSQL is not available in this version; use sqlite:///PATH")


def _check_agents(settings: Settings) -> None:
    for agent_id, agent in settings.agents.list.items():
        if not is_agent_id(agent_id):
            raise StartupError(f"`agents.list.{agent_id}`: an agent id has a-z 0-9 _ - only, at most 64")
        if agent.max_concurrent is not None:
            raise StartupError(f"`agents.list.{agent_id}.max_concurrent` is not available in this version")


def _check_models(settings: Settings) -> None:
    """What names a model must name a provider that there is, or an alias."""
    aliases = {alias.lower() for alias in settings.models.aliases}
    for name, model in _named_models(settings):
        provider, slash, _ = model.lower().partition("/")
        if (slash and provider in (*OWN_PROVIDERS, *settings.models.providers)) or (not slash and provider in aliases):
            continue
        own = settings.sources.get(name) or settings.sources.get(f"agents.defaults.{name.rpartition('.')[2]}")
        place = f"`{name}` = {model!r} ({own})" if own else f"`{name}`"
        if not slash:
            raise StartupError(f"{place}: expected provider/model, or the name of an alias in [models.aliases]")
        known = ", ".join(sorted(settings.models.providers))
        raise StartupError(
            f"{place}: there is no provider {provider!r}; known: {known}, "
            f"{', '.join(OWN_PROVIDERS)}. Add [models.providers.{provider}] or change it"
        )


def _named_models(settings: Settings) -> Iterator[tuple[str, str]]:
    """(name of the setting, the model it names), of all that name one."""
    agents = {"agents.defaults": settings.agents.defaults}
    agents |= {f"agents.list.{agent_id}": agent for agent_id, agent in settings.agents.list.items()}
    for section_name, agent in agents.items():
        for name, model in (("model", agent.model), ("image_model", agent.image_model)):
            if model:
                yield f"{section_name}.{name}", model
        for model in agent.fallbacks or ():
            yield f"{section_name}.fallbacks", model
    for alias, model in settings.models.aliases.items():
        yield f"models.aliases.{alias}", model
    for reference in settings.models.catalog:
        yield dotted(("models", "catalog", reference)), reference


def _check_providers(settings: Settings) -> None:
    for name, provider in settings.models.providers.items():
        key = f"models.providers.{name}"
        if name in OWN_PROVIDERS or name != name.lower():
            raise StartupError(f"`{key}`: the name of a provider is lower case and not {' or '.join(OWN_PROVIDERS)}")
        if not provider.base_url:
            raise StartupError(f"`{key}.base_url` is missing: the URL before /chat/completions, http(s)://host/v1")
        if f"{key}.api_key_env" in settings.sources and provider.api_key_file is not None:
            raise StartupError(f"`{key}`: give either `api_key_env` or `api_key_file`")
        for profile, place in provider.profiles.items():
            if profile == OWN_PROFILE:
                raise StartupError(f"`{key}.profiles.{profile}`: that is the name of the key in [{key}] itself")
            if (place.api_key_env is None) == (place.api_key_file is None):
                raise StartupError(f"`{key}.profiles.{profile}`: give either `api_key_env` or `api_key_file`")


def _check_auth_order(settings: Settings) -> None:
    for name, order in settings.auth.order.items():
        key, provider = f"auth.order.{name}", settings.models.providers.get(name)
        if provider is None:
            known = ", ".join(sorted(settings.models.providers))
            raise StartupError(f"`{key}`: there is no provider {name!r}; known: {known}")
        for profile in order:
            if profile not in provider.all_profiles:
                known = ", ".join(provider.all_profiles) or "none: it needs no key"
                raise StartupError(f"`{key}`: the provider has no profile {profile!r}; it has {known}")
        if not order or len(set(order)) < len(order):
            raise StartupError(f"`{key}`: name at least one profile, and each once")
