"""When a message begins a new session: every row of spec 03, 7.4 that says when (R-3.39 to R-3.42)."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewayd.sessions.reset import (
    NO_RESETS,
    ResetMode,
    ResetPolicy,
    ResetRules,
    SessionType,
    last_hour,
    session_type,
)

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
IN_UTC = ResetRules(zone=UTC)
NEVER = ResetPolicy()
DAILY = ResetPolicy(ResetMode.DAILY)
IDLE = ResetPolicy(ResetMode.IDLE, idle=timedelta(minutes=30))
DAILY_OR_IDLE = ResetPolicy(ResetMode.DAILY, idle=timedelta(minutes=30))


def ago(**span: float) -> datetime:
    return NOON - timedelta(**span)


@pytest.mark.parametrize(
    ("policy", "started_at", "last_interaction_at", "is_stale"),
    [
        (NEVER, ago(days=1000), ago(days=1000), False),
        (ResetPolicy(at_hour=4, idle=timedelta(minutes=1)), ago(days=9), ago(days=9), False),
        (DAILY, ago(hours=8), ago(hours=8), False),  # began at 04:00
        (DAILY, ago(hours=8, microseconds=1), NOON, True),  # began just before, whoever spoke since
        (DAILY, ago(days=30), ago(minutes=1), True),
        (DAILY, ago(hours=7), ago(hours=7), False),  # not idle: the mode does not ask for it
        (ResetPolicy(ResetMode.DAILY, at_hour=13), ago(hours=22), ago(hours=22), False),  # 13:00 is yesterday's
        (ResetPolicy(ResetMode.DAILY, at_hour=13), ago(hours=24), ago(hours=1), True),
        (ResetPolicy(ResetMode.DAILY, at_hour=12), ago(microseconds=1), NOON, True),  # at the very hour
        (ResetPolicy(ResetMode.DAILY, at_hour=0), ago(hours=12), NOON, False),
        (ResetPolicy(ResetMode.DAILY, at_hour=23), ago(hours=14), NOON, True),
        (IDLE, ago(days=30), ago(minutes=30), False),  # exceeds, not reaches
        (IDLE, ago(days=30), ago(minutes=30, microseconds=1), True),
        (ResetPolicy(ResetMode.IDLE), ago(days=1), ago(minutes=60), False),
        (ResetPolicy(ResetMode.IDLE), ago(days=1), ago(minutes=61), True),
        (DAILY_OR_IDLE, ago(hours=1), ago(minutes=31), True),
        (DAILY_OR_IDLE, ago(hours=9), ago(minutes=1), True),
        (DAILY_OR_IDLE, ago(hours=1), ago(minutes=1), False),
    ],
)
def test_when_a_session_is_stale(
    policy: ResetPolicy, started_at: datetime, last_interaction_at: datetime, is_stale: bool
) -> None:
    assert IN_UTC.is_stale(policy, NOON, started_at, last_interaction_at) is is_stale


@pytest.mark.parametrize(
    ("session_key", "channel", "thread_id", "mode"),
    [
        ("agent:main:main", "", "", "default"),
        ("agent:main:slack:direct:ann", "", "", "direct"),
        ("agent:main:slack:group:g", "", "", "group"),
        ("agent:main:slack:group:g:thread:t", "", "", "thread"),
        ("agent:main:slack:group:g", "", "t", "thread"),
        ("agent:main:slack:group:g", "Slack ", "t", "slack"),
        ("agent:main:main", "mail", "", "default"),
    ],
)
def test_channel_goes_before_type_before_the_rest(session_key: str, channel: str, thread_id: str, mode: str) -> None:
    hours = {"default": 1, "direct": 2, "group": 3, "thread": 4, "slack": 5}
    policies = {name: ResetPolicy(ResetMode.DAILY, at_hour=hour) for name, hour in hours.items()}
    types = [SessionType.GROUP, SessionType.THREAD]
    if mode == "direct":
        types.append(SessionType.DIRECT)
    rules = ResetRules(
        policies["default"],
        by_type={kind: policies[kind.value] for kind in types},
        by_channel={"slack": policies["slack"]},
    )
    assert rules.policy_for(session_key, channel=channel, thread_id=thread_id) == policies[mode]
    assert NO_RESETS.policy_for(session_key, channel=channel, thread_id=thread_id).mode is ResetMode.NONE


def test_a_policy_of_none_for_a_type_or_channel_wins_over_the_rest() -> None:
    rules = ResetRules(DAILY, by_type={SessionType.GROUP: NEVER}, by_channel={"mail": NEVER})
    assert rules.policy_for("agent:a:x:group:g", channel="", thread_id="") == NEVER
    assert rules.policy_for("agent:a:x", channel="mail", thread_id="") == NEVER
    assert rules.policy_for("agent:a:x", channel="", thread_id="") == DAILY


@pytest.mark.parametrize(
    ("session_key", "expected"),
    [
        ("agent:a:main", "direct"),
        ("agent:a:direct:ann", "direct"),
        ("agent:a:slack:direct:ann", "direct"),
        ("agent:a:slack:acc:direct:ann", "direct"),
        ("agent:a:slack:group:g", "group"),
        ("agent:a:slack:channel:c", "group"),
        ("agent:a:slack:channel:c:thread:7", "thread"),
        ("agent:a:thread", "direct"),  # a name, and no word before one
        ("agent:a:slack:direct:group", "direct"),
        ("agent:group:x", "direct"),
    ],
)
def test_the_type_of_a_session_stands_in_its_key(session_key: str, expected: str) -> None:
    assert session_type(session_key) == expected
    assert session_type(session_key, "7") == "thread"


@pytest.mark.parametrize(
    ("now", "at_hour", "expected"),
    [
        (datetime(2026, 3, 10, 3, tzinfo=UTC), 4, datetime(2026, 3, 10, 3, tzinfo=UTC)),  # 04:00 in Berlin, now
        (datetime(2026, 3, 10, 2, 59, tzinfo=UTC), 4, datetime(2026, 3, 9, 3, tzinfo=UTC)),
        (datetime(2026, 3, 9, 23, 30, tzinfo=UTC), 0, datetime(2026, 3, 9, 23, tzinfo=UTC)),  # next day there
        # Clocks go forward on 29 March: 04:00 is at 02:00 UTC from then on, at 03:00 before.
        (datetime(2026, 3, 29, 2, tzinfo=UTC), 4, datetime(2026, 3, 29, 2, tzinfo=UTC)),
        (datetime(2026, 3, 29, 1, 59, tzinfo=UTC), 4, datetime(2026, 3, 28, 3, tzinfo=UTC)),
        # ... and back on 25 October.
        (datetime(2026, 10, 25, 2, 30, tzinfo=UTC), 4, datetime(2026, 10, 24, 2, tzinfo=UTC)),
        (datetime(2026, 10, 25, 3, tzinfo=UTC), 4, datetime(2026, 10, 25, 3, tzinfo=UTC)),
    ],
)
def test_the_last_hour_is_that_of_the_clocks_of_the_zone(now: datetime, at_hour: int, expected: datetime) -> None:
    assert last_hour(at_hour, now, BERLIN) == expected


@settings(deadline=None, derandomize=True)
@given(
    st.integers(0, 10 * 365 * 24 * 3600).map(lambda seconds: NOON + timedelta(seconds=seconds)),
    st.integers(0, 23),
    st.sampled_from([UTC, BERLIN, ZoneInfo("America/St_Johns"), timezone(timedelta(hours=14))]),
)
def test_the_last_hour_is_never_ahead_and_at_most_a_day_behind(now: datetime, at_hour: int, zone: ZoneInfo) -> None:
    assert timedelta(0) <= now - last_hour(at_hour, now, zone) <= timedelta(hours=26)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_without_a_zone_the_clock_is_that_of_the_host() -> None:
    for hour in range(48):
        now = datetime(2026, 3, 29, tzinfo=UTC) + timedelta(hours=hour)
        assert last_hour(4, now, None) == last_hour(4, now, BERLIN)
