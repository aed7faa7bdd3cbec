"""Which language a provider is spoken to in. A new one is registered here, and in LANDED_APIS of the settings."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lanewayd.providers.anthropic.dialect import AnthropicMessages
from lanewayd.providers.call_ids import random_call_id
from lanewayd.providers.gemini.dialect import Gemini
from lanewayd.providers.interface import Dialect
from lanewayd.providers.ollama.dialect import Ollama
from lanewayd.providers.openai_chat.dialect import OpenAIChat
from lanewayd.providers.openai_chat.manners import manners_of
from lanewayd.providers.openai_responses.dialect import OpenAIResponses


def make_dialect(api: str, *, provider: str, base_url: str = "") -> Dialect:
    """The language `api`, one of LANDED_APIS, as the service takes it that is configured under the name `provider`."""
    return _DIALECTS[api](_Service(provider, base_url))


class _Service(NamedTuple):
    """A configured service, as far as its language depends on it."""

    provider: str
    base_url: str


def _openai_chat(service: _Service) -> Dialect:
    return OpenAIChat(new_call_id=random_call_id, manners=manners_of(service.provider, service.base_url))


def _anthropic(service: _Service) -> Dialect:
    return AnthropicMessages(new_call_id=random_call_id, needs_end_mark=service.provider == "anthropic")


def _openai_responses(service: _Service) -> Dialect:
    is_openai = manners_of(service.provider, service.base_url).is_openai
    return OpenAIResponses(provider=service.provider, new_call_id=random_call_id, is_openai=is_openai)


_DIALECTS: Mapping[str, Callable[[_Service], Dialect]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": lambda _: Gemini(new_call_id=random_call_id),
    "ollama": lambda service: Ollama(new_call_id=random_call_id, provider=service.provider),
}
