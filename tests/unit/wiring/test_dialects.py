"""The settings and the wiring know the same languages."""

from lanewayd.messages import UserMessage
from lanewayd.providers.interface import ModelRequest
from lanewayd.settings.models import APIS, LANDED_APIS
from lanewayd.wiring.dialects import make_dialect


def test_every_api_that_the_settings_take_has_a_language() -> None:
    for api in LANDED_APIS:
        dialect = make_dialect(api, provider="acme")
        assert dialect.models_path.startswith("/")
    assert set(LANDED_APIS) <= set(APIS)


def test_only_anthropic_itself_owes_the_end_mark_of_its_language() -> None:
    request = ModelRequest("m", "", (UserMessage("hi"),))
    stopped = b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    for provider, is_complete in (("anthropic", False), ("gateway", True)):
        decoder = make_dialect("anthropic", provider=provider).decoder(request, provider)
        assert decoder.feed(stopped) == []
        assert decoder.is_complete is is_complete
