"""How each language that the service speaks looks to a model service: where a request comes, its key, an answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fakes.model_answers import Answer, event, text_answer
from tests.fakes.model_server import RecordedRequest


@dataclass(frozen=True, slots=True)
class Language:
    """`path` has places for `base`, the path of the service's URL, and for `model`. `text` makes a whole answer."""

    path: str
    key_of: Callable[[RecordedRequest], str | None]
    text: Callable[[str], Answer]

    def path_of(self, base: str, model: str) -> str:
        """Where a request for `model` comes."""
        return self.path.format(base=base.rstrip("/"), model=model)


def _bearer(request: RecordedRequest) -> str | None:
    value = request.headers.get("authorization")
    return None if value is None else value.removeprefix("Bearer ")


def _gemini_text(text: str) -> Answer:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    return Answer([event(candidates=[candidate], usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 2})])


def _anthropic_text(text: str) -> Answer:
    start = {"id": "m", "type": "message", "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 1}}
    return Answer(
        [
            event(type="message_start", message=start),
            event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
            event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
            event(type="content_block_stop", index=0),
            event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
            event(type="message_stop"),
        ]
    )


def _responses_text(text: str) -> Answer:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 3, "output_tokens": 2}
    return Answer(
        [
            event(type="response.output_text.delta", output_index=0, delta=text),
            event(type="response.output_item.done", output_index=0, item=item),
            event(type="response.completed", response={"status": "completed", "output": [item], "usage": usage}),
        ]
    )


def _ollama_text(text: str) -> Answer:
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}
    lines = [
        {"message": {"role": "assistant", "content": text}, "done": False},
        {"message": {"role": "assistant", "content": ""}, **last},
    ]
    return Answer(
        [json.dumps(line).encode() + b"\n" for line in lines], headers={"content-type": "application/x-ndjson"}
    )


LANGUAGES: Mapping[str, Language] = {
    "openai_chat": Language("{base}/chat/completions", _bearer, text_answer),
    "anthropic": Language("{base}/v1/messages", lambda request: request.headers.get("x-api-key"), _anthropic_text),
    "gemini": Language(
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        lambda request: request.headers.get("x-goog-api-key"),
        _gemini_text,
    ),
    "openai_responses": Language("{base}/responses", _bearer, _responses_text),
    "ollama": Language("{base}/api/chat", _bearer, _ollama_text),
}
"""By `api` of the settings."""
