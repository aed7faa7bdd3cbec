"""JSON Schema -> what output_config.format takes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.providers.fuzzing import json_values

from lanewayd.messages import UserMessage
from lanewayd.providers.anthropic.answer_schema import native_schema
from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.interface import ModelRequest

STRING = {"type": "string"}
WORDS = st.sampled_from(["type", "anyOf", "$ref", "properties", "required", "items", "enum", "not", "title", "minimum"])
LEAVES = st.sampled_from(
    [
        STRING,
        {"type": "integer", "minimum": 1},
        {"enum": ["a", 1]},
        {"$ref": "#/properties/b"},
        {"type": ["null", "string"]},
    ]
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return (
        st.builds(
            lambda properties, title: {"type": "object", "properties": properties, "title": title}, named, st.text()
        )
        | st.builds(lambda properties: {"properties": properties, "required": list(properties)}, named)
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, max_size=3))
    )


NODES = st.recursive(LEAVES, grown, max_leaves=6)
SPOILT = st.builds(lambda node, spoil: {**node, **spoil}, NODES, st.dictionaries(WORDS, json_values, max_size=1))


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    said = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**said, "required": list(required)} if required else said


def test_objects_are_closed_and_keep_what_they_require() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"]}, "w": {"enum": ["a", "b", 3, None]}, "c": {"const": True}},
        "required": ["n", "gone"],
        "title": "T",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
    assert native_schema(schema) == {**closed(schema["properties"], "n"), "title": "T"}  # type: ignore[arg-type]


def test_limits_are_put_into_words() -> None:
    schema = closed(
        {
            "n": {"type": "integer", "minimum": 1, "description": "How many."},
            "l": {"type": "array", "items": STRING, "maxItems": 3},
            "d": {"type": "string", "format": "date"},
            "p": {"type": "string", "format": "phone"},
        }
    )
    assert native_schema(schema) == closed(
        {
            "n": {"type": "integer", "description": 'How many. ("minimum": 1)'},
            "l": {"type": "array", "items": STRING, "description": '"maxItems": 3'},
            "d": {"type": "string", "format": "date"},
            "p": STRING,
        }
    )


def test_references_are_replaced_by_what_they_name() -> None:
    schema = {
        "$defs": {"P": closed({"x": STRING}, "x")},
        "type": "object",
        "properties": {
            "p": {"$ref": "#/$defs/P", "description": "A place."},
            "u": {"oneOf": [STRING, {"$ref": "#/$defs/P"}]},
        },
    }
    place = closed({"x": STRING}, "x")
    assert native_schema(schema) == closed({"p": {**place, "description": "A place."}, "u": {"anyOf": [STRING, place]}})


ENDLESS = {"type": "object", "properties": {"next": {"$ref": "#"}}}
DOUBLING = {
    f"d{n}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}} for n in range(20)
}


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        {"type": "array", "items": STRING},
        {"type": "object"},
        {"type": "object", "additionalProperties": STRING},
        closed({"a": {}}),
        closed({"a": True}),
        closed({"a": {"type": "object", "properties": {}}}),
        closed({"a": {"allOf": [STRING]}}),
        closed({"a": {"type": "object", "patternProperties": {"x": STRING}}}),
        closed({"a": {"type": "array", "prefixItems": [STRING]}}),
        closed({"a": {"not": STRING}}),
        closed({"a": {"enum": [[1]]}}),
        closed({"a": {"$ref": "https://example.com/s"}}),
        closed({"a": {"$ref": "#/$defs/none"}}),
        {**closed({"a": {"$ref": "#/$defs/a"}}), "$defs": {"a": {"$ref": "#/$defs/a"}}},
        ENDLESS,
        {**closed({"a": {"$ref": "#/$defs/d0"}}), "$defs": {**DOUBLING, "d20": STRING}},
        closed({f"p{n}": STRING for n in range(25)}),
        closed({f"p{n}": {"type": ["string", "null"]} for n in range(17)}),
    ],
)
def test_a_shape_that_cannot_be_said_is_not_sent(schema: dict[str, Any]) -> None:
    assert native_schema(schema) is None


@settings(deadline=None, max_examples=80)
@given(NODES | SPOILT)
def test_any_schema_gives_an_answer_and_what_is_said_stays_as_it_is(schema: dict[str, Any]) -> None:
    said = native_schema({"type": "object", "properties": {"a": schema, "b": STRING}})
    assert said is None or native_schema(said) == said


@pytest.mark.parametrize(
    ("model", "schema", "is_held"),
    [
        ("claude-sonnet-4-5", closed({"a": STRING}), True),
        ("claude-opus-5-5", closed({"a": STRING}), True),
        ("claude-opus-4-1", closed({"a": STRING}), False),
        ("kimi-k2", closed({"a": STRING}), False),
        ("claude-sonnet-4-5", STRING, False),
        ("claude-sonnet-4-5", None, False),
    ],
)
def test_the_service_holds_the_answer_where_the_dialect_says_so(
    model: str, schema: dict[str, Any] | None, is_held: bool
) -> None:
    dialect = AnthropicMessages(new_call_id=lambda: "x")
    request = ModelRequest(model, "", (UserMessage("hi"),), response_schema=schema)
    expected = {"format": {"type": "json_schema", "schema": schema}} if is_held else None
    assert dialect.has_native_schema(request) == is_held
    assert json.loads(dialect.encode(request)).get("output_config") == expected
