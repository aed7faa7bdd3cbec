"""What a call's arguments are held against."""

import json

import pytest

from lanewayd.providers.arguments import CallRefused, argument_object, argument_objects, with_repaired_strings


def test_one_object_is_kept_as_it_was_written() -> None:
    text = '{"big": 123456789012345678901, "x": 1.0}'
    assert argument_object("t", f" {text}\n") == text
    assert argument_object("t", "") == argument_object("t", "null") == "{}"


@pytest.mark.parametrize("text", ["[]", "1", '{"a":', '{"a": NaN}', '{"a":1}{"b":2}', '{"a":1} x', "{'a': 1}"])
def test_anything_but_one_object_is_refused(text: str) -> None:
    with pytest.raises(CallRefused, match="the arguments of t are no JSON object"):
        argument_object("t", text)


def test_glued_objects_are_several() -> None:
    assert argument_objects("t", '{"a":1}\n{"b":2}') == ['{"a":1}', '{"b":2}']


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x\ny\tz"}', "x\ny\tz"),
        (r'{"a": "C:\dir\x"}', r"C:\dir\x"),
        (r'{"a": "\u12"}', r"\u12"),
        (r'{"a": "fine \" \\ \n é"}', 'fine " \\ \n é'),
    ],
)
def test_string_literals_are_repaired(text: str, value: str) -> None:
    assert json.loads(with_repaired_strings(text)) == {"a": value}


def test_what_is_legal_stays_as_it_is() -> None:
    text = json.dumps({"a": 'x"\\\n\u2028\t', "b": ["\\u", {"c": "\ud83d"}]}, indent=1)
    assert with_repaired_strings(text) == text
