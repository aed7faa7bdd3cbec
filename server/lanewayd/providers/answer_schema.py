"""A JSON Schema for the answer, as OpenAI and the services that speak its languages take one. Pure.

Source: developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas": `strict` holds the model to the
schema but takes a part of JSON Schema only, and answers any other with 400; without it the model is merely shown it.
"""

from collections.abc import Mapping
from typing import Any

NAME = "answer"
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5000
_WORDS = frozenset(
    (
        *("type", "description", "title", "enum", "const", "anyOf", "$ref", "$defs", "definitions"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")


def is_object_schema(schema: Mapping[str, Any] | None) -> bool:
    """Whether the schema is one for an object, the only kind that is taken at all."""
    return schema is not None and schema.get("type") == "object"


def named_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The fields `name`, `schema` and `strict`."""
    return {"name": NAME, "schema": schema, "strict": fits_strict(schema)}


def fits_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every part of the schema is within the rules: all properties required, no others, known words only."""
    return (
        is_object_schema(schema)
        and "anyOf" not in schema
        and _fits(schema, depth=1)
        and _size(schema) <= (_MAX_PROPERTIES)
    )


def _fits(schema: Any, *, depth: int) -> bool:
    if not isinstance(schema, Mapping) or not schema.keys() <= _WORDS or depth > _MAX_DEPTH:
        return False
    if not _is_closed(schema) or schema.get("format", _FORMATS[0]) not in _FORMATS:
        return False
    parts = [*_values(schema.get("properties")), *_values(schema.get("$defs")), *_values(schema.get("definitions"))]
    parts += schema["anyOf"] if isinstance(schema.get("anyOf"), list) else []
    parts += [schema["items"]] if "items" in schema else []
    return all(_fits(part, depth=depth + 1) for part in parts)


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Objects name all they have, and demand all of it; what is not even typed is refused too."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "object" in kinds or "properties" in schema:
        properties, required = schema.get("properties"), schema.get("required")
        if schema.get("additionalProperties") is not False or not isinstance(properties, Mapping):
            return False
        return isinstance(required, list) and set(map(str, required)) == set(properties)
    return kind is not None or any(word in schema for word in ("$ref", "anyOf", "enum", "const"))


def _values(parts: Any) -> list[Any]:
    return list(parts.values()) if isinstance(parts, Mapping) else []


def _size(schema: Any) -> int:
    """Properties in all."""
    if isinstance(schema, Mapping):
        own = len(schema["properties"]) if isinstance(schema.get("properties"), Mapping) else 0
        return own + sum(map(_size, schema.values()))
    return sum(map(_size, schema)) if isinstance(schema, list) else 0
