"""What the tests of Ollama's decoder share: lines in, events or the final message out."""

import itertools
import json
from typing import Any

from lanewayd.messages import AssistantMessage, StopReason, UserMessage
from lanewayd.providers.interface import Decoder, Done, Failed, ModelRequest, StreamEvent
from lanewayd.providers.ollama.dialect import Ollama

REQUEST = ModelRequest("m1", "", (UserMessage("hi"),))


def new_decoder(request: ModelRequest = REQUEST) -> Decoder:
    numbers = itertools.count(1)
    return Ollama(new_call_id=lambda: f"made_up_{next(numbers)}").decoder(request, "acme")


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


def decode(*chunks: bytes, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    decoder = new_decoder(request)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


def message_of(*chunks: bytes, request: ModelRequest = REQUEST) -> AssistantMessage:
    last = decode(*chunks, request=request)[-1]
    assert isinstance(last, Done), last
    return last.message


def failure_of(*chunks: bytes) -> Failed:
    events = decode(*chunks)
    failed = events[-1]
    assert isinstance(failed, Failed), failed
    assert not [event for event in events[:-1] if isinstance(event, Done | Failed)]
    assert failed.partial.stop_reason is StopReason.ERROR
    assert failed.partial.tool_calls == ()
    return failed
