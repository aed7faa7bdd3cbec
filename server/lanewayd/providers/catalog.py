"""The well-known models: how much they read and write, whether they see and think, what they cost. Pure data.

Sources, read on 2026-11-30 from stored copies of August to November 2026: developers.openai.com/api/docs/models and
/pricing, platform.claude.com/docs (models, pricing, effort), ai.google.dev/gemini-api/docs/models and /pricing, and
github.com/anomalyco/models.dev. Prices are the standard ones, in USD per million tokens; where a service takes more for
long prompts, it does so for the whole call. Levels of OpenAI's models: spec 04, 3.2.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from lanewayd.messages import LongPrompts, ModelFacts, Prices, ThinkingLevel

_L = ThinkingLevel
_LOW_TO_HIGH = (_L.LOW, _L.MEDIUM, _L.HIGH)
_FROM_MINIMAL = (_L.MINIMAL, *_LOW_TO_HIGH)
_TO_XHIGH = (*_LOW_TO_HIGH, _L.XHIGH)
_TO_MAX = (*_TO_XHIGH, _L.MAX)
_CLAUDE_4_6 = (*_FROM_MINIMAL, _L.MAX, _L.ADAPTIVE)
_CLAUDE_NEW = (*_FROM_MINIMAL, _L.XHIGH, _L.MAX, _L.ADAPTIVE)
_GEMINI = (*_FROM_MINIMAL, _L.ADAPTIVE)
_GEMINI_FROM_LOW = _GEMINI[1:]
_LONG_OPENAI = LongPrompts(272_000, 2.0, 1.5)
_LONG_GEMINI_PRO = LongPrompts(200_000, 2.0, 1.5)
_LONG_HAIKU = LongPrompts(100_000, 5.0, 5.0)
_WINDOW_400K, _WINDOW_1050K, _WINDOW_GEMINI = 400_000, 1_050_000, 1_048_576


def _facts(
    window: int,
    output: int,
    levels: tuple[ThinkingLevel, ...],
    *prices: float | None,
    sees: bool = True,
    long: LongPrompts | None = None,
) -> ModelFacts:
    """`levels` empty: it does not think. `prices`: input, output, cache read, cache write; those left out unknown."""
    reads, writes, cache_read, cache_write = (*prices, None, None, None, None)[:4]
    return ModelFacts(
        context_window=window,
        max_output_tokens=output,
        accepts_images=sees,
        can_think=bool(levels),
        thinking_levels=levels,
        prices=Prices(reads, writes, cache_read, cache_write, long),
        is_known=True,
    )


def _on_or_off(facts: ModelFacts) -> ModelFacts:
    """Of a model that thinks or does not: every level means that it does (R-4.33)."""
    return replace(facts, thinking_format="qwen")


_OPENAI: Mapping[str, ModelFacts] = {
    # The price of writing to its cache is what it is of all others of its generation: 1.25 times the input.
    "gpt-6.2-astra": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 8.0, 40.0, 0.4, 10.0, long=_LONG_OPENAI),
    "gpt-6.2-sol": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 2.0, 10.0, 0.1, 2.5, long=_LONG_OPENAI),
    "gpt-6.1-sol": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 2.0, 10.0, 0.1, 2.5, long=_LONG_OPENAI),
    "gpt-6.1-terra": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 1.0, 5.0, 0.05, 1.25, long=_LONG_OPENAI),
    "gpt-6-astra": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 10.0, 50.0, 1.0, 12.5, long=_LONG_OPENAI),
    "gpt-6-sol": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 2.0, 10.0, 0.2, 2.5, long=_LONG_OPENAI),
    "gpt-6-luna": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 0.1, 0.5, 0.01, 0.125, long=_LONG_OPENAI),
    "gpt-5.6": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 4.0, 20.0, 0.4, 5.0, long=_LONG_OPENAI),
    "gpt-5.6-sol": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 4.0, 20.0, 0.4, 5.0, long=_LONG_OPENAI),
    "gpt-5.6-terra": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 2.0, 12.0, 0.2, 2.5, long=_LONG_OPENAI),
    "gpt-5.6-luna": _facts(_WINDOW_1050K, 128_000, _TO_MAX, 0.2, 1.2, 0.02, 0.25, long=_LONG_OPENAI),
    "gpt-5.5": _facts(_WINDOW_1050K, 128_000, _TO_XHIGH, 5.0, 30.0, 0.5, long=_LONG_OPENAI),
    "gpt-5.5-pro": _facts(_WINDOW_1050K, 128_000, _TO_XHIGH[1:], 30.0, 180.0, long=_LONG_OPENAI),
    "gpt-5.4": _facts(_WINDOW_1050K, 128_000, _TO_XHIGH, 2.5, 15.0, 0.25, long=_LONG_OPENAI),
    "gpt-5.4-mini": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 0.75, 4.5, 0.075),
    "gpt-5.4-nano": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 0.2, 1.25, 0.02),
    "gpt-5.4-pro": _facts(_WINDOW_1050K, 128_000, _TO_XHIGH[1:], 30.0, 180.0, long=_LONG_OPENAI),
    "gpt-5.3-codex": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 1.75, 14.0, 0.175),
    "gpt-5.2": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 1.75, 14.0, 0.175),
    "gpt-5.2-codex": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 1.75, 14.0, 0.175),
    "gpt-5.2-pro": _facts(_WINDOW_400K, 128_000, _TO_XHIGH[1:], 21.0, 168.0),
    "gpt-5.1": _facts(_WINDOW_400K, 128_000, _LOW_TO_HIGH, 1.25, 10.0, 0.125),
    "gpt-5.1-codex": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 1.25, 10.0, 0.125),
    "gpt-5.1-codex-max": _facts(_WINDOW_400K, 128_000, _TO_XHIGH[1:], 1.25, 10.0, 0.125),
    "gpt-5.1-codex-mini": _facts(_WINDOW_400K, 128_000, (_L.MEDIUM,), 0.25, 2.0, 0.025),
    "gpt-5": _facts(_WINDOW_400K, 128_000, _FROM_MINIMAL, 1.25, 10.0, 0.125),
    "gpt-5-mini": _facts(_WINDOW_400K, 128_000, _FROM_MINIMAL, 0.25, 2.0, 0.025),
    "gpt-5-nano": _facts(_WINDOW_400K, 128_000, _FROM_MINIMAL, 0.05, 0.4, 0.005),
    "gpt-5-codex": _facts(_WINDOW_400K, 128_000, _TO_XHIGH, 1.25, 10.0, 0.125),
    "gpt-5-pro": _facts(_WINDOW_400K, 272_000, (_L.HIGH,), 15.0, 120.0),
    "gpt-4.1": _facts(1_047_576, 32_768, (), 2.0, 8.0, 0.5),
    "gpt-4.1-mini": _facts(1_047_576, 32_768, (), 0.4, 1.6, 0.1),
    "gpt-4.1-nano": _facts(1_047_576, 32_768, (), 0.1, 0.4, 0.025),
    "gpt-4o": _facts(128_000, 16_384, (), 2.5, 10.0, 1.25),
    "gpt-4o-mini": _facts(128_000, 16_384, (), 0.15, 0.6, 0.075),
    "o3": _facts(200_000, 100_000, _LOW_TO_HIGH, 2.0, 8.0, 0.5),
    "o4-mini": _facts(200_000, 100_000, _LOW_TO_HIGH, 1.1, 4.4, 0.275),
    "o3-mini": _facts(200_000, 100_000, _LOW_TO_HIGH, 1.1, 4.4, 0.55, sees=False),
}

_ANTHROPIC: Mapping[str, ModelFacts] = {
    "claude-fable-5-1": _facts(1_000_000, 128_000, _CLAUDE_NEW, 10.0, 50.0, 1.0, 12.5),
    "claude-fable-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 10.0, 50.0, 1.0, 12.5),
    "claude-opus-5-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 4.0, 20.0, 0.2, 5.0),
    "claude-opus-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 5.0, 25.0, 0.5, 6.25),
    "claude-opus-4-8": _facts(1_000_000, 128_000, _CLAUDE_NEW, 5.0, 25.0, 0.5, 6.25),
    "claude-opus-4-7": _facts(1_000_000, 128_000, _CLAUDE_NEW, 5.0, 25.0, 0.5, 6.25),
    "claude-opus-4-6": _facts(1_000_000, 128_000, _CLAUDE_4_6, 5.0, 25.0, 0.5, 6.25),
    "claude-opus-4-5": _facts(200_000, 64_000, _FROM_MINIMAL, 5.0, 25.0, 0.5, 6.25),
    "claude-opus-4-1": _facts(200_000, 32_000, _FROM_MINIMAL, 15.0, 75.0, 1.5, 18.75),
    "claude-opus-4-0": _facts(200_000, 32_000, _FROM_MINIMAL, 15.0, 75.0, 1.5, 18.75),
    "claude-sonnet-5-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 2.0, 10.0, 0.1, 2.5),
    "claude-sonnet-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 2.0, 10.0, 0.2, 2.5),
    "claude-sonnet-4-6": _facts(1_000_000, 64_000, _CLAUDE_4_6, 3.0, 15.0, 0.3, 3.75),
    "claude-sonnet-4-5": _facts(200_000, 64_000, _FROM_MINIMAL, 3.0, 15.0, 0.3, 3.75),
    "claude-sonnet-4-0": _facts(200_000, 64_000, _FROM_MINIMAL, 3.0, 15.0, 0.3, 3.75),
    "claude-3-7-sonnet": _facts(200_000, 64_000, _FROM_MINIMAL, 3.0, 15.0, 0.3, 3.75),
    "claude-haiku-5-5": _facts(1_000_000, 128_000, _CLAUDE_NEW, 0.1, 0.5, 0.01, 0.125, long=_LONG_HAIKU),
    "claude-haiku-4-5": _facts(200_000, 64_000, _FROM_MINIMAL, 1.0, 5.0, 0.1, 1.25),
    "claude-3-5-haiku": _facts(200_000, 8_192, (), 0.8, 4.0, 0.08, 1.0),
}
_SHORT_CLAUDE_NAMES: Mapping[str, str] = {
    "claude-opus-4": "claude-opus-4-0",
    "claude-sonnet-4": "claude-sonnet-4-0",
    "claude-3.7-sonnet": "claude-3-7-sonnet",
    "claude-3.5-haiku": "claude-3-5-haiku",
}

_GEMINI_MODELS: Mapping[str, ModelFacts] = {
    # The introductory price, until the end of 2026; then 1.5, 7.5, 0.15.
    "gemini-3.8-flash": _facts(_WINDOW_GEMINI, 65_536, _GEMINI_FROM_LOW, 0.75, 3.75, 0.075),
    "gemini-3.7-flash": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 1.5, 7.5, 0.15),
    "gemini-3.5-flash": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 1.5, 9.0, 0.15),
    "gemini-3.1-pro-preview": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 2.0, 12.0, 0.2, long=_LONG_GEMINI_PRO),
    "gemini-3.1-flash-lite": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 0.25, 1.5, 0.025),
    "gemini-3-pro-preview": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 2.0, 12.0, 0.2, long=_LONG_GEMINI_PRO),
    "gemini-3-flash-preview": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 0.5, 3.0, 0.05),
    "gemini-2.5-pro": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 1.25, 10.0, 0.125, long=_LONG_GEMINI_PRO),
    "gemini-2.5-flash": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": _facts(_WINDOW_GEMINI, 65_536, _GEMINI, 0.1, 0.4, 0.01),
}

# Families of open models, by what their names begin with: the first that fits counts. What runs on one's own machine
# has no price; a context length is what the model was trained for, and how it was started may allow less.
_OLLAMA: tuple[tuple[str, ModelFacts], ...] = (
    ("gpt-oss", _facts(131_072, 0, _LOW_TO_HIGH, sees=False)),
    ("qwen3-vl", _on_or_off(_facts(262_144, 0, _LOW_TO_HIGH))),
    ("qwen3-coder", _facts(262_144, 0, (), sees=False)),
    ("qwen3.", _on_or_off(_facts(262_144, 0, _LOW_TO_HIGH))),
    ("qwen3", _on_or_off(_facts(40_960, 0, _LOW_TO_HIGH, sees=False))),
    ("qwen2.5vl", _facts(128_000, 0, ())),
    ("qwen2.5", _facts(32_768, 0, (), sees=False)),
    ("qwq", _on_or_off(_facts(40_960, 0, _LOW_TO_HIGH, sees=False))),
    ("deepseek-r1", _on_or_off(_facts(131_072, 0, _LOW_TO_HIGH, sees=False))),
    ("llama4", _facts(1_048_576, 0, ())),
    ("llama3.2-vision", _facts(131_072, 0, ())),
    ("llama3.", _facts(131_072, 0, (), sees=False)),
    ("llama3", _facts(8_192, 0, (), sees=False)),
    ("gemma3", _facts(131_072, 0, ())),
    ("mistral-small", _facts(131_072, 0, ())),
    ("phi4", _facts(16_384, 0, (), sees=False)),
)

_SNAPSHOT = re.compile(r"(?:-latest|-\d{8}|-\d{4}-\d{2}-\d{2})$")
_OPENROUTER_VENDORS = {"openai": "openai", "anthropic": "anthropic", "google": "gemini"}


def facts_of(provider: str, model: str) -> ModelFacts | None:
    """What is known of a model of a known provider; None: nothing. Letters may have any case."""
    find = _FINDERS.get(provider.lower())
    return find(model.lower()) if find else None


def listed_models(provider: str) -> tuple[str, ...]:
    """The provider's own names of the models that are known of it; of families that one installs there are none."""
    if provider == "openrouter":
        return tuple(
            f"{vendor}/{_with_dots(model) if known == 'anthropic' else model}"
            for vendor, known in _OPENROUTER_VENDORS.items()
            for model in _TABLES[known]
        )
    return tuple(_TABLES.get(provider, ()))


