"""What is known of each model: the catalogue, and over it what the settings say."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lanewayd.messages import LOCAL_PROVIDER, UNKNOWN_MODEL, LongPrompts, ModelFacts, Prices, ThinkingLevel
from lanewayd.models.windows import Window, window
from lanewayd.providers.catalog import facts_of, listed_models
from lanewayd.settings.models import CatalogSettings

FREE = Prices(0.0, 0.0, 0.0, 0.0)


class KnownModels:
    """Answers by reference, `provider/model`; upper and lower case are the same."""

    def __init__(self, catalog: Mapping[str, CatalogSettings], *, local_context_tokens: Callable[[], int]) -> None:
        self._entries = {reference.lower(): entry for reference, entry in catalog.items()}
        self._names = tuple(catalog)
        self._local_context_tokens = local_context_tokens

    def facts(self, reference: str, *, agent_cap: int | None = None) -> ModelFacts:
        """With the context window that is used, which `agent_cap` may lower."""
        facts, entry = self._native(reference), self._entries.get(reference.lower())
        used = self.window(reference, agent_cap=agent_cap).used
        return replace(facts if entry is None else _with_entry(facts, entry), context_window=used)

    def window(self, reference: str, *, agent_cap: int | None = None) -> Window:
        """The context window of the model and what is used of it."""
        entry = self._entries.get(reference.lower(), CatalogSettings())
        native = entry.context_window or self._native(reference).context_window
        return window(native=native, entry_tokens=entry.context_tokens, agent_cap=agent_cap)

    def params(self, reference: str) -> Mapping[str, Any]:
        """What the settings say that requests to the model carry."""
        return self._entries.get(reference.lower(), CatalogSettings()).params

    def of(self, provider: str) -> list[str]:
        """References of the models that are known of a provider."""
        listed = [f"{provider}/{model}" for model in listed_models(provider)]
        own = [name for name in self._names if name.partition("/")[0].lower() == provider]
        return list({name.lower(): name for name in (*own, *listed)}.values())

    def _native(self, reference: str) -> ModelFacts:
        provider, _, model = reference.partition("/")
        if provider.lower() == LOCAL_PROVIDER:
            return ModelFacts(context_window=self._local_context_tokens(), prices=FREE, is_known=True)
        return facts_of(provider, model) or UNKNOWN_MODEL


def _with_entry(facts: ModelFacts, entry: CatalogSettings) -> ModelFacts:
    """`facts` with what the settings say; the window is another matter."""
    said: dict[str, Any] = {"is_known": True}
    if entry.max_output_tokens is not None:
        said["max_output_tokens"] = entry.max_output_tokens
    if entry.input is not None:
        said["accepts_images"] = "image" in entry.input
    if entry.thinking_format is not None:
        said["thinking_format"] = entry.thinking_format
    if entry.replay_reasoning is not None:
        said["replays_reasoning"] = entry.replay_reasoning
    prices = {name: getattr(entry, f"price_{name}") for name in ("input", "output", "cache_read", "cache_write")}
    said["prices"] = replace(
        facts.prices,
        **{name: price for name, price in prices.items() if price is not None},
        long_prompts=_long_prompts_of(entry, facts.prices.long_prompts),
    )
    return replace(facts, **said, **_thinking_of(entry))


def _long_prompts_of(entry: CatalogSettings, known: LongPrompts | None) -> LongPrompts | None:
    known = known or LongPrompts(0, 1.0, 1.0)
    wished = (entry.long_prompt_tokens, entry.long_prompt_input_factor, entry.long_prompt_output_factor)
    above, reads, writes = (
        each if each is not None else default
        for each, default in zip(wished, (known.above_tokens, known.input_factor, known.output_factor), strict=True)
    )
    return LongPrompts(int(above), reads, writes) if above else None


def _thinking_of(entry: CatalogSettings) -> dict[str, Any]:
    levels = {level for text in entry.supported_reasoning_efforts or () if (level := ThinkingLevel.of(text))}
    words = {
        level.value: word or None
        for text, word in entry.reasoning_effort_map.items()
        if (level := ThinkingLevel.of(text)) is not None
    }
    said: dict[str, Any] = {}
    if levels:
        said["thinking_levels"] = tuple(each for each in ThinkingLevel if each in levels - {ThinkingLevel.OFF})
    if words:
        said["effort_map"] = words
    if entry.reasoning is not None or levels or words or entry.thinking_format:
        said["can_think"] = entry.reasoning is not False
    if entry.reasoning is False:
        said |= {"thinking_levels": (), "effort_map": {}}
    return said
