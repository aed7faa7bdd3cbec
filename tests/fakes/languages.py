"""How each language that the service speaks looks to a model service: where a request comes, its key, an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fakes.model_server import Answer, RecordedRequest, event, text_answer


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


LANGUAGES: Mapping[str, Language] = {
    "openai_chat": Language("{base}/chat/completions", _bearer, text_answer),
    "anthropic": Language("{base}/v1/messages", lambda request: request.headers.get("x-api-key"), _anthropic_text),
    "gemini": Language(
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        lambda request: request.headers.get("x-goog-api-key"),
        _gemini_text,
    ),
}
"""By `api` of the settings."""
