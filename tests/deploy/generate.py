"""The parts of the chart that follow from other files: `python -m tests.deploy.generate` writes them.

The settings in values.schema.json follow from the server's own schema, the table in README.md from the descriptions in
values.yaml. Tests hold both up to date.
"""

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.helm import CHART

from lanewayd.settings.rules import Rule, rule_of
from lanewayd.settings.schema import Settings

SCHEMA = CHART / "values.schema.json"
VALUES = CHART / "values.yaml"
README = CHART / "README.md"
NO_SETTINGS = frozenset({"home", "listen", "is_insecure", "config_path", "sources"})
"""Fields of Settings that are flags and variables of their own."""
COMPUTED_WITH = {"drain": ["timeout_s", "announce_s"]}
"""Settings that templates compute with: they must be there."""
_BEGIN, _END = "<!-- values: begin -->", "<!-- values: end -->"


# --- settings ---------------------------------------------------------------------------------------------------------


def settings_schema() -> dict[str, Any]:
    """The JSON schema of `settings`, without what this version of the server does not know yet."""
    schema = _section(Settings, skip=NO_SETTINGS)
    for name, required in COMPUTED_WITH.items():
        schema["properties"][name]["required"] = required
    schema["required"] = list(COMPUTED_WITH)
    return schema


def _section(section_type: type, *, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    hints = typing.get_type_hints(section_type)
    properties = {}
    for member in dataclasses.fields(section_type):
        rule = rule_of(member.metadata)
        if member.name in skip or rule.is_later:
            continue
        properties[member.name] = _node(hints[member.name], rule)
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _node(value_type: Any, rule: Rule) -> dict[str, Any]:
    origin, arguments = typing.get_origin(value_type), typing.get_args(value_type)
    if dataclasses.is_dataclass(value_type):
        return _section(typing.cast(type, value_type))
    if value_type is Any:
        return {}
    if origin in (types.UnionType, typing.Union):
        (value_type,) = (each for each in arguments if each is not types.NoneType)
        return _node(value_type, rule)
    if origin is tuple:
        return {"type": "array", "items": {"type": "string"}}
    if origin is not None:
        names = {"minLength": 1} if rule.names else {"pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}
        return {"type": "object", "propertyNames": names, "additionalProperties": _node(arguments[1], Rule())}
    node: dict[str, Any] = {"type": {bool: "boolean", int: "integer", float: "number"}.get(value_type, "string")}
    if rule.choices:
        node["enum"] = list(rule.landed or rule.choices)
    if rule.low is not None:
        node["minimum"] = rule.low
    if rule.high is not None:
        node["maximum"] = rule.high
    return node


def schema_text(text: str) -> str:
    """values.schema.json with its settings as they are now."""
    schema = json.loads(text)
    schema["definitions"]["settings"] = settings_schema()
    return json.dumps(schema, indent=2) + "\n"


# --- the table of values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """A value with a description."""

    name: str
    default: str
    description: str


def described_values(text: str) -> Iterator[Value]:
    """All values of a values.yaml that have a comment `# --` directly above them, in order."""
    defaults = yaml.safe_load(text)
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if found := re.match(r" *# ?(.*)", line):
            comment.append(found[1])
        elif found := re.match(r"( *)(\w+):", line):
            path = [(indent, name) for indent, name in path if indent < len(found[1])] + [(len(found[1]), found[2])]
            names = [name for _, name in path]
            if comment and comment[0].startswith("-- "):
                given = [part.removeprefix("@default -- ") for part in comment if part.startswith("@default -- ")]
                words = " ".join(part for part in comment if not part.startswith("@default")).removeprefix("-- ")
                default = given[0] if given else f"`{json.dumps(_at(defaults, names))}`"
                yield Value(".".join(names), default, words)
            comment = []
        elif not line.strip():
            comment = []


def leaves(tree: Any, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Dotted names of everything in a tree that is not a section with something in it."""
    if isinstance(tree, dict) and tree:
        for name, below in tree.items():
            yield from leaves(below, (*names, name))
    else:
        yield ".".join(names)


def readme_text(text: str, values: str) -> str:
    """README.md with the table of `values` as they are now."""
    rows = [f"| `{each.name}` | {each.default} | {each.description} |" for each in described_values(values)]
    table = "\n".join(["| Value | Default | Meaning |", "|---|---|---|", *rows])
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table}\n{_END}{after}"


def _at(tree: Any, names: list[str]) -> Any:
    for name in names:
        tree = tree[name]
    return tree


def outdated() -> dict[Path, str]:
    """The files that are not as they should be, with what should stand in them."""
    wanted = {
        SCHEMA: schema_text(SCHEMA.read_text()),
        README: readme_text(README.read_text(), VALUES.read_text()),
    }
    return {path: text for path, text in wanted.items() if path.read_text() != text}


if __name__ == "__main__":
    for changed_path, new_text in outdated().items():
        changed_path.write_text(new_text)
        print(f"written: {changed_path}")
