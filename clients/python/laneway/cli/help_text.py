"""The help of a command, made from its docstring."""

import inspect
from collections.abc import Callable
from typing import Any

_EXAMPLES = "Examples:"


def help_of(command: Callable[..., Any]) -> str:
    """The docstring with each paragraph in one line, for any width of terminal; the examples keep their lines."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(
        paragraph if paragraph.startswith(_EXAMPLES) else " ".join(paragraph.split()) for paragraph in paragraphs
    )
