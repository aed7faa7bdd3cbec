"""What of a provider's own words may stand in an error: short, one line, without credentials. Pure."""

import re

MAX_SAID_CHARS = 500
_HIDDEN = "[redacted]"
_CUT = "…"
_SHORTEST_SECRET_CHARS = 6
"""A shorter key hides nothing and would tear holes into words."""
_CREDENTIALS = re.compile(
    r"""(?ix)
    (?:bearer|basic)\s+[\w.~+/=-]{8,}
    | \b(?:sk|pk|rk|xai|gsk|key|api[_-]?key|token)[-_][\w*.-]{8,}
    | \bAIza[\w-]{20,}
    | (?<=api_key=)[^\s&"']+ | (?<=apikey=)[^\s&"']+ | (?<=[?&]key=)[^\s&"']+
    """
)
_HTML_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def excerpt(text: str) -> str:
    """`text` as one line without what looks like a credential, at most `MAX_SAID_CHARS`. Of a web page its title."""
    if text.lstrip()[:1] == "<":
        title = _HTML_TITLE.search(text)
        text = "a web page" + (f' titled "{title.group(1).strip()}"' if title else "")
    line = " ".join(_CREDENTIALS.sub(_HIDDEN, text).split())
    return line if len(line) <= MAX_SAID_CHARS else line[: MAX_SAID_CHARS - 1] + _CUT


def hide_secret(text: str, secret: str) -> str:
    """`text` without `secret`, also where the cut of `excerpt` went through it."""
    if len(secret) < _SHORTEST_SECRET_CHARS:
        return text
    text = text.replace(secret, _HIDDEN)
    for size in range(len(secret) - 1, 3, -1):
        if (part := secret[:size] + _CUT) in text:
            return text.replace(part, _HIDDEN)
    return text
