"""How long an answer a Claude model may give: the API wants a number in every request. Pure."""

DEFAULT_CAP = 32_000
"""What is asked for at most when the caller says nothing (R-4.30)."""
OTHER_MODELS_CAP = 8_192
"""For models that are none of Anthropic's: what about every service that speaks this language takes."""

# Models whose own maximum is below DEFAULT_CAP; the first prefix that fits counts. Source: the table of models in
# Anthropic's documentation, "Max output".
_LOWER_CAPS = (
    ("claude-3-7", DEFAULT_CAP),
    ("claude-3-5", 8_192),
    ("claude-3", 4_096),
    ("claude-2", 4_096),
    ("claude-instant", 4_096),
)


def max_tokens(model: str) -> int:
    """`max_tokens` of a request for `model`."""
    name = model.rpartition("/")[2].lower()
    if not name.startswith("claude"):
        return OTHER_MODELS_CAP
    return next((cap for prefix, cap in _LOWER_CAPS if name.startswith(prefix)), DEFAULT_CAP)
