"""What the tests of the chat completions decoder share: chunks in, events or the final message out."""

import json
from typing import Any

from tests.unit.providers.decoding import DecoderStage

from lanewayd.providers.openai_chat.dialect import OpenAIChat

STAGE = DecoderStage(OpenAIChat)
REQUEST = STAGE.request
new_decoder, decode = STAGE.new_decoder, STAGE.decode
message_of, failure_of = STAGE.message_of, STAGE.failure_of
DONE = b"data: [DONE]\n\n"


def event(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]})


def call(index: int | None = 0, call_id: str | None = None, **function: Any) -> bytes:
    fragment: dict[str, Any] = {"function": function}
    if index is not None:
        fragment["index"] = index
    if call_id is not None:
        fragment["id"] = call_id
    return delta(tool_calls=[fragment])
