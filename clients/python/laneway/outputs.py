"""Structured answers: the object that an answer holds when the message came with a `response_schema`."""

from typing import Any

from google.protobuf.struct_pb2 import Value

from laneway.v1 import agent_pb2, run_pb2


def output_of(answer: agent_pb2.WaitResponse | run_pb2.Run) -> dict[str, Any] | None:
    """The object, whole numbers as integers; None when there is none.

    A Struct knows numbers as doubles only: integers above 2**53 are exact in the text of `answer.payloads` alone.
    """
    if not answer.HasField("output"):
        return None
    return {name: _plain(value) for name, value in answer.output.fields.items()}


def _plain(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return {name: _plain(member) for name, member in value.struct_value.fields.items()}
        case "list_value":
            return [_plain(item) for item in value.list_value.values]
        case "number_value":
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None
