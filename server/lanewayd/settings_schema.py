# ruff: noqa: RUF009 - setting() and section() are dataclasses.field() with the rules of this file
"""Every setting: its name, type, default, range. The dataclasses are the schema; config.py reads values into them.
A nested dataclass is a section, a mapping one with free names. `later()` reserves a name: a value for it is refused."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

MIB = 1024 * 1024
DEFAULT_AGENT = "main"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must meet besides its type. `landed`: the choices this version can do; the others say so.
    `expectation`: what `accepts` asks for, in words."""

    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    landed: tuple[str, ...] = ()
    is_later: bool = False
    is_private: bool = False
    """The value is never shown: it may be a secret that was put into the wrong place."""
    expectation: str = ""
    accepts: Callable[[str], bool] | None = None


def setting(default: Any, **rule: Any) -> Any:
    """A dataclass field with a default and a Rule."""
    return field(default=default, metadata={"rule": Rule(**rule)})


def later() -> Any:
    """A reserved name without a capability behind it yet."""
    return field(default=None, metadata={"rule": Rule(is_later=True)})


def section(section_type: type) -> Any:
    """A nested section with all its defaults."""
    return field(default_factory=section_type)


def rule_of(metadata: Mapping[str, Any]) -> Rule:
    """The Rule of a dataclass field; an empty one for sections."""
    return cast(Rule, metadata.get("rule", Rule()))


def is_name(text: str) -> bool:
    """Whether `text` may name an agent, a provider or a lane."""
    return _NAME.fullmatch(text) is not None


def is_agent_id(text: str) -> bool:
    """Whether `text` is an agent id in its canonical form, the one that session keys hold."""
    return _AGENT_ID.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Whether `text` may name an environment variable."""
    return _VARIABLE.fullmatch(text) is not None


def is_base_url(text: str) -> bool:
    """An http(s) URL with a host, without user, password, query and fragment."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


