"""What a model service answers, in chat completions over HTTP: whole, in pieces, held, or broken off."""

import asyncio
import json
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_EVENT_STREAM = "text/event-stream"


class End(Enum):
    """How a response ends."""

    COMPLETE = "complete"
    """The body is whole; the connection stays open for the next request."""
    CLOSE = "close"
    """The body ends with the connection, as a body without a length does."""
    CUT = "cut"
    """The connection is closed (FIN) in the middle of a body with a length or chunks."""
    RESET = "reset"
    """The connection is reset (RST)."""


Step = bytes | asyncio.Event | float
"""Bytes are written at once, an event is waited for, a number is a pause in seconds (own pacing, no test waits so)."""


@dataclass
class Answer:
    """What one request gets. `steps` are carried out in order; `before` is waited for before the first byte."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": _EVENT_STREAM})
    end: End = End.COMPLETE
    before: asyncio.Event | None = None
    sends_head: bool = True
    """False: the steps are all there is, headers included; with none and End.RESET the request is just reset."""


def wire(text: str | bytes, **options: Any) -> Answer:
    """A body, exactly these bytes."""
    return Answer([text.encode() if isinstance(text, str) else text], **options)


def failure(status: int, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """An error response with a JSON body, or with `body` as it is when it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return Answer([content] if content else [], status, {"content-type": "application/json", **(headers or {})})


def event(**chunk: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    """One chunk of a chat completion."""
    return event(id="c", choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


DONE = b"data: [DONE]\n\n"


def text_answer(*pieces: str, usage: tuple[int, int] = (3, 2)) -> Answer:
    """A whole answer: its deltas, the finish reason, usage and the end mark."""
    steps = [delta(content=piece) for piece in pieces]
    return Answer([*steps, delta("stop"), _usage_event(usage), DONE])


def _usage_event(usage: tuple[int, int]) -> bytes:
    tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return event(id="c", choices=[], usage=tokens)


def calls_answer(*calls: tuple[str, dict[str, Any]], text: str = "", usage: tuple[int, int] | None = None) -> Answer:
    """A whole answer that calls tools; ids are fresh. Without `usage` nothing is said about it."""
    items = [
        {
            "index": index,
            "id": f"call_{uuid.uuid4().hex[:24]}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(calls)
    ]
    steps = [delta(content=text)] if text else []
    said = [] if usage is None else [_usage_event(usage)]
    return Answer([*steps, delta(tool_calls=items), delta("tool_calls"), *said, DONE])


def gzipped(events: Iterable[Step]) -> Answer:
    """The events compressed, flushed after each, and written one byte at a time."""
    compressor = zlib.compressobj(wbits=31)
    steps: list[Step] = []
    for step in events:
        if isinstance(step, bytes):
            data = compressor.compress(step) + compressor.flush(zlib.Z_SYNC_FLUSH)
            steps += [data[at : at + 1] for at in range(len(data))]
        else:
            steps.append(step)
    steps.append(compressor.flush())
    return Answer(steps, headers={"content-type": _EVENT_STREAM, "content-encoding": "gzip"})
