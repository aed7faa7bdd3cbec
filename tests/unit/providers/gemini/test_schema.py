"""gemini/schema.py: which parameters a function is declared with."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.providers.gemini.schema import parameters_of

LEGAL = frozenset(("type", "format", "description", "nullable", "enum", "items", "properties", "required", "anyOf"))
LIMITS = frozenset(("pattern", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"))


def cleaned(value: Any, **root: Any) -> Any:
    """The schema of one property."""
    parameters = parameters_of({"type": "object", "properties": {"p": value}, **root})
    assert parameters is not None
    return parameters["properties"]["p"]


def test_what_the_subset_has_stays() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "date-time"},
            "count": {"type": "integer", "minimum": 0, "maximum": 9, "format": "int32"},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
            "choice": {"type": "string", "enum": ["a", "b"], "nullable": True},
        },
        "required": ["text", "list"],
    }
    assert parameters_of(schema) == schema


def test_what_it_has_not_goes() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "T",
        "properties": {
            "a": {"type": "string", "format": "uri", "default": "x", "examples": ["y"], "minLength": "1"},
            "b": {"type": "object", "additionalProperties": {"type": "string"}, "patternProperties": {"x": {}}},
            "c": {"type": "integer", "multipleOf": 2, "exclusiveMinimum": 0, "minimum": True},
            "d": {"type": "object", "properties": {}},
        },
        "required": ["a", "gone", "a", 7],
        "additionalProperties": False,
    }
    assert parameters_of(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "object"},
            "c": {"type": "integer"},
            "d": {"type": "object"},
        },
        "required": ["a"],
    }


@pytest.mark.parametrize("schema", [{"type": "object", "properties": {}}, {"properties": {}}])
def test_a_function_without_parameters_has_none(schema: dict[str, Any]) -> None:
    assert parameters_of({**schema, "additionalProperties": False}) is None


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "additionalProperties": True}, {"x": 1}])
def test_a_function_that_takes_any_object_says_so(schema: dict[str, Any]) -> None:
    assert parameters_of(schema) == {"type": "object"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, {"type": "string"}),
        ({}, {"type": "string"}),
        ({"description": "anything"}, {"type": "string", "description": "anything"}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"properties": {"x": {"type": "null"}}}, {"type": "object", "properties": {"x": {"type": "string"}}}),
        ({"items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": ["string", "null"], "maxLength": 3}, {"type": "string", "maxLength": 3, "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}, {"const": None}], "description": "d"},
            {"anyOf": [{"type": "string", "nullable": True, "description": "d"}, {"type": "number"}]},
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b", "a", None]}, {"type": "string", "enum": ["a", "b"], "nullable": True}),
        ({"enum": [1, 2], "description": "d"}, {"type": "integer", "description": "d Allowed: 1, 2"}),
        ({"enum": ["", "a"]}, {"type": "string", "description": "Allowed: , a"}),
        ({"const": True}, {"type": "boolean", "description": "Allowed: True"}),
        (
            {"prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {
                "type": "object",
                "properties": {"b": {"type": "string"}, "a": {"type": "string"}},
                "required": ["a"],
            },
        ),
    ],
)
def test_other_ways_of_saying_it_are_put_into_the_subset(value: Any, expected: Any) -> None:
    shown = cleaned(value)
    if isinstance(value, dict) and value.get("properties", {}).get("x") == {"type": "null"}:
        assert shown["properties"]["x"].pop("nullable")
    assert shown == expected


def test_references_are_followed_and_circles_are_cut() -> None:
    defs = {
        "name": {"type": "string", "description": "a name"},
        "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "n": {"$ref": "#/$defs/name"}}},
        "a/b": {"type": "integer"},
        "loop": {"$ref": "#/$defs/loop"},
    }
    assert cleaned({"$ref": "#/$defs/name", "description": "mine"}, **{"$defs": defs}) == {
        "type": "string",
        "description": "mine",
    }
    tree = cleaned({"$ref": "#/$defs/tree"}, **{"$defs": defs})
    assert tree["properties"] == {"left": {"type": "object"}, "n": {"type": "string", "description": "a name"}}
    assert cleaned({"$ref": "#/$defs/a~1b"}, **{"$defs": defs}) == {"type": "integer"}
    assert cleaned({"$ref": "#/$defs/loop"}, **{"$defs": defs}) == {"type": "object"}
    assert cleaned({"$ref": "https://elsewhere/x"}) == {"type": "string"}


def test_a_choice_between_objects_becomes_one_object() -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "string"}}, "required": ["a", "c"]}
    two = {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "string"}}, "required": ["c"]}
    parameters = parameters_of({"oneOf": [one, two, {"type": "string"}]})
    assert parameters is not None
    assert set(parameters["properties"]) == {"a", "b", "c"}
    assert parameters["required"] == ["c"]


def test_references_that_multiply_stay_small() -> None:
    defs = {f"d{n}": {"properties": {f"p{m}": {"$ref": f"#/$defs/d{n + 1}"} for m in range(8)}} for n in range(20)}
    assert len(json.dumps(cleaned({"$ref": "#/$defs/d0"}, **{"$defs": defs}))) < 500_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "allOf",
                    "$ref",
                    "enum",
                    "const",
                    "required",
                    "description",
                    "x",
                ]
            ),
            inner | st.sampled_from(["object", "array", "#", "#/properties/x", ["string", "null"]]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "allOf", "$ref", "required"]), JSON, max_size=4))
def test_any_schema_gives_legal_parameters(schema: dict[str, Any]) -> None:
    parameters = parameters_of(schema)
    if parameters is None:
        return
    assert parameters["type"] == "object"
    json.dumps(parameters, allow_nan=False)
    pending: list[Any] = [parameters]
    while pending:
        node = pending.pop()
        assert set(node) <= LEGAL | LIMITS
        assert ("type" in node) != ("anyOf" in node)
        assert node.get("properties", {"x"})
        assert all(isinstance(value, str) and value for value in node.get("enum", ()))
        pending += [*node.get("properties", {}).values(), *node.get("anyOf", ())]
        pending += [node["items"]] if "items" in node else []
