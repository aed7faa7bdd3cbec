"""Which model answered, where the service names another than it was asked for (R-4.18). Pure."""

from typing import Any

from lanewayd.messages import valid_text

_MAX_CHARS = 256


def response_model(named: Any, former: str, *, asked: str) -> str:
    """The model that a response names; empty when it is the one asked for. `former` stands when none is named.

    An alias is answered under the name of its version (`gpt-4o` by `gpt-4o-2024-08-06`), a router's name under that of
    the model it chose. At most 256 characters.
    """
    if not isinstance(named, str) or not named.strip():
        return former
    name = valid_text(named.strip())[:_MAX_CHARS]
    return "" if name == asked else name
