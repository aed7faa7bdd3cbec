"""All settings as they are in effect, each with where it comes from; for people. Shows no secret."""

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lanewayd.config import KNOWN_PROVIDERS, Flags, load_settings, read_api_keys
from lanewayd.errors import StartupError
from lanewayd.settings.reader import NamePath, dotted
from lanewayd.settings.rules import rule_of
from lanewayd.settings.schema import Settings
from lanewayd.tools.redaction import Redactor

__all__ = ["Flags", "Origin", "Row", "StartupError", "read_effective_settings"]

_HIDDEN = "[hidden]"
_OWN_OF_DEFAULTS = ("max_concurrent", "fallbacks")
"""Settings that an agent does not take from the defaults of all."""


class Origin(StrEnum):
    """The layer that a value comes from; later ones win."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Row:
    """One setting. `value` is made of JSON's types, None = unset; `source` names file and line, variable or flag."""

    name: str
    value: Any
    origin: Origin
    source: str = ""
    note: str = ""
    """What else there is to say."""


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """`starts` are the values that say where everything is and are no settings: home, config, listen."""

    starts: Sequence[Row]
    settings: Sequence[Row]

    given: int
    """How many were given, not counting what agents take from the defaults of all."""


def read_effective_settings(
    environ: Mapping[str, str], flags: Flags, config_path: Path | None = None
) -> EffectiveSettings:
    """Read all layers as the server does, and the keys too. Raises the StartupError with which it would refuse."""
    settings = load_settings(environ, flags, config_path)
    providers = settings.models.providers.items()
    keys = [key for name, provider in providers for key in read_api_keys(name, provider, environ).values()]
    redactor = Redactor(key for key in keys if key)
    rows = []
    for path, own in _leaves(settings, ()):
        name = dotted(path)
        origin, source = _origin(name, path, settings.sources)
        value, note = _shown(own, redactor), ""
        if path[-1] == "api_key_env" and own is not None:
            provider, is_set = path[-2], bool(environ.get(own))
            is_usual = len(path) == 4 and provider in KNOWN_PROVIDERS and KNOWN_PROVIDERS[provider].api_key_env == own
            note = "set" if is_set else "not set"
            # A name that names nothing may be the key itself.
            value = own if is_set or is_usual else _HIDDEN
        rows.append(Row(name, value, origin, source, note))
    return EffectiveSettings(_starts(settings, environ, flags, config_path), rows, len(settings.sources))


def _leaves(section: Any, path: NamePath) -> Iterator[tuple[NamePath, Any]]:
    """Every setting below a section that this version has."""
    for member in dataclasses.fields(section):
        value, here = getattr(section, member.name), (*path, member.name)
        if is_dataclass(value):
            yield from _leaves(value, here)
        elif isinstance(value, Mapping):
            for name, entry in value.items():
                if is_dataclass(entry):
                    yield from _leaves(entry, (*here, name))
                elif "rule" in member.metadata:
                    yield (*here, name), entry
        elif "rule" in member.metadata and not rule_of(member.metadata).is_later:
            yield here, value


def _origin(name: str, path: NamePath, sources: Mapping[str, str]) -> tuple[Origin, str]:
    """Where a value comes from; what an agent does not say itself, the defaults of all agents say."""
    source = sources.get(name)
    if source is None and path[:2] == ("agents", "list") and path[-1] not in _OWN_OF_DEFAULTS:
        source = sources.get(dotted(("agents", "defaults", *path[3:])))
    if source is None:
        return Origin.DEFAULT, ""
    if source.startswith("environment variable "):
        return Origin.ENVIRONMENT, source.removeprefix("environment variable ")
    if source.startswith("flag "):
        return Origin.FLAG, source.removeprefix("flag ")
    return Origin.FILE, source


def _shown(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, Path):
        value = os.fspath(value)
    if isinstance(value, tuple | list):
        return [_shown(item, redactor) for item in value]
    if isinstance(value, Mapping):
        return {name: _shown(item, redactor) for name, item in value.items()}
    return redactor.text(value) if isinstance(value, str) else value


def _starts(settings: Settings, environ: Mapping[str, str], flags: Flags, config_path: Path | None) -> Sequence[Row]:
    def row(name: str, value: Any, variable: str, *, flag: str = "", is_flag: bool = False) -> Row:
        if is_flag:
            return Row(name, value, Origin.FLAG, flag)
        if environ.get(variable):
            return Row(name, value, Origin.ENVIRONMENT, variable)
        return Row(name, value, Origin.DEFAULT)

    config = os.fspath(settings.config_path) if settings.config_path else None
    return (
        row("home", os.fspath(settings.home), "LANEWAY_HOME"),
        row("config", config, "LANEWAY_CONFIG", flag="--config", is_flag=config_path is not None),
        row("listen", settings.listen, "LANEWAY_LISTEN", flag="--listen", is_flag=flags.listen is not None),
    )
