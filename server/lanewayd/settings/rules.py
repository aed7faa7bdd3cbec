"""How a setting is declared: its default and what its value must meet. schema.py declares them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

from lanewayd.records import AGENT_ID

MIB = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must meet besides its type. `landed`: the choices this version can do; the others say so.
    `expectation`: what `accepts` asks for, in words."""

    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    landed: tuple[str, ...] = ()
    is_later: bool = False
    is_private: bool = False
    """The value is never shown: it may be a secret that was put into the wrong place."""
    expectation: str = ""
    accepts: Callable[[str], bool] | None = None
    names: Callable[[str], bool] | None = None
    """Of a section with free names: what a name must meet instead of `is_name`."""
    name_expectation: str = ""
    problem: Callable[[str, Any], str] | None = None
    """Of a free table: what is wrong with a name and its value, in words; empty if nothing is."""


def setting(default: Any, **rule: Any) -> Any:
    """A dataclass field with a default and a Rule."""
    return field(default=default, metadata={"rule": Rule(**rule)})


def later() -> Any:
    """A reserved name without a capability behind it yet."""
    return field(default=None, metadata={"rule": Rule(is_later=True)})


def entries(**rule: Any) -> Any:
    """A section with free names that has a Rule: for the names, and for the values where they are texts or lists."""
    return field(default_factory=dict, metadata={"rule": Rule(**rule)})


def free_table(problem: Callable[[str, Any], str]) -> Any:
    """A section with free names whose values are of any type, tables too."""
    return field(default_factory=dict, metadata={"rule": Rule(problem=problem)})


def section(section_type: type) -> Any:
    """A nested section with all its defaults."""
    return field(default_factory=section_type)


def rule_of(metadata: Mapping[str, Any]) -> Rule:
    """The Rule of a dataclass field; an empty one for sections."""
    return cast(Rule, metadata.get("rule", Rule()))


def is_name(text: str) -> bool:
    """Whether `text` may name an agent, a provider or a lane."""
    return _NAME.fullmatch(text) is not None


def is_agent_id(text: str) -> bool:
    """Whether `text` is an agent id in its canonical form, the one that session keys hold."""
    return AGENT_ID.fullmatch(text) is not None


def is_session_type(text: str) -> bool:
    """Whether `text` is what kind of conversation a session may be."""
    return text in ("direct", "group", "thread")


def is_variable(text: str) -> bool:
    """Whether `text` may name an environment variable."""
    return _VARIABLE.fullmatch(text) is not None


def is_base_url(text: str) -> bool:
    """An http(s) URL with a host, without user, password, query and fragment."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


def is_model_reference(text: str) -> bool:
    """`provider/model`, split at the first slash."""
    provider, slash, model = text.partition("/")
    return bool(slash) and is_name(provider) and bool(model) and model == model.strip()


def is_model_name(text: str) -> bool:
    """`provider/model`, or a name without a slash: of an alias."""
    return is_model_reference(text) or is_name(text)


def is_model_pattern(text: str) -> bool:
    """What an allow-list may hold: a model, an alias, or the beginning of a reference and `*` for all that follows."""
    return is_model_name(text) or (text.endswith("/*") and is_name(text.partition("/")[0]) and "*" not in text[:-1])


def is_store_url(text: str) -> bool:
    """`sqlite:///` and a path, or a PostgreSQL URL."""
    return (text.startswith("sqlite:///") and len(text) > len("sqlite:///")) or is_postgresql_url(text)


def is_postgresql_url(text: str) -> bool:
    """Whether the store is a PostgreSQL server."""
    return text.startswith(("postgresql://", "postgres://"))
