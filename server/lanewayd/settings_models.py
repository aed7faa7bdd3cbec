# ruff: noqa: RUF009 - setting() and section() are dataclasses.field() with the rules of settings_rules.py
"""The settings of agents and of the models they use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lanewayd.settings_rules import is_base_url, is_model_reference, is_variable, section, setting

DEFAULT_AGENT = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One agent. In `agents.list.<id>` what is not given comes from `agents.defaults`."""

    model: str | None = setting(None, accepts=is_model_reference, expectation="provider/model")
    """None: the first provider whose key is in the environment, else the embedded model."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """A model service. The known ones have their values without any setting."""

    api: str = setting("openai_chat", choices=APIS, landed=LANDED_APIS)
    base_url: str = setting(
        "", accepts=is_base_url, is_private=True, expectation="http(s)://host[:port][/path] without a password in it"
    )
    api_key_env: str | None = setting(
        None,
        accepts=is_variable,
        is_private=True,
        expectation="the name of an environment variable, not the key itself",
    )
    api_key_file: Path | None = setting(None)
    timeout_seconds: float | None = setting(None, low=0.001)
    """Limit of connecting, of the headers, and of every wait for the next event. None: the class default."""
    self_hosted: bool | None = setting(None)
    """None: decided by the host (loopback and private addresses are self-hosted)."""

    @property
    def needs_key(self) -> bool:
        """A place for a key is named; without one, requests carry none."""
        return self.api_key_file is not None or self.api_key_env is not None

    @property
    def key_source(self) -> str:
        """Where the key is looked for, in words; empty if none is needed."""
        if self.api_key_file is not None:
            return f"the file {self.api_key_file}"
        return f"the environment variable {self.api_key_env}" if self.api_key_env else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSettings:
    """The embedded model. `gguf`: another one than the installed."""

    enabled: bool = setting(True)
    gguf: Path | None = setting(None)


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
