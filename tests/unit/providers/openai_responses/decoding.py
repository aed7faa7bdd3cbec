"""What the tests of the decoder of responses share: events in, stream events or the final message out."""

import json
from functools import partial
from typing import Any

from tests.unit.providers.decoding import DecoderStage

from lanewayd.providers.openai_responses.dialect import OpenAIResponses

STAGE = DecoderStage(partial(OpenAIResponses, provider="acme"))
REQUEST = STAGE.request
new_decoder, decode = STAGE.new_decoder, STAGE.decode
message_of, failure_of = STAGE.message_of, STAGE.failure_of


def event(kind: str, **fields: Any) -> bytes:
    """An event as OpenAI sends it."""
    data = json.dumps({"type": kind, **fields}).encode()
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def added(index: int | None, item: dict[str, Any]) -> bytes:
    return event("response.output_item.added", **_at(index), item={"status": "in_progress", **item})


def done(index: int | None, item: dict[str, Any]) -> bytes:
    return event("response.output_item.done", **_at(index), item={"status": "completed", **item})


def text(index: int | None, delta: Any, **fields: Any) -> bytes:
    return event("response.output_text.delta", **_at(index), delta=delta, **fields)


def thought(index: int | None, delta: Any, summary_index: int = 0) -> bytes:
    return event("response.reasoning_summary_text.delta", **_at(index), delta=delta, summary_index=summary_index)


def arguments(index: int | None, delta: Any, **fields: Any) -> bytes:
    return event("response.function_call_arguments.delta", **_at(index), delta=delta, **fields)


def all_arguments(index: int | None, whole: Any, **fields: Any) -> bytes:
    return event("response.function_call_arguments.done", **_at(index), arguments=whole, **fields)


def message(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}], **fields}


def call(given: str = "{}", call_id: str = "call_1", item_id: str = "fc_1", **fields: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "name": "rec",
        "call_id": call_id,
        "id": item_id,
        "arguments": given,
        "status": "completed",
        **fields,
    }


def reasoning(summary: str = "", encrypted: str | None = None, item_id: str = "rs_1") -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": part} for part in summary.split("\n\n") if part]
    return {"type": "reasoning", "id": item_id, "summary": parts, "encrypted_content": encrypted}


def completed(*output: dict[str, Any], **fields: Any) -> bytes:
    return event("response.completed", response={"id": "r", "status": "completed", "output": list(output), **fields})


def incomplete(reason: str, *output: dict[str, Any]) -> bytes:
    details = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": list(output)}
    return event("response.incomplete", response=details)


def _at(index: int | None) -> dict[str, int]:
    return {} if index is None else {"output_index": index}
