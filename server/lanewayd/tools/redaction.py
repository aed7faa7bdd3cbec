"""Copies of tool arguments and results for events: no secrets, no data URIs, no excess (R-1.101, R-6.55). Pure.

Secrets are the values the service knows (its keys), and what has the shape of a well-known key. The shapes are few and
strict: a text that merely looks random stays.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from lanewayd.tools.terminal_text import without_nul

SHOWN_CHARS = 8_000
_REDACTED = "[redacted]"
_SHORTEST_SECRET_CHARS = 6
_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s{1,4})[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_DATA_URI = re.compile(r"data:([\w.+-]{1,80}/[\w.+-]{1,80})?(?:;[\w=.+-]{1,80}){0,4},[A-Za-z0-9+/=_%.~-]{16,}")
_SECRET_NAMES = re.compile(
    r"(?:.*[_-])?(?:authorization|api_?key|password|passwd|secret|access_?token|refresh_?token|auth_?token"
    r"|client_?secret|private_?key|secret_?key)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Redactor:
    """Makes the copies. `secrets` are values to remove wherever they stand, or who is asked for them each time; those
    under six characters are ignored."""

    def __init__(self, secrets: Iterable[str] | Callable[[], tuple[str, ...]] = ()) -> None:
        self._ask = secrets if callable(secrets) else None
        self._secrets = secrets() if callable(secrets) else tuple(secrets)
        self._known = _pattern_of(self._secrets)

    def text(self, text: str) -> str:
        """`text` without secrets and data URIs, of any length."""
        text = without_nul(text)
        if self._ask is not None and (secrets := self._ask()) != self._secrets:
            self._secrets, self._known = secrets, _pattern_of(secrets)
        if self._known is not None:
            text = self._known.sub(_REDACTED, text)
        text = _SHAPES.sub(_REDACTED, text)
        text = _BEARER.sub(rf"\1\2{_REDACTED}", text)
        return _DATA_URI.sub(lambda uri: f"[data URI, {len(uri.group())} characters]", text)

    def shown(self, text: str) -> str:
        """The same, at most 8,000 characters and a mark. Redacted before it is cut, so that no half secret stays."""
        text = self.text(text)
        if len(text) <= SHOWN_CHARS:
            return text
        return f"{text[:SHOWN_CHARS]}\n[... {len(text) - SHOWN_CHARS} characters more]"

    def arguments_json(self, arguments_json: str) -> str:
        """The arguments as JSON text with every string in them shown as above, the same text if nothing changes.

        What is no JSON is treated as text.
        """
        try:
            arguments = json.loads(arguments_json)
            shown = self._deep(arguments)
        except (ValueError, RecursionError):
            return self.shown(arguments_json)
        if shown == arguments and without_nul(arguments_json) == arguments_json:
            return arguments_json
        return without_nul(json.dumps(shown, ensure_ascii=False))

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.shown(value)
        if isinstance(value, list):
            return [self._deep(item) for item in value]
        if isinstance(value, dict):
            return {
                self.text(name): _REDACTED if isinstance(member, str) and _names_a_secret(name) else self._deep(member)
                for name, member in value.items()
            }
        return value


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET_CHARS}, key=len, reverse=True)
    return re.compile("|".join(re.escape(secret) for secret in known)) if known else None


def _names_a_secret(name: str) -> bool:
    return _SECRET_NAMES.fullmatch(_CAMEL.sub("_", name)) is not None
