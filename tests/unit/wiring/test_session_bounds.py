"""What `[session.maintenance]` and `[session.reset]` say to retention and to acceptance."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lanewayd.config import Flags, load_settings
from lanewayd.errors import StartupError
from lanewayd.runs.session_upkeep import SessionBounds
from lanewayd.sessions.reset import ResetMode, ResetPolicy, SessionType
from lanewayd.settings.schema import Settings
from lanewayd.wiring.run_settings import reset_rules
from lanewayd.wiring.upkeep import session_bounds

DEFAULTS = SessionBounds(
    unused_for=timedelta(days=30),
    max_sessions=5000,
    recent=timedelta(0),
    archives_age=None,
    max_bytes=10 * 2**30,
    high_water_bytes=8 * 2**30,
)


def settings_of(home: Path, toml: str) -> Settings:
    (home / "laneway.toml").write_text(toml)
    return load_settings({"LANEWAY_HOME": str(home), "HOME": str(home)}, Flags())


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("", {}),
        ("prune_after_days = 0.5", {"unused_for": timedelta(hours=12)}),
        ("prune_after_days = 0", {"unused_for": None}),
        ("max_entries = 7", {"max_sessions": 7}),
        ("max_entries = 0", {"max_sessions": None}),
        ("preserve_recent_hours = 2", {"recent": timedelta(hours=2)}),
        ("preserve_external = false", {"spares_external": False}),
        ("reset_archive_retention_days = 90", {"archives_age": timedelta(days=90)}),
        ("max_disk_bytes = 1000", {"max_bytes": 1000, "high_water_bytes": 800}),
        ("max_disk_bytes = 1000\nhigh_water_bytes = 10", {"max_bytes": 1000, "high_water_bytes": 10}),
        ("max_disk_bytes = 1000\nhigh_water_bytes = 5000", {"max_bytes": 1000, "high_water_bytes": 1000}),
        ("max_disk_bytes = 0", {"max_bytes": None, "high_water_bytes": 0}),
        ('mode = "warn"', {"only_warns": True}),
    ],
)
def test_every_setting_of_maintenance_is_a_bound(tmp_path: Path, line: str, changes: dict[str, Any]) -> None:
    settings = settings_of(tmp_path, f"[session.maintenance]\n{line}\n")
    assert session_bounds(settings) == replace(DEFAULTS, **changes)


def test_every_setting_of_resets_is_in_a_policy(tmp_path: Path) -> None:
    toml = (
        '[session.reset]\nmode = "daily"\nat_hour = 6\nidle_minutes = 90\n'
        '[session.reset_by_type.thread]\nmode = "idle"\n[session.reset_by_channel.Slack]\n'
    )
    rules = reset_rules(settings_of(tmp_path, toml))
    assert rules.default == ResetPolicy(ResetMode.DAILY, 6, timedelta(minutes=90))
    assert rules.by_type == {SessionType.THREAD: ResetPolicy(ResetMode.IDLE, 4)}
    assert rules.by_channel == {"slack": ResetPolicy()}
    assert reset_rules(settings_of(tmp_path, "")).default == ResetPolicy()


@pytest.mark.parametrize(
    "toml",
    [
        '[session.reset]\nmode = "weekly"',
        "[session.reset]\nat_hour = 24",
        "[session.reset]\nidle_minutes = 0",
        "[session.reset_by_type.crowd]\n",
        '[session.maintenance]\nmode = "off"',
        "[session.maintenance]\nmax_entries = -1",
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, toml: str) -> None:
    with pytest.raises(StartupError, match="session"):
        settings_of(tmp_path, toml)