def is_model_reference(text: str) -> bool:
    """`provider/model`, split at the first slash."""
    provider, slash, model = text.partition("/")
    return bool(slash) and is_name(provider) and bool(model) and model == model.strip()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSettings:
    """A global lane."""

    max_concurrent: int = setting(1, low=0)
    """0 suspends the lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What a message does to a busy session."""

    mode: str | None = setting(None, choices=("steer", "followup", "collect", "interrupt"), landed=("followup",))
    by_channel: Mapping[str, str] | None = later()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLockSettings:
    """The lock of a session's transcript."""

    acquire_timeout_ms: int = setting(60_000, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Sessions."""

    write_lock: WriteLockSettings = section(WriteLockSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRetentionSettings:
    """How long the events of ended runs are kept."""

    max_age_days: float = setting(7.0, low=0)
    max_events_per_run: int = setting(100_000, low=1)
    max_bytes: int = setting(2_147_483_648, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsSettings:
    """The event log."""

    delta_interval_ms: int = setting(25, low=0, high=10_000)
    """Deltas of a message are merged for this long; 0 = every chunk of the provider is an event."""
    retention: EventRetentionSettings = section(EventRetentionSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRetentionSettings:
    """How long the rows of ended runs are kept: never less than the 24 h of idempotency keys."""

    max_age_days: float = setting(30.0, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsSettings:
    """Runs."""

    retention: RunRetentionSettings = section(RunRetentionSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """Limits of each tenant."""

    max_queued_runs: int | None = later()
    max_active_runs: int | None = later()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What a caller may ask for. Sizes are UTF-8 bytes."""

    max_message_bytes: int = setting(MIB, low=1, high=30 * MIB)
    max_session_key_bytes: int = setting(512, low=16, high=4096)
    max_idempotency_key_bytes: int = setting(128, low=1, high=4096)
    max_metadata_keys: int = setting(32, low=0, high=1024)
    max_metadata_bytes: int = setting(512, low=1, high=65_536)
    """Of each key and of each value."""
    max_extra_system_prompt_bytes: int = setting(64 * 1024, low=0, high=30 * MIB)
    max_attachment_bytes: int | None = later()
    max_attachments_bytes: int | None = later()
    max_receive_bytes: int = setting(32 * MIB, low=MIB, high=256 * MIB)
    """The transport's limit of one request; it must lie above all others."""
    max_queued_runs: int = setting(10_000, low=1)
    max_depth: int = setting(5, low=0, high=64)
    """How deep runs may start runs."""
    tenant: TenantLimits = section(TenantLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings:
    """Going on after a crash."""

    max_attempts: int = setting(3, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """Leaving (D-18)."""

    timeout_s: float = setting(300.0, low=0)
    announce_s: float = setting(0.0, low=0)
    park_s: float = setting(10.0, low=0)


def is_store_url(text: str) -> bool:
    """`sqlite:///` and a path, or a PostgreSQL URL."""
    return (text.startswith("sqlite:///") and len(text) > len("sqlite:///")) or is_postgresql_url(text)


def is_postgresql_url(text: str) -> bool:
    """Whether the store is a PostgreSQL server."""
    return text.startswith(("postgresql://", "postgres://"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where everything is kept."""

    url: str | None = setting(None, accepts=is_store_url, is_private=True, expectation="sqlite:///PATH")
    """None: `laneway.db` in home. A relative path is taken from home."""
    stall_limit_s: float = setting(60.0, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecSettings:
    """The tool `exec`. It is not confined: it may do what the server's user may do."""

    enabled: bool = setting(True)
    env: tuple[str, ...] = setting((), accepts=is_variable, expectation="names of environment variables")
    """What a command sees besides PATH HOME LANG LC_* TERM TMPDIR."""
    timeout_seconds: float = setting(1800.0, low=0)
    """0 = none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """The tools that read and write files."""

    confined: bool = setting(True)
    """Only the agent's workspace, links resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSettings:
    """The built-in tools."""

    exec: ExecSettings = section(ExecSettings)
    files: FilesSettings = section(FilesSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What leaves through logs, traces and metrics; where to is said by OTEL_*. `semconv`: of the GenAI conventions."""

    capture_content: bool = setting(False)
    semconv: str = setting("0.1.0", choices=("0.1.0", "1.41"))
    prometheus_port: int | None = setting(None, low=0, high=65_535)
    """Metrics over HTTP, on the host of `listen` (with a socket: loopback). 0 = any free port. None: not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcSettings:
    """The gRPC server."""

    debug_services: bool | None = later()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsSettings:
    """Stuck sessions."""

    enabled: bool | None = later()
    stuck_session_warn_ms: int | None = later()
    stuck_session_abort_ms: int | None = later()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that the service is told from outside: read once, checked, never changed."""

    home: Path
    listen: str
    is_insecure: bool = False
    config_path: Path | None = None
    """The settings file that was read; None = there is none."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Dotted name -> where its value comes from, of all settings that were given."""

    agents: AgentsSettings = section(AgentsSettings)
    models: ModelsSettings = section(ModelsSettings)
    lanes: Mapping[str, LaneSettings] = field(default_factory=dict)
    queue: QueueSettings = section(QueueSettings)
    session: SessionSettings = section(SessionSettings)
    events: EventsSettings = section(EventsSettings)
    runs: RunsSettings = section(RunsSettings)
    limits: LimitSettings = section(LimitSettings)
    recovery: RecoverySettings = section(RecoverySettings)
    drain: DrainSettings = section(DrainSettings)
    store: StoreSettings = section(StoreSettings)
    tools: ToolsSettings = section(ToolsSettings)
    telemetry: TelemetrySettings = section(TelemetrySettings)
    rpc: RpcSettings = section(RpcSettings)
    diagnostics: DiagnosticsSettings = section(DiagnosticsSettings)

    @property
    def store_path(self) -> Path:
        """The SQLite database file."""
        if self.store.url is None:
            return self.home / "laneway.db"
        return self.home / self.store.url.removeprefix("sqlite:///")

    def workspace_of(self, agent_id: str) -> Path:
        """The folder an agent's tools work in; not created here."""
        agent = self.agents.list.get(agent_id, self.agents.defaults)
        return agent.workspace or self.home / "workspaces" / agent_id

    def lane_widths(self) -> dict[str, int]:
        """Width of each global lane that is known by name: main, cron, nested.1 ... and the configured ones."""
        main_width = self.agents.defaults.max_concurrent or max(8, 4 * len(os.sched_getaffinity(0)))
        widths = {"main": main_width, "cron": 8}
        widths |= {f"nested.{depth}": 8 for depth in range(1, self.limits.max_depth + 1)}
        return widths | {name: lane.max_concurrent for name, lane in self.lanes.items()}
