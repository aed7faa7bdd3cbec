import json
from typing import Any

import pytest

from lanewayd.tools.arguments import ArgumentCheck, ArgumentsRefused

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "offset": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "integer"}},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "either": {"type": ["integer", "null"]},
    },
    "required": ["path"],
}
CHECK = ArgumentCheck("read", SCHEMA)


def accepted(arguments: Any) -> dict[str, Any]:
    result = CHECK.check(arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert isinstance(result, dict), result
    return result


def refusal(arguments: Any) -> str:
    result = CHECK.check(arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert isinstance(result, ArgumentsRefused), result
    return result.text


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"offset": "5"}, {"offset": 5}),
        ({"offset": 5.0}, {"offset": 5}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"deep": "true"}, {"deep": True}),
        ({"path": 5}, {"path": "5"}),
        ({"path": True}, {"path": "true"}),
        ({"names": "[1, 2]"}, {"names": [1, 2]}),
        ({"names": ["1", 2]}, {"names": [1, 2]}),
        ({"env": {"A": 1}}, {"env": {"A": "1"}}),
        ({"env": '{"A": "x"}'}, {"env": {"A": "x"}}),
        ({"offset": None}, {}),
        ({"either": None}, {"either": None}),
        ({"unknown": [1]}, {"unknown": [1]}),
    ],
)
def test_values_take_the_type_that_the_schema_wants(given: dict[str, Any], taken: dict[str, Any]) -> None:
    result = accepted({"path": "p", **given})
    assert result == {"path": "p", **taken}
    assert all(type(result[name]) is type(value) for name, value in taken.items())


@pytest.mark.parametrize(
    "text", ['{"path": "p", "offset": 9007199254740993}', '{"path": "p", "offset": "9007199254740993"}']
)
def test_large_integers_keep_every_digit(text: str) -> None:
    assert accepted(text)["offset"] == 9007199254740993


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "p"',
        '{"path": "p"} x',
        '{"path": "p"}{"path": "q"}',
        "[1]",
        '"text"',
        "null",
        '{"path": "p", "ratio": NaN}',
        '{"path": "p", "ratio": 1e999}',
        '{"path": "p", "path": "q"}',
        '{"path": "p", "offset": ' + "9" * 5_000 + "}",
        '{"path":' * 50_000,
        "[" * 100_000,
    ],
)
def test_what_is_not_one_json_object_is_refused_with_a_bounded_text(text: str) -> None:
    result = refusal(text)
    assert result.startswith("The arguments of read cannot be used:\n- ")
    assert text[:20] in result
    assert len(result) < 4_000


def test_blank_arguments_are_none() -> None:
    assert ArgumentCheck("list", {"type": "object"}).check(" ") == {}
    assert "path: is required but missing" in refusal("")


def test_every_path_is_named_with_its_problem_and_the_arguments_are_repeated() -> None:
    given = {"offset": 0, "names": [1, "x"], "env": {"A": []}}
    lines = refusal(given).split("\n")
    assert lines[0] == "The arguments of read cannot be used:"
    assert sorted(lines[1:-1]) == [
        "- env.A: [] is not of type 'string'",
        "- names[1]: 'x' is not of type 'integer'",
        "- offset: 0 is less than the minimum of 1",
        "- path: is required but missing",
    ]
    assert lines[-1] == f"Received: {json.dumps(given)}"


def test_a_refusal_is_bounded_and_valid_text() -> None:
    text = refusal({"names": ["\ud83d" * 10_000] * 500})
    assert len(text) < 12_000
    assert "- and 481 more" in text
    text.encode()


@pytest.mark.parametrize("offset", ["five", "5.5", "1e400", "", "0x5", "\u0661"])
def test_text_that_says_no_such_number_is_not_taken_for_one(offset: str) -> None:
    assert "offset: " in refusal({"path": "p", "offset": offset})
