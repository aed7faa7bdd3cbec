# ruff: noqa: RUF009 - setting() and section() are dataclasses.field() with a Rule of rules.py
"""Every setting: its name, type, default, range. The dataclasses are the schema; config.py reads values into them.
A nested dataclass is a section, a mapping one with free names. `later()` reserves a name: a value for it is refused.
Agents and models are in models.py."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lanewayd.records import LARGEST_QUEUE_CAP, LONGEST_DEBOUNCE_MS
from lanewayd.settings.models import AgentsSettings, AuthSettings, ModelsSettings
from lanewayd.settings.rules import MIB, entries, is_session_type, is_store_url, is_variable, later, section, setting

QUEUE_MODES = ("steer", "followup", "collect", "interrupt")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSettings:
    """A global lane."""

    max_concurrent: int = setting(1, low=0)
    """0 suspends the lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What a message does to a busy session."""

    mode: str | None = setting(None, choices=QUEUE_MODES)
    """Of messages that name none, in sessions that have none. None: steer with a channel, else followup."""
    debounce_ms: int = setting(500, low=0, high=LONGEST_DEBOUNCE_MS)
    """Messages are collected until none has come for so long, at most ten times so long."""
    cap: int = setting(20, low=1, high=LARGEST_QUEUE_CAP)
    """Messages of a session that wait to be collected, at most."""
    drop: str = setting("summarize", choices=("old", "new", "summarize"))
    """Which goes when one more comes: the oldest, the newest (it is refused), the oldest with a line for the model."""
    by_channel: Mapping[str, str] = entries(choices=QUEUE_MODES)
    """The mode of messages that come through a channel, by its name; before `mode`."""
    debounce_ms_by_channel: Mapping[str, int] = entries(low=0, high=LONGEST_DEBOUNCE_MS)
    """Before `debounce_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLockSettings:
    """The lock of a session's transcript."""

    acquire_timeout_ms: int = setting(60_000, low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSettings:
    """What ends a session by itself: the next message begins a new one under its key."""

    mode: str = setting("none", choices=("none", "daily", "idle"))
    at_hour: int = setting(4, low=0, high=23)
    """Of mode daily, on the clock of the host."""
    idle_minutes: int | None = setting(None, low=1)
    """Since a user's last message. None: in mode idle 60. In mode daily too, if set: whichever comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """What sessions may take. Pinned ones, and those with a run that has not ended, always stay."""

    mode: str = setting("enforce", choices=("enforce", "warn"))
    """warn: only a line in the log."""
    prune_after_days: float = setting(30.0, low=0)
    """Without a message; then a session goes, after its transcript was written to `archives/`. 0 = never."""
    max_entries: int = setting(5000, low=0)
    """Sessions of each tenant that are not archived; the longest unused are archived. 0 = no limit."""
    preserve_recent_hours: float = setting(0.0, low=0)
    """Sessions in which a user has spoken within it are not archived for that."""
    preserve_external: bool = setting(True)
    """Sessions that a channel has spoken in stay too."""
    reset_archive_retention_days: float = setting(0.0, low=0)
    """How long files in `archives/` are kept; 0 = as long as there is room."""
    max_disk_bytes: int = setting(10_737_418_240, low=0)
    """Of database, attachments and `archives/`; above it what is archived goes, oldest first. 0 = no limit."""
    high_water_bytes: int | None = setting(None, low=0)
    """Down to this. None: 80 % of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Sessions."""

    reset: ResetSettings = section(ResetSettings)
    reset_by_type: Mapping[str, ResetSettings] = entries(
        names=is_session_type, name_expectation="direct, group or thread"
    )
    """Instead of `reset`, for these sessions."""
    reset_by_channel: Mapping[str, ResetSettings] = field(default_factory=dict)
    """Instead of both, for messages of these channels."""
    maintenance: MaintenanceSettings = section(MaintenanceSettings)
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
class AuditRetentionSettings:
    """How long audit records are kept, and how many of all tenants together."""

    max_age_days: float = setting(30.0, low=0)
    max_rows: int = setting(100_000, low=1, high=10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The audit ledger: what was done, never what was said. Off, nothing is added; what it has is kept as long."""

    enabled: bool = setting(True)
    messages: str = setting("off", choices=("off", "direct", "all"))
    """Whether messages are recorded too: none, those of conversations with one person, all."""
    retention: AuditRetentionSettings = section(AuditRetentionSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """Limits of each tenant."""

    max_queued_runs: int | None = setting(None, low=1)
    """Runs that wait; None: as many as the whole service takes."""
    max_active_runs: int | None = setting(None, low=1)
    """Runs that execute; None: as many as the lanes take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What all runs of a session may use; 0 = no limit."""

    max_tokens: int = setting(0, low=0)
    max_cost_usd: float = setting(0.0, low=0)


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
    max_attachment_bytes: int = setting(20 * MIB, low=0, high=200 * MIB)
    max_attachments_bytes: int = setting(25 * MIB, low=0, high=200 * MIB)
    """All of one message."""
    max_receive_bytes: int = setting(32 * MIB, low=MIB, high=256 * MIB)
    """The transport's limit of one request; it must lie above all others."""
    max_queued_runs: int = setting(10_000, low=1)
    max_depth: int = setting(5, low=0, high=64)
    """How deep runs may start runs."""
    max_tokens: int = setting(0, low=0)
    """Tokens of a run, prompts and answers of all its model calls; 0 = no limit."""
    max_cost_usd: float = setting(0.0, low=0)
    """Cost of a run; 0 = no limit. Calls whose prices are not known count nothing."""
    session: SessionLimits = section(SessionLimits)
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
    """Sessions that show no sign of life while they are at work (spec 02, 8)."""

    enabled: bool = setting(True)
    stuck_session_warn_ms: int = setting(120_000, low=1_000, high=86_400_000)
    """After so long a silent session is told of."""
    stuck_session_abort_ms: int | None = setting(None, low=1_000)
    """After so long without progress a run is ended; None: the larger of 5 minutes and 3 x stuck_session_warn_ms. A run
    is never ended before a model service may time out."""
    blocked_tool_abort_ms: int = setting(900_000, low=1_000)
    """Of a run whose tool is silent, at least; a tool that ends its calls by itself has its own time too."""
    ownerless_release_ms: int = setting(300_000, low=1_000)
    abort_settle_ms: int = setting(15_000, low=0)
    """How long a run that was ended may take to go; then its session is free without it."""


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
    auth: AuthSettings = section(AuthSettings)
    lanes: Mapping[str, LaneSettings] = field(default_factory=dict)
    queue: QueueSettings = section(QueueSettings)
    session: SessionSettings = section(SessionSettings)
    events: EventsSettings = section(EventsSettings)
    runs: RunsSettings = section(RunsSettings)
    audit: AuditSettings = section(AuditSettings)
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
