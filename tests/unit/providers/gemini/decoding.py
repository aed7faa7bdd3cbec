"""What the tests of the Gemini decoder share: chunks in, events or the final message out."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

from lanewayd.messages import AssistantMessage, StopReason, UserMessage
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.interface import Decoder, Done, Failed, ModelRequest, ReasoningDelta, StreamEvent, TextDelta

REQUEST = ModelRequest("gemini-3.8-flash", "", (UserMessage("hi"),))


def new_decoder(request: ModelRequest = REQUEST) -> Decoder:
    numbers = itertools.count(1)
    return Gemini(new_call_id=lambda: f"made_up_{next(numbers)}").decoder(request, "google")


def event(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n"


def chunk(*parts: dict[str, Any], finish: str | None = None, usage: dict[str, Any] | None = None) -> bytes:
    """One event of the service; without parts it has no content, as events with nothing but a reason."""
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish is not None:
        candidate["finishReason"] = finish
    return event({"candidates": [candidate], **({"usageMetadata": usage} if usage else {})})


def call(name: str = "rec", args: Any = None, **more: Any) -> dict[str, Any]:
    """A part with a function call; `args` None: it has none."""
    signature = {"thoughtSignature": more.pop("signature")} if "signature" in more else {}
    return {"functionCall": {"name": name, **({"args": args} if args is not None else {}), **more}, **signature}


STOP = chunk(finish="STOP")


def decode(*chunks: bytes, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    decoder = new_decoder(request)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


def message_of(*chunks: bytes, request: ModelRequest = REQUEST) -> AssistantMessage:
    events = decode(*chunks, request=request)
    assert one_terminal(events)
    done = events[-1]
    assert isinstance(done, Done), done
    return done.message


def failure_of(*chunks: bytes) -> Failed:
    events = decode(*chunks)
    assert one_terminal(events)
    failed = events[-1]
    assert isinstance(failed, Failed), failed
    assert failed.partial.stop_reason is StopReason.ERROR
    assert failed.partial.tool_calls == ()
    return failed


def one_terminal(events: Sequence[StreamEvent]) -> bool:
    """The last event is terminal, and no other is."""
    return [isinstance(event, Done | Failed) for event in events].index(True) == len(events) - 1


def merged(events: Sequence[StreamEvent]) -> list[Any]:
    """The events without the boundaries between deltas of one block."""
    result: list[Any] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, TextDelta | ReasoningDelta) and type(last) is type(event):
            assert isinstance(last, TextDelta | ReasoningDelta)
            if last.content_index == event.content_index:
                result[-1] = type(event)(event.content_index, last.text + event.text)
                continue
        result.append(event)
    return result
