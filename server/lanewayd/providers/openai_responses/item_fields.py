"""Readers of output items, and what of them is kept for replay. Pure; whatever does not fit reads as absent.

What is kept is the signature of a block: the item as JSON, of its known fields only. `reasoning` is whole, so that the
service can go on thinking where it stopped; of messages and calls there is what does not stand in the block itself.
"""

import json
from typing import Any, Literal

from lanewayd.messages import valid_text

ItemKind = Literal["message", "reasoning", "function_call"]
_PHASES = ("commentary", "final_answer")


def kind_of(item: dict[str, Any]) -> ItemKind | None:
    """What the item becomes; None for items of the service's own tools, which are not asked for."""
    kind = item.get("type")
    if kind == "message":
        return "message"
    if kind == "reasoning":
        return "reasoning"
    return "function_call" if kind == "function_call" else None


def text_of(value: Any) -> str:
    """A string, valid; anything else is none."""
    return valid_text(value) if isinstance(value, str) else ""


def message_text(item: dict[str, Any]) -> str:
    """The visible text; a refusal is what the model says."""
    return "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in _parts(item.get("content")))


def reasoning_text(item: dict[str, Any]) -> str:
    """The readable reasoning: the summary, else the thoughts themselves."""
    summary = "\n\n".join(text for part in _parts(item.get("summary")) if (text := text_of(part.get("text"))))
    return summary or "".join(text_of(part.get("text")) for part in _parts(item.get("content")))


def message_signature(item: dict[str, Any]) -> str:
    """The id and the phase of a message; empty when it has neither (R-5.71)."""
    phase = item.get("phase")
    kept = {"id": text_of(item.get("id")), "phase": phase if phase in _PHASES else ""}
    return _signature("message", kept)


def call_signature(item_id: str) -> str:
    """The id of a call's item, which is not the id that joins the call with its result."""
    return _signature("function_call", {"id": item_id})


def reasoning_signature(item: dict[str, Any]) -> str:
    """The whole item; empty when there is nothing in it."""
    summary = [{"type": "summary_text", "text": text_of(part.get("text"))} for part in _parts(item.get("summary"))]
    content = [{"type": "reasoning_text", "text": text_of(part.get("text"))} for part in _parts(item.get("content"))]
    kept = {
        "id": text_of(item.get("id")),
        "summary": summary,
        "content": content,
        "encrypted_content": text_of(item.get("encrypted_content")),
    }
    return _signature("reasoning", kept)


def with_encrypted_content(signature: str, item: dict[str, Any]) -> str:
    """`signature` with the encrypted content of `item`, if it has none of its own (R-5.70)."""
    encrypted = text_of(item.get("encrypted_content"))
    kept = item_of_signature(signature, "reasoning")
    if not encrypted or kept.get("encrypted_content"):
        return signature
    return _signature(
        "reasoning", {**kept, "id": kept.get("id") or text_of(item.get("id")), "encrypted_content": encrypted}
    )


def item_of_signature(signature: str, kind: ItemKind) -> dict[str, Any]:
    """The fields of an item of this kind; none for no signature, or for that of another provider family."""
    if not signature:
        return {}
    try:
        item = json.loads(signature)
    except (ValueError, RecursionError):
        return {}
    return item if isinstance(item, dict) and item.get("type") == kind else {}


def index_of(value: Any) -> int | None:
    """An output or summary index."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _signature(kind: ItemKind, fields: dict[str, Any]) -> str:
    kept = {name: value for name, value in fields.items() if value}
    return json.dumps({"type": kind, **kept}, ensure_ascii=False) if kept else ""


def _parts(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
