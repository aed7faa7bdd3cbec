"""Readers of a streamed response's loosely typed fields. Pure; whatever does not fit reads as absent.

Source: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse.
"""

from collections.abc import Mapping
from typing import Any

from lanewayd.errors import ErrorCode
from lanewayd.messages import StopReason, Usage
from lanewayd.providers.failures import Fault, fault
from lanewayd.providers.redaction import excerpt
from lanewayd.providers.usage_fields import count_of

USAGE_FIELDS = (
    "promptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
)
STOP_REASONS: Mapping[str, StopReason] = {"STOP": StopReason.STOP, "MAX_TOKENS": StopReason.LENGTH}
_UNSPECIFIED = ("FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
_REFUSALS: Mapping[str, str] = {
    "SAFETY": "the answer was stopped by the safety filter",
    "RECITATION": "the answer was stopped because it repeated a source",
    "LANGUAGE": "the answer was stopped because of its language",
    "BLOCKLIST": "the answer was stopped by the list of forbidden terms",
    "PROHIBITED_CONTENT": "the answer was stopped because its content is prohibited",
    "SPII": "the answer was stopped because of personal data",
    "IMAGE_SAFETY": "an image of the answer was stopped by the safety filter",
    "IMAGE_PROHIBITED_CONTENT": "an image of the answer was stopped because its content is prohibited",
    "IMAGE_RECITATION": "an image of the answer was stopped because it repeated a source",
}
_FAILURES: Mapping[str, str] = {
    "MALFORMED_FUNCTION_CALL": "the model made a malformed tool call",
    "UNEXPECTED_TOOL_CALL": "the model called a tool it was not offered",
    "TOO_MANY_TOOL_CALLS": "the model made too many tool calls",
    "MISSING_THOUGHT_SIGNATURE": "the service misses a thought signature in the request",
    "MALFORMED_RESPONSE": "the model made a malformed answer",
    "OTHER": "the answer was stopped for a reason that the service does not tell",
}


def plain_text_of(chunk: Any) -> tuple[str, bool]:
    """The text of a chunk, and whether it is a thought, if the chunk has text and, beside its usage, nothing else to
    say, as nearly all do; else no text."""
    try:
        (candidate,) = chunk["candidates"]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
    except (KeyError, TypeError, ValueError):
        return "", False
    is_thought = part.get("thought") is True
    says_more = len(part) > 1 + is_thought or candidate.get("finishReason") or chunk.get("error")
    return ("", False) if says_more or not isinstance(text, str) else (text, is_thought)


def first_candidate(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The answer; None for a chunk without one."""
    candidates = chunk.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return candidates[0]
    return None


def parts_of(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a candidate's content."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def finish_word_of(candidate: dict[str, Any]) -> str:
    """Why the answer ended; empty while it goes on, which an unspecified reason says too."""
    return _word(candidate.get("finishReason"))


def block_word_of(chunk: dict[str, Any]) -> str:
    """Why the prompt was blocked; empty if it was not."""
    feedback = chunk.get("promptFeedback")
    return _word(feedback.get("blockReason")) if isinstance(feedback, dict) else ""


def failed_stop(word: str, candidate: dict[str, Any]) -> Fault | None:
    """The failure that a finish reason stands for, with the service's own words; None for an end as it should be."""
    if not word or word in STOP_REASONS:
        return None
    said = candidate.get("finishMessage")
    said = excerpt(said[:4096]) if isinstance(said, str) else ""
    if word in _REFUSALS:
        return fault(ErrorCode.PROVIDER_REFUSED, f"{_REFUSALS[word]}, finish reason {word}", said=said)
    what = _FAILURES.get(word)
    what = f"{what}, finish reason {word}" if what else f"the answer ended with the finish reason {excerpt(word)[:60]}"
    return fault(ErrorCode.PROVIDER_BAD_RESPONSE, what, said=said)


def blocked_prompt(word: str, chunk: dict[str, Any]) -> Fault:
    """The failure of a prompt that the service does not hand to the model."""
    feedback = chunk["promptFeedback"]
    said = feedback.get("blockReasonMessage")
    said = excerpt(said[:4096]) if isinstance(said, str) else ""
    what = f"the prompt was blocked before the model saw it, block reason {excerpt(word)[:60]}"
    return fault(ErrorCode.PROVIDER_REFUSED, what, said=said)


def usage_of(fields: Mapping[str, Any]) -> Usage | None:
    """Tokens as we count them (R-5.87): input without the cached part, thoughts as a part of the output."""
    prompt, answer = count_of(fields, "prompt_token_count"), count_of(fields, "candidates_token_count")
    cached = count_of(fields, "cached_content_token_count")
    thoughts = count_of(fields, "thoughts_token_count")
    if prompt is answer is cached is thoughts is None:
        return None
    of_tools = count_of(fields, "tool_use_prompt_token_count") or 0
    return Usage(
        input_tokens=max(0, (prompt or 0) - (cached or 0)) + of_tools,
        output_tokens=(answer or 0) + (thoughts or 0),
        cache_read_tokens=cached or 0,
        reasoning_tokens=thoughts or 0,
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) and value not in _UNSPECIFIED else ""
