"""What the tests of Ollama's decoder share: lines in, events or the final message out."""

import json
from typing import Any

from tests.unit.providers.decoding import DecoderStage

from lanewayd.providers.ollama.dialect import Ollama

STAGE = DecoderStage(Ollama)
REQUEST = STAGE.request
new_decoder, decode = STAGE.new_decoder, STAGE.decode
message_of, failure_of = STAGE.message_of, STAGE.failure_of


def line(*, done: bool = False, **fields: Any) -> bytes:
    return json.dumps({"model": "m1", **fields, "done": done}).encode() + b"\n"


def said(content: str = "", **message: Any) -> bytes:
    return line(message={"role": "assistant", "content": content, **message})


def done(reason: str | None = "stop", **counts: Any) -> bytes:
    ending = {"done_reason": reason} if reason is not None else {}
    return line(done=True, message={"role": "assistant", "content": ""}, **ending, **counts)


def called(*calls: Any) -> bytes:
    return said(tool_calls=list(calls))


def call(name: Any = "rec", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}
