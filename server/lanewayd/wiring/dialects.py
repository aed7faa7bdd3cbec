"""Which language a provider is spoken to in. A new one is registered here, and in LANDED_APIS of the settings."""

from collections.abc import Callable, Mapping

from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.call_ids import random_call_id
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.interface import Dialect
from lanewayd.providers.ollama.dialect import Ollama
from lanewayd.providers.openai_chat.dialect import OpenAIChat
from lanewayd.providers.openai_responses.dialect import OpenAIResponses


def make_dialect(api: str, *, provider: str) -> Dialect:
    """The language `api`, one of LANDED_APIS, as the service that is configured under the name `provider` takes it."""
    return _DIALECTS[api](provider)


def _openai_chat(provider: str) -> Dialect:
    return OpenAIChat(new_call_id=random_call_id, max_call_id_chars=40 if provider == "openai" else None)


def _anthropic(provider: str) -> Dialect:
    return AnthropicMessages(new_call_id=random_call_id, needs_end_mark=provider == "anthropic")


def _openai_responses(provider: str) -> Dialect:
    return OpenAIResponses(provider=provider, new_call_id=random_call_id)


_DIALECTS: Mapping[str, Callable[[str], Dialect]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": lambda _: Gemini(new_call_id=random_call_id),
    "ollama": lambda _: Ollama(new_call_id=random_call_id),
}
