"""Content in spans, only with telemetry.capture_content: without known secrets, and no longer than a span can carry."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_CONTENT_CHARS = 32_768
"""Of one attribute."""


@dataclass(frozen=True, slots=True)
class Content:
    """How content looks in spans. Both functions redact and cut."""

    shown: Callable[[str], str]
    arguments_json: Callable[[str], str]

    def text(self, text: str) -> str:
        """One text."""
        return self.shown(text)[:MAX_CONTENT_CHARS]

    def arguments(self, arguments_json: str) -> str:
        """The arguments of a tool call."""
        return self.arguments_json(arguments_json)[:MAX_CONTENT_CHARS]

    def newest(self, items: Sequence[Mapping[str, Any]]) -> str:
        """A JSON list of as many of the last items as there is room for, in their order."""
        texts: list[str] = []
        left = MAX_CONTENT_CHARS
        for item in reversed(items):
            text = json.dumps(self._deep(item), ensure_ascii=False)
            left -= len(text) + 2
            if left < 0:
                break
            texts.append(text)
        return f"[{', '.join(reversed(texts))}]"

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.shown(value)
        if isinstance(value, Mapping):
            return {name: self._deep(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._deep(member) for member in value]
        return value
