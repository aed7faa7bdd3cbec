"""A long answer of text in the language of each family, event by event, in the form in which their services send it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.benchmarks.mock_model import token

APIS = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama")


def answer(api: str, deltas: int) -> list[bytes]:
    """The events of the response, each as one piece of its body."""
    return list(_ANSWERS[api](deltas))


def _data(value: dict[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _openai_chat(deltas: int) -> Iterator[bytes]:
    head = {
        "id": "chatcmpl-C9bVp1q0fZ8tJ4yBmD2xLwNe7kRuS",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "gpt-5.2-2025-12-11",
        "service_tier": "default",
        "system_fingerprint": None,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**head, "choices": [choice], "usage": None, "obfuscation": "sW4mE9xkQ"})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for number in range(deltas):
        yield chunk({"content": token(number)})
    yield chunk({}, "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": deltas, "total_tokens": 100 + deltas}
    yield _data({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _openai_responses(deltas: int) -> Iterator[bytes]:
    numbers = iter(range(deltas + 100))

    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    item_id = "msg_68c9f0a4d2b08197a0c4e1f7b35d6a2900a1b2c3d4e5f607"
    item = {"id": item_id, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    where = {"item_id": item_id, "output_index": 0, "content_index": 0}
    text = "".join(token(number) for number in range(deltas))
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    whole = {**item, "status": "completed", "content": [part]}
    yield event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})
    yield event("response.output_item.added", output_index=0, item=item)
    yield event("response.content_part.added", **where, part={**part, "text": ""})
    for number in range(deltas):
        more = {"delta": token(number), "logprobs": [], "obfuscation": "sW4mE9xkQ"}
        yield event("response.output_text.delta", **where, **more)
    yield event("response.output_text.done", **where, text=text)
    yield event("response.output_item.done", output_index=0, item=whole)
    usage = {"input_tokens": 100, "output_tokens": deltas, "total_tokens": 100 + deltas}
    response = {"id": "resp_1", "status": "completed", "output": [whole], "usage": usage}
    yield event("response.completed", response=response)


def _anthropic(deltas: int) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, **fields}, kind)

    message = {"id": "msg_01", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 100}}
    yield event("message_start", message=message)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number in range(deltas):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": token(number)})
    yield event("content_block_stop", index=0)
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": deltas})
    yield event("message_stop")


def _gemini(deltas: int) -> Iterator[bytes]:
    for number in range(deltas):
        content = {"parts": [{"text": token(number)}], "role": "model"}
        candidate = {"content": content, "index": 0}
        if number == deltas - 1:
            candidate["finishReason"] = "STOP"
        details = [{"modality": "TEXT", "tokenCount": 100}]
        counts = {"promptTokenCount": 100, "candidatesTokenCount": number, "totalTokenCount": 100 + number}
        usage = {**counts, "promptTokensDetails": details}
        head = {"modelVersion": "gemini-3.8-flash", "responseId": "q0fZaJ4yBmD2xLwNe7kRuS"}
        yield _data({"candidates": [candidate], "usageMetadata": usage, **head})


def _ollama(deltas: int) -> Iterator[bytes]:
    def line(text: str, **more: Any) -> bytes:
        message = {"role": "assistant", "content": text}
        value = {"model": "qwen3:8b", "created_at": "2026-10-01T12:00:00.123456789Z", "message": message, **more}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    for number in range(deltas):
        yield line(token(number), done=False)
    yield line("", done=True, done_reason="stop", prompt_eval_count=100, eval_count=deltas)


_ANSWERS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
