"""Turns layers of raw settings into the dataclasses of schema.py.

A layer is a tree: sections are dicts, leaves are Raw. Knows the shape of the schema and nothing of what a single
setting means. Every refusal is a StartupError that names the setting, where it stands and what was expected.
"""

import dataclasses
import difflib
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from lanewayd.errors import StartupError
from lanewayd.settings.rules import Rule, is_name, rule_of

Tree = dict[str, Any]
"""Name -> Tree or Raw."""
NamePath = tuple[str, ...]

_TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_TYPE_WORDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    Path: "a path",
    tuple: "a list",
}
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Raw:
    """A value as it was given. `is_text`: it comes from a place that only knows text."""

    value: Any
    source: str
    is_text: bool = False


def dotted(path: NamePath) -> str:
    """The name of a setting as people write it."""
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in path)


def read_toml(path: Path) -> Tree:
    """The layer of a settings file. Raises StartupError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise StartupError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StartupError(f"the settings file {path} is not valid TOML: {error}") from error
    except RecursionError:
        raise StartupError(f"the settings file {path} cannot be read: lists or tables in it lie too deep") from None

    def wrap(table: Mapping[str, Any], prefix: NamePath) -> Tree:
        return {
            name: wrap(value, (*prefix, name))
            if isinstance(value, dict)
            else Raw(value, f"{path}{_line_suffix(text, (*prefix, name))}")
            for name, value in table.items()
        }

    return wrap(document, ())


def _line_suffix(text: str, path: NamePath) -> str:
    """`:12` if the line of a setting is found in the usual spelling, else nothing: TOML readers keep no lines."""
    current: NamePath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            current = tuple(re.sub(r"[\s\"']", "", header[1]).split("."))
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            name = (*current, *re.sub(r"[\"']", "", key[1]).split("."))
            if ".".join(name) == ".".join(path):
                return f":{number}"
    return ""


def put_text(tree: Tree, path: NamePath, raw: Raw) -> None:
    """Add a value to a layer of text. Raises StartupError when it is also a section there."""
    for name in path[:-1]:
        below = tree.setdefault(name, {})
        if isinstance(below, Raw):
            raise StartupError(f"{raw.source} and {below.source} contradict each other: one is a section of the other")
        tree = below
    if isinstance(tree.get(path[-1]), dict):
        raise StartupError(f"{raw.source} names a section, not a setting")
    tree[path[-1]] = raw


def merge(lower: Tree, upper: Tree) -> Tree:
    """A tree with all of both; `upper` wins. Names of `upper` match those of `lower` in any case of letters."""
    merged = dict(lower)
    spellings = {name.lower(): name for name in lower}
    for name, value in upper.items():
        known_name = spellings.get(name.lower(), name)
        below = merged.get(known_name)
        merged[known_name] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


@dataclass(slots=True)
class Reader:
    """Builds sections from a merged tree and notes the source of each value in `sources`."""

    expand: Callable[[str], Path]
    """Makes a path absolute."""
    entry_base: Callable[[NamePath, type], Any]
    """The values that an entry of a section with free names starts from."""
    known_names: tuple[str, ...] = ()
    """What an error may name instead of an unknown name."""
    sources: dict[str, str] = field(default_factory=dict)

    def build(self, base: Any, tree: Tree, path: NamePath = (), *, skip: frozenset[str] = frozenset()) -> Any:
        """`base` with the values of `tree`; `skip` are fields that are no settings."""
        hints = typing.get_type_hints(type(base))
        members = {member.name: member for member in dataclasses.fields(base) if member.name not in skip}
        values = {}
        for name, node in tree.items():
            here = (*path, name)
            if name not in members:
                raise self._unknown(here, node, tuple(members))
            rule, value_type = rule_of(members[name].metadata), hints[name]
            entry_type = _entry_type(value_type)
            if rule.is_later:
                raise StartupError(f"`{dotted(here)}` ({_source(node)}) is not available in this version; remove it")
            if isinstance(node, Raw) and (is_dataclass(value_type) or entry_type is not None):
                raise StartupError(f"`{dotted(here)}` ({node.source}) is a section, not a setting")
            if entry_type is not None:
                values[name] = self._entries(entry_type, node, here, rule)
            elif is_dataclass(value_type):
                values[name] = self.build(getattr(base, name), node, here)
            else:
                values[name] = self._value(node, value_type, rule, here)
        return dataclasses.replace(base, **values)

    def _entries(self, entry_type: Any, tree: Tree, path: NamePath, rule: Rule) -> Mapping[str, Any]:
        is_section = is_dataclass(entry_type)
        entries = {}
        for name, node in tree.items():
            here = (*path, name)
            if is_section and isinstance(node, Raw):
                raise StartupError(f"`{dotted(here)}` ({node.source}) is a section, not a setting")
            if not (rule.names or is_name)(name):
                words = rule.name_expectation or "letters, digits and _ . -, at most 64"
                raise StartupError(f"`{dotted(here)}` ({_source(node)}): a name is {words}")
            if rule.problem is not None:
                entries[name] = self._free_value(node, rule.problem, here)
            elif is_section:
                entries[name] = self.build(self.entry_base(here, entry_type), node, here)
            else:
                entries[name] = self._value(node, entry_type, rule, here)
        return types.MappingProxyType(entries)

    def _value(self, node: Raw | Tree, value_type: Any, rule: Rule, path: NamePath) -> Any:
        if isinstance(node, dict):
            raise StartupError(f"`{dotted(path)}` ({_source(node)}) is a setting, not a section")
        concrete = _concrete(value_type)
        value = _from_text(node.value, concrete) if node.is_text else node.value
        value = self._typed(value, concrete)
        if value is None or not _meets(value, rule):
            shown = "" if rule.is_private else f" = {_shown(node.value)}"
            raise StartupError(f"`{dotted(path)}`{shown} ({node.source}): expected {_expectation(concrete, rule)}")
        if rule.landed and value not in rule.landed:
            raise StartupError(
                f"`{dotted(path)}` = {_shown(value)} ({node.source}) is not available in this version; "
                f"available: {', '.join(rule.landed)}"
            )
        self.sources[dotted(path)] = node.source
        return value

    def _free_value(self, node: Raw | Tree, problem_of: Callable[[str, Any], str], path: NamePath) -> Any:
        value = _plain(node)
        if problem := problem_of(path[-1], value):
            raise StartupError(f"`{dotted(path)}` = {_shown(value)} ({_source(node)}): {problem}")
        self.sources[dotted(path)] = _source(node)
        return value

    def _unknown(self, path: NamePath, node: Raw | Tree, members: tuple[str, ...]) -> StartupError:
        """Names a neighbour, else any setting. The value is not shown: it may be a key put into the wrong place."""
        near = [dotted((*path[:-1], name)) for name in difflib.get_close_matches(path[-1], members, n=1)]
        near = near or difflib.get_close_matches(dotted(path), self.known_names, n=1, cutoff=0.0)
        nearest = f"; the nearest known one is `{near[0]}`" if near else ""
        return StartupError(f"unknown setting `{dotted(path)}` ({_source(node)}){nearest}")

    def _typed(self, value: Any, concrete: type) -> Any:
        """`value` in the schema's type, None if it does not fit. true and false are no numbers."""
        if concrete is float and type(value) in (int, float):
            return float(value) if math.isfinite(value) else None
        if concrete is Path and isinstance(value, str) and value and "\0" not in value:
            return self.expand(value)
        if concrete is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        return value if type(value) is concrete else None


