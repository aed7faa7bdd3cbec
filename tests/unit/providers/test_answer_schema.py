"""Which schemas OpenAI's strict mode takes."""

from typing import Any

import pytest

from lanewayd.providers.answer_schema import fits_strict, is_object_schema, named_schema


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
FITTING = [
    closed(),
    closed(a=TEXT, b={"type": ["integer", "null"], "minimum": 0}),
    closed(a={"type": "array", "items": closed(b={"enum": ["x", 1]}), "maxItems": 3}),
    closed(a={"anyOf": [TEXT, closed(b={"const": 1})]}, b={"type": "string", "format": "date-time"}),
    {**closed(a={"$ref": "#/$defs/t"}), "$defs": {"t": TEXT}, "title": "T", "description": "d"},
]
OTHERS = [
    {"type": "array", "items": TEXT},
    {"type": "object"},
    {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
    {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
    {**closed(a=TEXT), "required": []},
    {**closed(a=TEXT), "additionalProperties": True},
    {**closed(a=TEXT), "anyOf": [closed()]},
    {**closed(a=TEXT), "$schema": "https://json-schema.org/draft/2020-12/schema"},
    closed(a={"type": "object", "properties": {"b": TEXT}}),
    closed(a={"properties": {"b": TEXT}}),
    closed(a={"type": ["object", "null"]}),
    closed(a={"oneOf": [TEXT]}),
    closed(a={"type": "string", "minLength": 1}),
    closed(a={"type": "string", "default": "x"}),
    closed(a={"type": "string", "format": "uri"}),
    closed(a={}),
    closed(a=True),
    {**closed(a={"$ref": "#/$defs/t"}), "$defs": {"t": {"type": "object"}}},
    closed(**{f"p{number}": TEXT for number in range(5001)}),
]


@pytest.mark.parametrize("schema", FITTING)
def test_a_closed_schema_with_all_required_is_strict(schema: dict[str, Any]) -> None:
    assert fits_strict(schema)
    assert named_schema(schema) == {"name": "answer", "schema": schema, "strict": True}


@pytest.mark.parametrize("schema", OTHERS)
def test_any_other_is_shown_without_strictness(schema: dict[str, Any]) -> None:
    assert not fits_strict(schema)
    assert named_schema(schema)["strict"] is False


def test_a_schema_that_is_nested_too_deeply_is_not_strict() -> None:
    schema = closed(a=TEXT)
    for _ in range(8):
        schema = closed(a=schema)
    assert fits_strict(schema)
    assert not fits_strict(closed(a=schema))


def test_only_objects_are_taken_at_all() -> None:
    assert is_object_schema({"type": "object"})
    assert not is_object_schema(None)
    assert not is_object_schema({"type": "array"})
    assert not is_object_schema({"anyOf": []})
