"""JSON Schema -> the part of it to which Anthropic holds an answer. Pure; any input gives an answer.

Limits of numbers, lengths and patterns cannot be said and are left to the description and to whoever checks the answer.
A schema whose shape cannot be said is not sent at all: the service refuses what it does not know, and every object it
makes is closed. Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema
limitations" and "Schema complexity limits".
"""

import json
from collections.abc import Mapping
from typing import Any

_TYPES = frozenset(("object", "array", "string", "integer", "number", "boolean", "null"))
_SAY_SOMETHING = frozenset(("type", "const", "enum", "anyOf"))
_LIMITS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
)
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"))
_SHAPES = frozenset(
    ("patternProperties", "propertyNames", "prefixItems", "not", "if", "dependentSchemas", "allOf", "$dynamicRef")
)
"""What changes what an answer looks like and cannot be said."""
_MAX_DEPTH = 32
_MAX_NODES = 1_000
_MAX_OPTIONAL = 24
_MAX_UNIONS = 16

Node = dict[str, Any]


class _Unsayable(Exception):
    """The shape that the schema asks for cannot be said."""


def native_schema(schema: Mapping[str, Any]) -> Node | None:
    """What `output_config.format` takes for `schema`; None: the service cannot be told."""
    try:
        said = _Translation(schema).translate(schema, 0)
    except _Unsayable:
        return None
    return said if said.get("type") == "object" else None


class _Translation:
    """Counts what one schema may have only so many of."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0
        self._optional = 0
        self._unions = 0

    def translate(self, node: Any, depth: int) -> Node:
        """`node` in the subset; references are replaced by what they name, so a schema without end is too deep."""
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES or not isinstance(node, Mapping):
            raise _Unsayable
        node = self._resolved(node)
        said: Node = {name: node[name] for name in ("default", "const") if name in node}
        said |= {name: node[name] for name in ("title", "description") if isinstance(node.get(name), str)}
        if "type" in node:
            said["type"] = _legal_type(node["type"])
        if isinstance(node.get("format"), str) and node["format"] in _FORMATS:
            said["format"] = node["format"]
        if isinstance(node.get("enum"), list):
            said["enum"] = _plain_values(node["enum"])
        self._add_union(said, node, depth)
        if _is_kind(node, "array") and isinstance(node.get("items"), Mapping):
            said["items"] = self.translate(node["items"], depth + 1)
        if _is_kind(node, "object") or "properties" in node:
            self._add_properties(said, node, depth)
        if not said.keys() & _SAY_SOMETHING:
            raise _Unsayable
        return _described(said, node)

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """`node` with what its reference names, beside its own words."""
        for _ in range(_MAX_DEPTH):
            if not node.keys().isdisjoint(_SHAPES):
                break
            if "$ref" not in node:
                return node
            beside = {name: value for name, value in node.items() if name != "$ref"}
            node = {**self._target(node["$ref"]), **beside}
        raise _Unsayable

    def _target(self, reference: Any) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _Unsayable
        place: Any = self._root
        for name in reference[1:].split("/")[1:]:
            place = place.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping):
            raise _Unsayable
        return place

    def _add_union(self, said: Node, node: Mapping[str, Any], depth: int) -> None:
        options = node.get("anyOf", node.get("oneOf"))
        if isinstance(options, list) and options:
            said["anyOf"] = [self.translate(option, depth + 1) for option in options]
        if "anyOf" in said or isinstance(node.get("type"), list):
            self._unions += 1
            if self._unions > _MAX_UNIONS:
                raise _Unsayable

    def _add_properties(self, said: Node, node: Mapping[str, Any], depth: int) -> None:
        properties = node.get("properties")
        if node.get("additionalProperties", False) not in (False, True) or not isinstance(properties, Mapping):
            raise _Unsayable  # an object of free names
        if not properties and node.get("additionalProperties") is not False:
            raise _Unsayable
        said["properties"] = {name: self.translate(value, depth + 1) for name, value in properties.items()}
        said["additionalProperties"] = False
        listed = node.get("required")
        required = [name for name in properties if name in listed] if isinstance(listed, list) else []
        if required:
            said["required"] = required
        self._optional += len(properties) - len(required)
        if self._optional > _MAX_OPTIONAL:
            raise _Unsayable


def _is_kind(node: Mapping[str, Any], kind: str) -> bool:
    named = node.get("type")
    return kind in named if isinstance(named, list) else named == kind


def _legal_type(named: Any) -> Any:
    kinds = named if isinstance(named, list) else [named]
    if not kinds or any(not isinstance(kind, str) or kind not in _TYPES for kind in kinds):
        raise _Unsayable
    return named


def _plain_values(values: list[Any]) -> list[Any]:
    if not values or any(isinstance(value, dict | list) for value in values):
        raise _Unsayable
    return values


def _described(said: Node, node: Mapping[str, Any]) -> Node:
    """`said` with the limits that it cannot say in its description."""
    limits = {name: node[name] for name in _LIMITS if name in node}
    if limits:
        words = json.dumps(limits, ensure_ascii=False)[1:-1]
        said["description"] = f"{said['description']} ({words})" if said.get("description") else words
    return said
