"""Function calls as Gemini sends them: whole, with an object of arguments. Pure. Source: spec 05, R-5.38, R-5.85."""

import json
from dataclasses import dataclass
from typing import Any

from lanewayd.messages import valid_text
from lanewayd.providers.arguments import CallRefused, argument_object, check_size


@dataclass(slots=True)
class OpenCall:
    """A call of an answer that goes on. `name` is empty for a part that only has arguments."""

    name: str
    provider_id: str
    arguments_json: str
    signature: str = ""

    @classmethod
    def of(cls, call: Any, signature: str) -> "OpenCall":
        """From the `functionCall` of a part. Raises CallRefused when its arguments are no JSON object, or too large."""
        if not isinstance(call, dict):
            raise CallRefused("incomplete or malformed tool call: it is no object")
        name = _text(call.get("name"))
        return cls(name, _text(call.get("id")), _arguments_json(call.get("args"), name), signature)

    @property
    def is_empty(self) -> bool:
        """It has no arguments."""
        return self.arguments_json == "{}"


def _arguments_json(arguments: Any, name: str) -> str:
    if arguments is None:
        return "{}"
    try:
        text = json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        raise CallRefused(f"incomplete or malformed tool call: the arguments of {name} are too deep") from None
    arguments_json = argument_object(name, text)
    check_size(len(arguments_json.encode()))
    return arguments_json


def _text(value: Any) -> str:
    return valid_text(value).strip() if isinstance(value, str) else ""
