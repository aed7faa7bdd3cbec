"""The bodies of transcript entries: message <-> JSON. Pure.

The only place that knows the shape of `body_json`. Text is stored as valid UTF-8: a lone surrogate becomes U+FFFD.
"""

import json
from dataclasses import asdict
from typing import Any

from lanewayd.messages import (
    AssistantBlock,
    AssistantMessage,
    Attachment,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResultMessage,
    Usage,
    UserMessage,
    valid_text,
)
from lanewayd.records import Entry, EntryKind


def _dump(body: dict[str, Any]) -> str:
    return valid_text(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def user_body(message: UserMessage) -> str:
    """The body of a user entry."""
    content: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    content += [{"type": "attachment", **asdict(attachment)} for attachment in message.attachments]
    return _dump({"content": content})


def assistant_body(message: AssistantMessage, message_id: str) -> str:
    """The body of an assistant entry."""
    return _dump(
        {
            "message_id": message_id,
            "content": [_block_json(block) for block in message.content],
            "provider": message.provider,
            "model": message.model,
            "usage": _usage_json(message.usage),
            "stop_reason": message.stop_reason.value,
            "provider_stop": message.provider_stop,
            **({"response_model": message.response_model} if message.response_model else {}),
        }
    )


def tool_result_body(message: ToolResultMessage) -> str:
    """The body of a tool result entry."""
    return _dump(
        {
            "call_id": message.call_id,
            "name": message.name,
            "content": [{"type": "text", "text": message.text}],
            "is_error": message.is_error,
            "outcome": message.outcome.value,
        }
    )


def reset_body() -> str:
    """The body of a reset entry: the model's window begins after it."""
    return _dump({"first_kept_entry_id": ""})


def message_of(entry: Entry) -> Message | None:
    """The message a model sees for `entry`; None for an entry that is no message (reset)."""
    body = json.loads(entry.body_json)
    if entry.kind is EntryKind.USER:
        return UserMessage(_text_of(body), _attachments_of(body))
    if entry.kind is EntryKind.ASSISTANT:
        return AssistantMessage(
            content=tuple(_block_of(block) for block in body["content"]),
            provider=body["provider"],
            model=body["model"],
            stop_reason=StopReason(body["stop_reason"]),
            usage=_usage_of(body["usage"]),
            provider_stop=body["provider_stop"],
            response_model=body.get("response_model", ""),
        )
    if entry.kind is EntryKind.TOOL_RESULT:
        return ToolResultMessage(
            call_id=body["call_id"],
            name=body["name"],
            text=_text_of(body),
            is_error=body["is_error"],
            outcome=ToolOutcome(body["outcome"]),
        )
    return None


def _text_of(body: dict[str, Any]) -> str:
    return "".join(part["text"] for part in body["content"] if part["type"] == "text")


def blobs_named_by(kind: EntryKind, body_json: str) -> tuple[str, ...]:
    """The hashes of the files that an entry names."""
    if kind is not EntryKind.USER:
        return ()
    return tuple(attachment.blob_hash for attachment in _attachments_of(json.loads(body_json)))


def _attachments_of(body: dict[str, Any]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(part["name"], part["mime_type"], part["blob_hash"], part["size_bytes"])
        for part in body["content"]
        if part["type"] == "attachment"
    )


def _block_json(block: AssistantBlock) -> dict[str, Any]:
    if isinstance(block, Text):
        said = {"type": "text", "text": block.text}
        return {**said, "signature": block.signature} if block.signature else said
    if isinstance(block, Reasoning):
        thought = {"type": "reasoning", "text": block.text, "field": block.field}
        return {**thought, "signature": block.signature} if block.signature else thought
    call = {
        "type": "tool_call",
        "call_id": block.call_id,
        "name": block.name,
        "arguments_json": block.arguments_json,
    }
    return {**call, "signature": block.signature} if block.signature else call


def _block_of(block: dict[str, Any]) -> AssistantBlock:
    if block["type"] == "text":
        return Text(block["text"], block.get("signature", ""))
    if block["type"] == "reasoning":
        return Reasoning(block["text"], block["field"], block.get("signature", ""))
    return ToolCall(block["call_id"], block["name"], block["arguments_json"], block.get("signature", ""))


def _usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "unavailable": usage.unavailable,
        **({} if usage.cost_usd is None else {"cost_usd": usage.cost_usd}),
    }


def _usage_of(body: dict[str, Any]) -> Usage:
    return Usage(**body)
