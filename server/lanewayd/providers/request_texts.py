"""What a request says in place of texts and names that services refuse. Pure; the stored transcript keeps its own."""

import re

BLANK_USER = "(empty message)"
BLANK_RESULT = "(no output)"

_ILLEGAL_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64


def result_text(text: str) -> str:
    """What a tool gave back; a blank text is refused."""
    return text if text.strip() else BLANK_RESULT


def function_name(name: str) -> str:
    """The name of a tool that an earlier model may have made up, with the letters that services agree on."""
    return _ILLEGAL_IN_NAME.sub("_", name)[:_MAX_NAME_CHARS] or "unknown"
