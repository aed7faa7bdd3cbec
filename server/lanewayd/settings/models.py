# ruff: noqa: RUF009 - setting() and section() are dataclasses.field() with a Rule of rules.py
"""The settings of agents and of the models they use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanewayd.messages import ThinkingLevel
from lanewayd.settings.params import problem_of
from lanewayd.settings.rules import (
    entries,
    free_table,
    is_base_url,
    is_model_name,
    is_model_pattern,
    is_model_reference,
    is_name,
    is_variable,
    section,
    setting,
)

_LEVELS = ", ".join(level.value for level in ThinkingLevel)
_MODEL_WORDS = "provider/model or the name of an alias"


def is_thinking_level(text: str) -> bool:
    """Whether `text` names a level, in one of the spellings people use."""
    return ThinkingLevel.of(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPolicySettings:
    """Which models a request or a session may name."""

    allow: tuple[str, ...] = setting((), accepts=is_model_pattern, expectation=f"{_MODEL_WORDS}, or provider/*")
    """Empty: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One agent. In `agents.list.<id>` what is not given comes from `agents.defaults`."""

    model: str | None = setting(None, accepts=is_model_name, expectation=_MODEL_WORDS)
    """None: the first provider whose key is in the environment, else the embedded model."""
    fallbacks: tuple[str, ...] | None = setting(None, accepts=is_model_name, expectation=_MODEL_WORDS)
    """Models that take over when `model` fails, in this order. None in an agent: those of the defaults if the model is
    theirs too, else none."""
    image_model: str | None = setting(None, accepts=is_model_name, expectation=_MODEL_WORDS)
    """Answers messages with images where the model cannot see."""
    model_policy: ModelPolicySettings = section(ModelPolicySettings)
    thinking: str | None = setting(None, accepts=is_thinking_level, expectation=f"one of {_LEVELS}")
    """None: what the model has for it."""
    verbose: str = setting("off", choices=("off", "on", "full"))
    """How much of tool calls watchers see who do not say it."""
    reasoning: str = setting("stream", choices=("off", "on", "stream"))
    """stream: watchers see what the model thinks; on: it is a part of the result instead; off: neither."""
    params: Mapping[str, Any] = free_table(problem_of)
    """What requests to models carry; those of a model go before the defaults', an agent's own before both."""
    cache_retention: str = setting("short", choices=("none", "short", "long"))
    """How long services shall keep its prompts in their caches."""
    context_tokens: int | None = setting(None, low=1)
    """Lowers the context window of whichever model is used. None: not at all."""
    timeout_seconds: float = setting(172_800.0, low=0)
    """Budget of a run; 0 = unlimited."""
    max_turns: int = setting(0, low=0)
    """Model calls of a run at most; 0 = unlimited."""
    max_concurrent: int | None = setting(None, low=1)
    """Width of the lane `main`; of `agents.defaults` only. None: max(8, 4 x CPUs)."""
    workspace: Path | None = setting(None)
    """None: `workspaces/<agent>` in home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """All agents. `list` always has the agent `main`."""

    defaults: AgentSettings = section(AgentSettings)
    list: Mapping[str, AgentSettings] = field(default_factory=dict)


APIS = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama")
LANDED_APIS = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama")


def _key_variable() -> Any:
    return setting(
        None,
        accepts=is_variable,
        is_private=True,
        expectation="the name of an environment variable, not the key itself",
    )


