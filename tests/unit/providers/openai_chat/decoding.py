"""What the tests of the chat completions decoder share: chunks in, events or the final message out."""

import itertools
import json
from typing import Any

from lanewayd.messages import AssistantMessage, StopReason, UserMessage
from lanewayd.providers.interface import Decoder, Done, Failed, ModelRequest, StreamEvent
from lanewayd.providers.openai_chat.dialect import OpenAIChat

REQUEST = ModelRequest("m1", "", (UserMessage("hi"),))
DONE = b"data: [DONE]\n\n"


def new_decoder(request: ModelRequest = REQUEST) -> Decoder:
    numbers = itertools.count(1)
    return OpenAIChat(new_call_id=lambda: f"made_up_{next(numbers)}").decoder(request, "acme")


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


def decode(*chunks: bytes, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    decoder = new_decoder(request)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


def message_of(*chunks: bytes, request: ModelRequest = REQUEST) -> AssistantMessage:
    done = decode(*chunks, request=request)[-1]
    assert isinstance(done, Done), done
    return done.message


def failure_of(*chunks: bytes) -> Failed:
    failed = decode(*chunks)[-1]
    assert isinstance(failed, Failed), failed
    assert failed.partial.stop_reason is StopReason.ERROR
    assert failed.partial.tool_calls == ()
    return failed
