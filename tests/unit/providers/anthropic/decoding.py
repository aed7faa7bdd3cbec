"""What the tests of the Messages decoder share: events in, stream events or the final message out."""

import json
from functools import partial
from typing import Any

from tests.unit.providers.decoding import DecoderStage

from lanewayd.messages import AssistantMessage
from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.interface import Decoder, Failed, ModelRequest, StreamEvent

STAGES = {
    needs_end_mark: DecoderStage(partial(AnthropicMessages, needs_end_mark=needs_end_mark), model="claude-x")
    for needs_end_mark in (False, True)
}
REQUEST = STAGES[False].request


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


def new_decoder(*, needs_end_mark: bool = False) -> Decoder:
    return STAGES[needs_end_mark].new_decoder()


def decode(*chunks: bytes, request: ModelRequest = REQUEST, needs_end_mark: bool = False) -> list[StreamEvent]:
    return STAGES[needs_end_mark].decode(*chunks, request=request)


def message_of(*chunks: bytes, request: ModelRequest = REQUEST, needs_end_mark: bool = False) -> AssistantMessage:
    return STAGES[needs_end_mark].message_of(*chunks, request=request)


def failure_of(*chunks: bytes, needs_end_mark: bool = False) -> Failed:
    return STAGES[needs_end_mark].failure_of(*chunks)
