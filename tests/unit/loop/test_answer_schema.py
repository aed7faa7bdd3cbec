"""Which schemas are taken, and which answers fit them."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewayd.loop.answer_schema import AnswerSchema, SchemaRefused
from lanewayd.loop.answer_text import MAX_ANSWER_DEPTH, AnswerUnreadable, object_in, object_json

CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]"},
        "people": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["name", "people"],
    "additionalProperties": False,
}
PARIS = {"name": "Paris", "people": 2_000_000}


def with_property(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def doubled(levels: int) -> dict[str, Any]:
    """A schema that asks for 2 ** levels checks."""
    definitions: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": ["string", "object"]}
    return {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels - 1):
        schema = {"type": "object", "not": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({}, '"type": "object"'),
        ({"type": "array"}, '"type": "object"'),
        ({"type": "string"}, '"type": "object"'),
        ({"type": ["object"]}, '"type": "object"'),
        ({"type": "object", "properties": 3}, "no JSON Schema: properties"),
        (with_property(type="nothing"), "no JSON Schema: properties.x.type"),
        (with_property(minimum="1"), "no JSON Schema"),
        (with_property(**{"$ref": "https://example.com/schema.json"}), "only references within it"),
        (with_property(**{"$ref": "file:///etc/passwd"}), "only references within it"),
        (with_property(**{"$ref": "other.json#/x"}), "only references within it"),
        (with_property(**{"$ref": "#/$defs/missing"}), "no schema at that place"),
        ({"type": "object", "required": ["x"], "$ref": "#/required"}, "no schema at that place"),
        ({"type": "object", "required": ["x"], "$ref": "#/required/x"}, "no schema at that place"),
        ({"type": "object", "const": {"type": 5}, "properties": {"x": {"$ref": "#/const"}}}, "no JSON Schema"),
        (with_property(**{"$id": "https://example.com/"}), "$id"),
        ({"type": "object", "patternProperties": {"(a+)+$": {}}}, "patternProperties"),
        ({"type": "object", "unevaluatedProperties": False}, "unevaluatedProperties"),
        (with_property(pattern="(?=look)ahead"), "cannot be used (RE2)"),
        (with_property(pattern="((a{1000}){1000}){1000}"), "cannot be used (RE2)"),
        (with_property(pattern="["), "cannot be used (RE2)"),
        (with_property(pattern="a" * 1001), "more than 1,000 characters"),
        ({"type": "object", "$ref": "#"}, "refers to itself"),
        ({"type": "object", "allOf": [{"$ref": "#"}]}, "refers to itself"),
        ({**doubled(40), "$ref": "#/$defs/d0"}, "too complex"),
        (nested(40), "more than 32 deep"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        AnswerSchema(schema)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "object"}, {}, []),
        (CITY, PARIS, {"name": "Paris"}),
        (CITY, {**PARIS, "tags": ["a", "b"]}, {**PARIS, "tags": ["a", "a"]}),
        (CITY, PARIS, {**PARIS, "name": "paris"}),
        (CITY, PARIS, {**PARIS, "more": 1}),
        (CITY, {**PARIS, "people": 2.0}, {**PARIS, "people": 2.5}),
        (with_property(pattern=r"^\p{L}+$"), {"x": "Zürich"}, {"x": "42"}),
        (with_property(enum=["a", 1]), {"x": 1}, {"x": "b"}),
        (with_property(const={"a": 1}), {"x": {"a": 1}}, {"x": {"a": 2}}),
        (with_property(anyOf=[{"type": "null"}, {"type": "integer"}]), {"x": None}, {"x": "1"}),
        (with_property(type="array", uniqueItems=True), {"x": [1, True, "1"]}, {"x": [1, 1.0]}),
        (with_property(multipleOf=0.5), {"x": 1.5}, {"x": 0.3}),
        (with_property(multipleOf=0.01), {"x": 19.99}, {"x": 19.995}),
        (with_property(multipleOf=0.1), {"x": 0.3}, {"x": 0.35}),
        (with_property(multipleOf=1e-300), {"x": 1e308}, {"x": 1.5e-300}),
        (with_property(multipleOf=2), {"x": True}, {"x": 3}),
        (
            {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]},
            {"n": 1, "child": {"n": 2}},
            {"n": 1, "child": {}},
        ),
        (
            {"type": "object", "$defs": {"p": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/p"}}},
            {"x": 1},
            {"x": "1"},
        ),
        ({"type": "object", "properties": {"default": {"pattern": "^a"}}}, {"default": "a"}, {"default": "b"}),
    ],
)
def test_an_answer_fits_or_not(schema: dict[str, Any], good: Any, bad: Any) -> None:
    check = AnswerSchema(schema)
    assert check.check(json.dumps(good)) is None
    refused = check.check(json.dumps(bad))
    assert refused is not None
    assert refused.problems
    assert check.check(json.dumps(good)) is None, "a check leaves nothing behind"


def test_problems_name_their_place_and_are_few_and_short() -> None:
    schema = AnswerSchema({"type": "object", "additionalProperties": {"type": "integer"}})
    refused = schema.check(json.dumps({f"p{number}": "x" * 1000 for number in range(50)}))
    assert refused is not None
    assert len(refused.problems) == 10
    assert max(map(len, refused.problems)) <= 300
    assert all(re.match(r"p\d+: ", problem) for problem in refused.problems)


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (doubled(40), {"x": "y"}),
        (with_property(pattern="(a+)+$"), {"x": "a" * 100_000 + "b"}),
        (with_property(type="array", uniqueItems=True), {"x": [{"n": number} for number in range(30_000)]}),
        (with_property(items={"enum": list(range(2000))}), {"x": [-1] * 30_000}),
    ],
    ids=["references that double", "a pattern that backtracks", "many unequal objects", "long enums"],
)
def test_no_schema_makes_a_check_long(schema: dict[str, Any], answer: Any) -> None:
    check, began = AnswerSchema(schema), time.process_time()
    check.check(json.dumps(answer))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\n {"a": 1} \n',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        'Here it is:\n\n```json\r\n{"a": 1}\r\n```\nI hope it helps.',
        '```JSON {"a": 1}```',
        'First:\n```json\n{"a": 0}\n```\nBetter:\n```json\n{"a": 1}\n```',
        'Run `x`:\n```sh\nx --all\n```\nThen:\n```json\n{"a": 1}\n```\n',
    ],
)
def test_the_object_is_found_alone_or_in_the_last_fenced_block(text: str) -> None:
    assert object_in(text) == {"a": 1}


def test_a_fence_within_a_string_does_not_end_the_block() -> None:
    answer = {"code": "```py\nprint()\n```", "n": 1}
    assert object_in(f"```json\n{json.dumps(answer)}\n```") == answer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not one JSON object"),
        ("I do not know.", "not one JSON object"),
        ('It is {"a": 1}', "not one JSON object"),
        ('{"a": 1} {"a": 2}', "not one JSON object"),
        ('{"a": NaN}', "not one JSON object"),
        ('{"a": 1e999}', "not one JSON object"),
        ('{"a": 1' + "0" * 400 + "}", "not one JSON object"),
        ('{"a": 1', "not one JSON object"),
        ("```json", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        ("[1]", "not an object"),
        ('"a"', "not an object"),
        ("42", "not an object"),
        ("```json\n[1]\n```", "not an object"),
        ('{"a":' * MAX_ANSWER_DEPTH + "1" + "}" * MAX_ANSWER_DEPTH, "more than 30 deep"),
    ],
)
def test_an_answer_without_an_object_says_why(text: str, says: str) -> None:
    with pytest.raises(AnswerUnreadable) as unreadable:
        object_in(text)
    assert says in str(unreadable.value)


def test_half_a_character_is_replaced() -> None:
    assert object_json('{"a": "\\ud800", "b": "\\ud83d\\ude00"}') == '{"a":"\ufffd","b":"\U0001f600"}'


def test_a_text_of_many_fences_is_read_quickly() -> None:
    began = time.process_time()
    with pytest.raises(AnswerUnreadable):
        object_in("```json\n{" * 50_000 + "```")
    assert time.process_time() - began < 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4), st.sampled_from(["{}", "```json\n{}\n```", "So:\n```\n{}```\n!"]))
def test_any_object_is_read_back_from_its_frame(answer: dict[str, Any], frame: str) -> None:
    text = frame.replace("{}", json.dumps(answer))
    assert object_in(text) == answer
    assert json.loads(object_json(text)) == answer


_KEYWORDS = st.sampled_from(
    ["type", "properties", "required", "items", "$ref", "$defs", "$anchor", "enum", "const", "allOf", "anyOf", "oneOf",
     "not", "if", "then", "minimum", "multipleOf", "maxLength", "pattern", "uniqueItems", "contains",
     "dependentSchemas", "propertyNames", "prefixItems", "additionalProperties", "$schema", "format", "minItems", "a"]
)  # fmt: skip
_VALUES = st.recursive(
    st.sampled_from(
        ["object", "string", "#", "#/$defs/a", "#/properties/a", "#a", "a", "^a", "x/y", -1, 0, 0.5, 3, True]
    )
    | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_KEYWORDS, _VALUES, max_size=5), st.dictionaries(_KEYWORDS, _VALUES, max_size=4))
def test_any_schema_is_refused_or_judges_any_answer(schema: dict[str, Any], answer: dict[str, Any]) -> None:
    try:
        check = AnswerSchema({"type": "object", **schema})
    except SchemaRefused:
        return
    verdict = check.check(json.dumps(answer))
    assert verdict is None or verdict.problems
