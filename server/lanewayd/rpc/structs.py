"""google.protobuf.Struct <-> JSON. Pure. A Struct knows numbers as doubles only: whole ones are read as integers."""

import json
import math
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

from lanewayd.errors import ErrorCode, FieldError

_LARGEST_EXACT = 2**53


def json_of(struct: Struct, field: str, limit_bytes: int) -> str:
    """A Struct that a caller sent as JSON with sorted names. Raises FieldError (FIELD_INVALID) for more than
    `limit_bytes` and for numbers that JSON does not have."""
    text = ""
    if struct.ByteSize() <= _WIRE_BYTES_PER_BYTE * limit_bytes:
        try:
            plain = {name: _plain(value) for name, value in struct.fields.items()}
        except ValueError as error:
            raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} holds {error}.") from None
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if not text or len(text.encode()) > limit_bytes:
        raise FieldError(ErrorCode.FIELD_INVALID, field, f"{field} has at most {limit_bytes:,} bytes as JSON.")
    return text


def struct_of(object_json: str, limit_bytes: int) -> Struct | None:
    """The object as a Struct; None for "", and when the Struct would have more than `limit_bytes`."""
    if not object_json:
        return None
    struct = Struct()
    struct.update(json.loads(object_json))
    return struct if struct.ByteSize() <= limit_bytes else None


def _plain(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return {name: _plain(member) for name, member in value.struct_value.fields.items()}
        case "list_value":
            return [_plain(item) for item in value.list_value.values]
        case "number_value":
            return _number(value.number_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _number(number: float) -> int | float:
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return int(number) if number.is_integer() and abs(number) <= _LARGEST_EXACT else number


_WIRE_BYTES_PER_BYTE = 8
"""A Struct has at most so many bytes for one of its JSON text; larger ones are not even read."""
