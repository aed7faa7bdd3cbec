"""What the tests of the Messages decoder share: events in, stream events or the final message out."""

import itertools
import json
from typing import Any

from lanewayd.messages import AssistantMessage, StopReason, UserMessage
from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.interface import Done, Failed, ModelRequest, StreamEvent
from lanewayd.providers.stream_decoder import StreamDecoder

REQUEST = ModelRequest("claude-x", "", (UserMessage("hi"),))


def new_decoder(request: ModelRequest = REQUEST, *, needs_end_mark: bool = False) -> StreamDecoder:
    numbers = itertools.count(1)
    dialect = AnthropicMessages(new_call_id=lambda: f"made_up_{next(numbers)}", needs_end_mark=needs_end_mark)
    return dialect.decoder(request, "acme")


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def start(**usage: Any) -> bytes:
    return event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage})


def block(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def text(index: int, value: str) -> bytes:
    return delta(index, "text_delta", text=value)


def stop_block(index: int) -> bytes:
    return event("content_block_stop", index=index)


def call(index: int, name: str, *pieces: str, call_id: str = "toolu_1", given: Any = None) -> bytes:
    """A whole tool call whose arguments come in these pieces."""
    deltas = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    begin = block(index, "tool_use", id=call_id, name=name, input={} if given is None else given)
    return b"".join([begin, *deltas, stop_block(index)])


def stop(reason: str | None = "end_turn", **usage: Any) -> bytes:
    """The last two events."""
    return event("message_delta", delta={"stop_reason": reason}, usage=usage) + END


END = event("message_stop")


def decode(*chunks: bytes, request: ModelRequest = REQUEST, needs_end_mark: bool = False) -> list[StreamEvent]:
    decoder = new_decoder(request, needs_end_mark=needs_end_mark)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


def message_of(*chunks: bytes, request: ModelRequest = REQUEST, needs_end_mark: bool = False) -> AssistantMessage:
    done = decode(*chunks, request=request, needs_end_mark=needs_end_mark)[-1]
    assert isinstance(done, Done), done
    return done.message


def failure_of(*chunks: bytes, needs_end_mark: bool = False) -> Failed:
    failed = decode(*chunks, needs_end_mark=needs_end_mark)[-1]
    assert isinstance(failed, Failed), failed
    assert failed.partial.stop_reason is StopReason.ERROR
    assert failed.partial.tool_calls == ()
    return failed
