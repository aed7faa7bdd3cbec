"""JSON Schema -> the subset in which Gemini takes the parameters of a function, or an answer. Pure; takes any input.

What the subset cannot say is said more loosely: arguments and answers are checked against their own schema all the
same. Source: https://ai.google.dev/api/caching#Schema.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

_TYPES = frozenset(("string", "number", "integer", "boolean", "array", "object"))
_FORMATS: Mapping[str, frozenset[str]] = {
    "string": frozenset(("date-time",)),
    "number": frozenset(("float", "double")),
    "integer": frozenset(("int32", "int64")),
}
_LIMITS: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
_UNIONS = ("anyOf", "oneOf")
_MAX_DEPTH = 24
_MAX_NODES = 4_000

Node = dict[str, Any]


def parameters_of(schema: Mapping[str, Any]) -> Node | None:
    """The parameters of a function whose arguments `schema` describes: an object; None for a function without any."""
    if schema.get("type", "object") == "object" and schema.get("properties") == {} and not _has_more(schema):
        return None
    cleaned = _Cleaner(schema).clean(schema, 0, ())
    cleaned.pop("nullable", None)
    if "anyOf" in cleaned:
        return _one_object(cleaned["anyOf"])
    return cleaned if cleaned.get("type") == "object" else {"type": "object"}


def answer_of(schema: Mapping[str, Any]) -> Node | None:
    """What `responseSchema` takes for an answer as `schema` describes it; None: a part of it cannot be said.

    That is an object of free names: the service refuses one without properties.
    """
    cleaned = _Cleaner(schema).clean(schema, 0, ())
    return None if _has_open_object(cleaned) else cleaned


def _has_open_object(node: Node) -> bool:
    if node.get("type") == "object" and "properties" not in node:
        return True
    parts = [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *([node["items"]] if "items" in node else []),
    ]
    return any(map(_has_open_object, parts))


def _has_more(schema: Mapping[str, Any]) -> bool:
    return any(name in schema for name in ("anyOf", "oneOf", "allOf", "$ref")) or bool(
        schema.get("additionalProperties")
    )


class _Cleaner:
    """Owns the budget of one schema: references can make a small one endless, or far too large."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def clean(self, node: Any, depth: int, references: tuple[str, ...]) -> Node:
        """`node` in the subset. `references` are those being followed."""
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return {"type": "object"}
        if not isinstance(node, Mapping):
            return {"type": "string"}
        node, references = self._resolved(node, references)
        node = self._merged(node, references)
        branches = _branches(node)
        cleaned = self._union(node, branches, depth, references) if branches else self._plain(node, depth, references)
        description = node.get("description")
        if isinstance(description, str) and description:
            _describe(cleaned, description)
        return cleaned

    def _resolved(self, node: Mapping[str, Any], references: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
        """`node` with what its reference names, beside its own words; a reference that leads into itself is cut."""
        resolved = dict(node)
        while isinstance(reference := resolved.pop("$ref", None), str):
            if reference in references:
                return {"type": "object", "description": resolved.get("description", "")}, references
            references = (*references, reference)
            resolved = {**_target(self._root, reference), **resolved}
        return resolved, references

    def _merged(self, node: Node, references: tuple[str, ...]) -> Node:
        """`node` with the parts of its allOf in it; where they disagree the first wins."""
        parts = node.get("allOf")
        if not isinstance(parts, list):
            return node
        merged = {name: value for name, value in node.items() if name != "allOf"}
        for part in parts[:_MAX_DEPTH]:
            if not isinstance(part, Mapping):
                continue
            resolved, _ = self._resolved(part, references)
            for name, value in resolved.items():
                if name == "properties" and isinstance(value, Mapping):
                    merged[name] = {**value, **_mapping(merged.get(name))}
                elif name == "required" and isinstance(value, list):
                    merged[name] = [*_list(merged.get(name)), *value]
                elif name != "allOf":
                    merged.setdefault(name, value)
        return merged

    def _union(self, node: Node, branches: list[Any], depth: int, references: tuple[str, ...]) -> Node:
        """One of several: only the union itself may stand in such a node."""
        shared = {name: value for name, value in node.items() if name not in (*_UNIONS, "description", "type")}
        is_nullable = node.get("nullable") is True
        cleaned: list[Node] = []
        for branch in branches[:_MAX_NODES]:
            if _is_null(branch):
                is_nullable = True
                continue
            whole = {**shared, **branch} if isinstance(branch, Mapping) else branch
            option = self.clean(whole, depth + 1, references)
            cleaned += [each for each in option.get("anyOf", [option]) if each not in cleaned]
        union: Node = {"anyOf": cleaned} if len(cleaned) > 1 else cleaned[0] if cleaned else {"type": "string"}
        if is_nullable:
            (cleaned[0] if cleaned else union)["nullable"] = True
        return union

    def _plain(self, node: Node, depth: int, references: tuple[str, ...]) -> Node:
        kind = _type_of(node)
        cleaned: Node = {"type": kind}
        if node.get("nullable") is True or node.get("type") == "null":
            cleaned["nullable"] = True
        if isinstance(node.get("format"), str) and node["format"] in _FORMATS.get(kind, ()):
            cleaned["format"] = node["format"]
        for name in _LIMITS.get(kind, ()):
            if _is_number(node.get(name)):
                cleaned[name] = node[name]
        if kind == "string" and isinstance(node.get("pattern"), str):
            cleaned["pattern"] = node["pattern"]
        _restrict(cleaned, node)
        if kind == "array":
            cleaned["items"] = self._items(node, depth, references)
        elif kind == "object":
            self._add_properties(cleaned, node, depth, references)
        return cleaned

    def _items(self, node: Node, depth: int, references: tuple[str, ...]) -> Node:
        """What an array holds; the places of a tuple become one union."""
        items = node.get("items", node.get("prefixItems"))
        if isinstance(items, list):
            items = {"anyOf": items} if items else {}
        return self.clean(items if isinstance(items, Mapping) else {}, depth + 1, references)

    def _add_properties(self, cleaned: Node, node: Node, depth: int, references: tuple[str, ...]) -> None:
        """Only if there are some: an empty list of properties is refused."""
        declared = _mapping(node.get("properties"))
        properties = {name: self.clean(value, depth + 1, references) for name, value in declared.items()}
        if not properties:
            return
        cleaned["properties"] = properties
        required = [name for name in _list(node.get("required")) if isinstance(name, str) and name in properties]
        if required:
            cleaned["required"] = list(dict.fromkeys(required))


def _branches(node: Node) -> list[Any]:
    """The alternatives of a union, also of one that is written as a list of types."""
    for name in _UNIONS:
        if _list(node.get(name)):
            return _list(node[name])
    kinds = node.get("type")
    if not isinstance(kinds, list):
        return []
    return [{"type": kind} for kind in kinds if kind == "null" or (isinstance(kind, str) and kind in _TYPES)]


def _type_of(node: Node) -> str:
    kind = node.get("type")
    if isinstance(kind, str) and kind.lower() in _TYPES:
        return kind.lower()
    if "properties" in node or "additionalProperties" in node:
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    value = node["const"] if "const" in node else next(iter(_list(node.get("enum"))), "")
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "number" if isinstance(value, float) else "string"


def _restrict(cleaned: Node, node: Node) -> None:
    """The values that `node` allows: a list of texts, or words in the description, since only texts may be listed."""
    allowed = [node["const"]] if "const" in node else _list(node.get("enum"))
    if not allowed:
        return
    if None in allowed:
        cleaned["nullable"] = True
    texts = [value for value in allowed if isinstance(value, str)]
    if cleaned["type"] == "string" and all(texts) and len(texts) == len([each for each in allowed if each is not None]):
        if texts:
            cleaned["enum"] = list(dict.fromkeys(texts))
        return
    _describe(cleaned, f"Allowed: {', '.join(str(value) for value in allowed[:100])}")


def _describe(cleaned: Node, text: str) -> None:
    """Put `text` where a description may stand: of a union, at its first alternative."""
    place: Node = cleaned["anyOf"][0] if "anyOf" in cleaned else cleaned
    place["description"] = f"{text} {place['description']}" if "description" in place else text


def _one_object(options: Iterable[Node]) -> Node:
    """An object that has the properties of all options; required is what all of them require."""
    objects = [option for option in options if option.get("type") == "object"]
    properties: Node = {}
    for option in objects:
        properties = {**option.get("properties", {}), **properties}
    if not properties:
        return {"type": "object"}
    required = [name for name in properties if all(name in option.get("required", ()) for option in objects)]
    merged: Node = {"type": "object", "properties": properties}
    return {**merged, "required": required} if required else merged


def _target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """What a reference into the same schema names; nothing for any other."""
    place: Any = root
    if not reference.startswith("#"):
        return {}
    for name in reference[1:].split("/")[1:]:
        if not isinstance(place, Mapping):
            return {}
        place = place.get(name.replace("~1", "/").replace("~0", "~"))
    return _mapping(place)


def _is_null(node: Any) -> bool:
    return isinstance(node, Mapping) and (node.get("type") == "null" or ("const" in node and node["const"] is None))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