def _find_openai(model: str) -> ModelFacts | None:
    return _OPENAI.get(model) or _OPENAI.get(_SNAPSHOT.sub("", model))


def _find_anthropic(model: str) -> ModelFacts | None:
    name = _SNAPSHOT.sub("", model)
    return _ANTHROPIC.get(_SHORT_CLAUDE_NAMES.get(name, name))


def _find_gemini(model: str) -> ModelFacts | None:
    name = model.removeprefix("models/")
    return _GEMINI_MODELS.get(name) or _GEMINI_MODELS.get(name.removesuffix("-preview"))


def _find_ollama(model: str) -> ModelFacts | None:
    name = model.rpartition("/")[2]
    facts = next((facts for prefix, facts in _OLLAMA if name.startswith(prefix)), None)
    if facts is not None and "instruct" in name:
        return replace(facts, can_think=False, thinking_levels=(), thinking_format="")
    return facts


def _find_openrouter(model: str) -> ModelFacts | None:
    """It passes the models of others on, at their prices; what follows a colon may be a cheaper or a dearer way."""
    vendor, _, rest = model.partition("/")
    name, colon, _ = rest.partition(":")
    known = _OPENROUTER_VENDORS.get(vendor)
    if known == "anthropic":
        name = _SHORT_CLAUDE_NAMES.get(name, name).replace(".", "-")
    facts = facts_of(known, name) if known else None
    return replace(facts, prices=Prices()) if facts is not None and colon else facts


def _with_dots(model: str) -> str:
    """`claude-sonnet-4-6` as OpenRouter writes it."""
    return re.sub(r"(\d)-(\d)", r"\1.\2", model)


_TABLES: Mapping[str, Mapping[str, ModelFacts]] = {
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI_MODELS,
}
_FINDERS: Mapping[str, Callable[[str], ModelFacts | None]] = {
    "openai": _find_openai,
    "anthropic": _find_anthropic,
    "gemini": _find_gemini,
    "ollama": _find_ollama,
    "openrouter": _find_openrouter,
}
