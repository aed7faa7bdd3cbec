"""What sets the services apart that speak chat completions. Pure."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from lanewayd.providers.endpoint import is_openai_host

_OPENAI_CALL_ID_CHARS = 40


@dataclass(frozen=True, slots=True)
class ChatManners:
    """The defaults suit a service that nothing is known of: it is sent only what all understand."""

    provider: str | None = None
    """Its name in the settings: reasoning goes back only where it came from. None: the model's name decides alone."""
    is_openai: bool = False
    """OpenAI's models behind OpenAI's own interface, which has newer fields and stricter rules than its copies."""
    holds_schemas: bool = False
    """It holds an answer to a JSON Schema, also where tools are offered. Of others that is not known: there are some
    that refuse the field, and some that can call no tool then."""

    @property
    def max_call_id_chars(self) -> int | None:
        """OpenAI takes no longer ids of calls; others take any, and some keep state in them."""
        return _OPENAI_CALL_ID_CHARS if self.is_openai else None


def manners_of(provider: str, base_url: str) -> ChatManners:
    """The manners of the service that is configured as `provider`. The name `openai` promises OpenAI, or a proxy to it.

    OpenRouter's schemas: openrouter.ai/docs/features/structured-outputs.
    """
    is_openai = provider == "openai" or is_openai_host(base_url)
    is_openrouter = provider == "openrouter" or urlsplit(base_url).hostname == "openrouter.ai"
    return ChatManners(provider, is_openai, is_openai or is_openrouter)