OWN_PROFILE = "default"
"""The name of the key that stands directly in a provider's section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """One of several keys of a provider."""

    api_key_env: str | None = _key_variable()
    api_key_file: Path | None = setting(None)

    @property
    def key_source(self) -> str:
        """Where the key is looked for, in words; empty if there is no such place."""
        if self.api_key_file is not None:
            return f"the file {self.api_key_file}"
        return f"the environment variable {self.api_key_env}" if self.api_key_env else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """A model service. The known ones have their values without any setting."""

    api: str = setting("openai_chat", choices=APIS, landed=LANDED_APIS)
    base_url: str = setting(
        "", accepts=is_base_url, is_private=True, expectation="http(s)://host[:port][/path] without a password in it"
    )
    api_key_env: str | None = _key_variable()
    api_key_file: Path | None = setting(None)
    profiles: Mapping[str, ProfileSettings] = field(default_factory=dict)
    """More keys, by name."""
    timeout_seconds: float | None = setting(None, low=0.001)
    """Limit of connecting, of the headers, and of every wait for the next event. None: the class default."""
    self_hosted: bool | None = setting(None)
    """None: decided by the host (loopback and private addresses are self-hosted)."""

    @property
    def all_profiles(self) -> Mapping[str, ProfileSettings]:
        """Every key that is named, the provider's own first; empty if requests carry none."""
        own = ProfileSettings(api_key_env=self.api_key_env, api_key_file=self.api_key_file)
        return {**({OWN_PROFILE: own} if own.key_source else {}), **self.profiles}

    @property
    def key_source(self) -> str:
        """Where the keys are looked for, in words; empty if none is needed."""
        return " or ".join(profile.key_source for profile in self.all_profiles.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSettings:
    """The embedded model. `gguf`: another one than the installed."""

    enabled: bool = setting(True)
    gguf: Path | None = setting(None)


THINKING_FORMATS = ("", "zai", "qwen", "qwen-chat-template", "together")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """What is known of a model, over what the catalogue knows. None: as there, else as of a model nobody knows."""

    context_window: int | None = setting(None, low=1)
    context_tokens: int | None = setting(None, low=1)
    """Of `context_window` no more than this is used."""
    max_output_tokens: int | None = setting(None, low=1)
    input: tuple[str, ...] | None = setting(
        None, accepts=("text", "image").__contains__, expectation='a list of "text" and "image"'
    )
    reasoning: bool | None = setting(None)
    supported_reasoning_efforts: tuple[str, ...] | None = setting(
        None, accepts=is_thinking_level, expectation=f"a list of {_LEVELS}"
    )
    reasoning_effort_map: Mapping[str, str] = entries(names=is_thinking_level, name_expectation=f"one of {_LEVELS}")
    """Level -> what is sent for it; an empty text: the model does not have the level."""
    thinking_format: str | None = setting(None, choices=THINKING_FORMATS)
    replay_reasoning: bool | None = setting(None)
    price_input: float | None = setting(None, low=0)
    """USD per million tokens, as the others."""
    price_output: float | None = setting(None, low=0)
    price_cache_read: float | None = setting(None, low=0)
    price_cache_write: float | None = setting(None, low=0)
    long_prompt_tokens: int | None = setting(None, low=0)
    """A call with a longer prompt costs more: all of it. 0 = it does not."""
    long_prompt_input_factor: float | None = setting(None, low=0)
    """Times as much for all that is read; None: as in the catalogue, else 1."""
    long_prompt_output_factor: float | None = setting(None, low=0)
    params: Mapping[str, Any] = free_table(problem_of)
    """What requests to it carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """How models are reached."""

    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    transport: str = setting("aiohttp", choices=("aiohttp", "httpx"))
    idle_timeout_seconds: float | None = setting(None, low=0.001)
    """Longest wait for the next event of a provider. None: 120, self-hosted 300."""
    first_event_timeout_seconds: float | None = setting(None, low=0.001)
    """Longest wait for the first event. None: as the others."""
    local: LocalModelSettings = section(LocalModelSettings)
    aliases: Mapping[str, str] = entries(accepts=is_model_reference, expectation="provider/model")
    """Another name -> the model it stands for."""
    catalog: Mapping[str, CatalogSettings] = entries(
        names=is_model_reference, name_expectation='provider/model, in quotes: [models.catalog."acme/large"]'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Which of a provider's keys is used."""

    order: Mapping[str, tuple[str, ...]] = entries(accepts=is_name, expectation="a list of profiles of the provider")
    """Provider -> its profiles, the one to be used first in front; others are not used. Without an entry: all of them,
    the least recently used first."""