def _entry_type(value_type: Any) -> Any:
    """The type of the entries if `value_type` is a section with free names: a section each, a text or a list."""
    return typing.get_args(value_type)[1] if typing.get_origin(value_type) is Mapping else None


def _concrete(value_type: Any) -> type:
    """`int` for `int | None`, `tuple` for `tuple[str, ...]`."""
    if isinstance(value_type, types.UnionType):
        (value_type,) = [member for member in typing.get_args(value_type) if member is not types.NoneType]
    return typing.cast(type, typing.get_origin(value_type) or value_type)


def _from_text(text: str, concrete: type) -> Any:
    """What `text` means as `concrete`; `text` itself if it means nothing, which then does not fit the type."""
    if concrete is bool:
        return _TRUTH.get(text.strip().lower(), text)
    if concrete is tuple:
        return [item.strip() for item in text.split(",") if item.strip()]
    if concrete in (int, float):
        try:
            return concrete(text.strip())
        except ValueError:
            return text
    return text


def _plain(node: Raw | Tree) -> Any:
    """The value that a free table holds; a text from a place that only knows text is read as JSON where it is some."""
    if isinstance(node, dict):
        return {name: _plain(below) for name, below in node.items()}
    if not node.is_text:
        return node.value
    try:
        return json.loads(node.value)
    except (ValueError, RecursionError):
        return node.value


def _meets(value: Any, rule: Rule) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (rule.low is None or value >= rule.low) and (rule.high is None or value <= rule.high)
    if rule.choices:
        return value in rule.choices
    if rule.accepts is not None:
        return all(map(rule.accepts, value)) if isinstance(value, tuple) else rule.accepts(value)
    return True


def _expectation(concrete: type, rule: Rule) -> str:
    if rule.choices:
        return "one of " + ", ".join(rule.choices)
    if rule.expectation:
        return rule.expectation
    words = _TYPE_WORDS[concrete]
    if rule.low is not None and rule.high is not None:
        return f"{words} from {rule.low:.15g} to {rule.high:.15g}"
    return words if rule.low is None else f"{words}, {rule.low:.15g} or more"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _source(node: Raw | Tree) -> str:
    """Where a node stands: its own place, or that of the first value below it."""
    while isinstance(node, dict):
        if not node:
            return "an empty section"
        node = next(iter(node.values()))
    return node.source


def setting_names(section_type: type, prefix: NamePath = (), *, skip: frozenset[str] = frozenset()) -> list[str]:
    """The dotted names of all settings below a section; free names are written NAME."""
    names = []
    hints = typing.get_type_hints(section_type)
    for member in dataclasses.fields(section_type):
        here = (*prefix, member.name)
        value_type = hints[member.name]
        if member.name in skip:
            continue
        if (entry_type := _entry_type(value_type)) and is_dataclass(entry_type):
            names += setting_names(typing.cast(type, entry_type), (*here, "NAME"))
        elif is_dataclass(value_type):
            names += setting_names(typing.cast(type, value_type), here)
        else:
            names.append(dotted(here))
    return names
