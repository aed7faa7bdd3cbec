"""Structs from and to JSON."""

import json
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from lanewayd.rpc.structs import json_of, struct_of

LIMIT = 64 * 1024


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"a": 1}, '{"a":1}'),
        ({"a": 1.5}, '{"a":1.5}'),
        ({"a": -0.0}, '{"a":0}'),
        ({"a": 2**53}, '{"a":9007199254740992}'),
        ({"a": 1e300}, '{"a":1e+300}'),
        ({"b": None, "a": [True, "\u00e4", {}, []]}, '{"a":[true,"\u00e4",{},[]],"b":null}'),
    ],
)
def test_whole_numbers_are_integers_and_names_are_sorted(sent: dict[str, Any], read: str) -> None:
    struct = Struct()
    struct.update(sent)
    assert json_of(struct, "f", LIMIT) == read


def test_a_value_of_no_kind_is_null() -> None:
    struct = Struct()
    struct.fields["a"].SetInParent()
    assert json_of(struct, "f", LIMIT) == '{"a":null}'


def test_an_object_that_is_too_large_gives_no_struct() -> None:
    assert struct_of(json.dumps({"a": [1] * 20_000}), 384 * 1024) is not None
    assert struct_of(json.dumps({"a": [1] * 40_000}), 384 * 1024) is None
    assert struct_of("", 1) is None


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_any_object_goes_through_a_struct_and_back(value: dict[str, Any]) -> None:
    struct = struct_of(json.dumps(value), LIMIT)
    assert struct is not None
    assert json.loads(json_of(Struct.FromString(struct.SerializeToString()), "f", LIMIT)) == value
