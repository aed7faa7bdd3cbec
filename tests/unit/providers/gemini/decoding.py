"""What the tests of the Gemini decoder share: chunks in, events or the final message out."""

import json
from typing import Any

from tests.unit.providers.decoding import DecoderStage

from lanewayd.providers.gemini.dialect import Gemini

STAGE = DecoderStage(Gemini, model="gemini-3.8-flash", provider="google")
REQUEST = STAGE.request
new_decoder, decode = STAGE.new_decoder, STAGE.decode
message_of, failure_of = STAGE.message_of, STAGE.failure_of


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
