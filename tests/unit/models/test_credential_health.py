"""The table of failure windows (spec 04, 4.2), a test for each row and cell, and the rules R-4.40, R-4.46 to R-4.51."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lanewayd.messages import FailureClass
from lanewayd.models.credential_health import (
    UNUSED,
    ProfileHealth,
    after_failure,
    after_success,
    after_use,
    all_cooling,
    health_from_json,
    health_to_json,
    in_order,
    window_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY_S = 86_400.0
PROFILE_KINDS = (
    FailureClass.AUTH,
    FailureClass.TIMEOUT,
    FailureClass.OVERLOADED,
    FailureClass.SERVER_ERROR,
    FailureClass.SESSION_EXPIRED,
    FailureClass.NO_ERROR_DETAILS,
    FailureClass.UNCLASSIFIED,
    FailureClass.EMPTY_RESPONSE,
    FailureClass.UNKNOWN,
)
RATE_LIMIT, BILLING, PERMANENT = FailureClass.RATE_LIMIT, FailureClass.BILLING, FailureClass.AUTH_PERMANENT


def length_s(health: ProfileHealth, now: datetime, model: str = "m") -> float:
    window = window_of(health, model, now)
    return (window.until - now).total_seconds() if window else 0.0


def end_of(health: ProfileHealth, model: str = "m") -> datetime:
    ends = [until for until in (health.cooldown_until, health.disabled_until) if until]
    return max(ends)


def windows_in_a_row(kind: FailureClass, count: int, *, is_disturbed: bool = True) -> list[float]:
    """Lengths of windows that follow each other; in each but the last a call fails if it `is_disturbed`."""
    health, now, lengths = UNUSED, NOW, []
    for _ in range(count):
        health = after_failure(health, kind, "m", now)
        lengths.append(length_s(health, now))
        if is_disturbed:
            health = after_failure(health, kind, "m", now + timedelta(seconds=1))
        now = end_of(health)
    return lengths


# --- row 1: auth, timeout, overloaded, format-like, unknown -----------------------------------------------------------


@pytest.mark.parametrize("kind", PROFILE_KINDS)
def test_windows_of_a_profile_take_30_s_then_60_s_then_5_minutes_at_most(kind: FailureClass) -> None:
    assert windows_in_a_row(kind, 5) == [30, 60, 300, 300, 300]


@pytest.mark.parametrize("kind", PROFILE_KINDS)
def test_they_hold_for_all_models_of_the_profile(kind: FailureClass) -> None:
    health = after_failure(UNUSED, kind, "m", NOW)
    assert length_s(health, NOW, "m") == length_s(health, NOW, "another") == 30


def test_their_count_starts_again_when_the_previous_window_has_passed_without_a_failure() -> None:
    assert windows_in_a_row(FailureClass.AUTH, 3, is_disturbed=False) == [30, 30, 30]


@pytest.mark.parametrize(("pause", "expected_s"), [(timedelta(hours=24), 30), (timedelta(hours=23, minutes=59), 60)])
def test_their_count_starts_again_after_24_hours_without_failure(pause: timedelta, expected_s: float) -> None:
    health = after_failure(UNUSED, FailureClass.AUTH, "m", NOW)
    health = after_failure(health, FailureClass.AUTH, "m", NOW)
    health = after_failure(health, FailureClass.AUTH, "m", NOW + pause)
    assert length_s(health, NOW + pause) == expected_s


def test_their_count_starts_again_after_any_success() -> None:
    health = after_failure(UNUSED, FailureClass.AUTH, "m", NOW)
    health = after_success(after_failure(health, FailureClass.AUTH, "m", NOW))
    assert length_s(after_failure(health, FailureClass.AUTH, "m", NOW), NOW) == 30


# --- row 2: rate_limit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_disturbed", [True, False])
def test_windows_of_rate_limits_double_from_30_s_to_24_h_whether_they_expire_or_not(is_disturbed: bool) -> None:
    lengths = windows_in_a_row(RATE_LIMIT, 14, is_disturbed=is_disturbed)
    assert lengths[:4] == [30, 60, 120, 240]
    assert lengths[11] == 30 * 2**11
    assert lengths[12:] == [DAY_S, DAY_S]


def test_they_hold_for_the_model_only() -> None:
    health = after_failure(UNUSED, RATE_LIMIT, "m", NOW)
    assert health.cooldown_model == "m"
    assert (length_s(health, NOW, "m"), length_s(health, NOW, "another")) == (30, 0)


def test_without_a_model_they_hold_for_all() -> None:
    assert length_s(after_failure(UNUSED, RATE_LIMIT, "", NOW), NOW, "another") == 30


def test_their_count_outlives_24_hours_and_the_failures_of_other_kinds() -> None:
    health = after_failure(UNUSED, RATE_LIMIT, "m", NOW)
    later = NOW + timedelta(hours=48)
    health = after_failure(health, FailureClass.TIMEOUT, "m", later)
    later += timedelta(hours=48)
    assert length_s(after_failure(health, RATE_LIMIT, "m", later), later) == 60


def test_their_count_starts_again_after_a_success() -> None:
    health = after_success(after_failure(UNUSED, RATE_LIMIT, "m", NOW))
    assert length_s(after_failure(health, RATE_LIMIT, "m", NOW), NOW) == 30


def test_they_do_not_lengthen_the_windows_of_other_kinds() -> None:
    health = after_failure(UNUSED, RATE_LIMIT, "m", NOW)
    health = after_failure(health, RATE_LIMIT, "m", NOW)
    later = end_of(health)
    assert length_s(after_failure(health, FailureClass.AUTH, "m", later), later) == 30


# --- rows 3 and 4: billing, auth_permanent ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "cap_s"), [(BILLING, DAY_S), (PERMANENT, 3600.0)])
def test_a_disabled_profile_stays_so_for_10_minutes_doubling_up_to_the_cap(kind: FailureClass, cap_s: float) -> None:
    assert windows_in_a_row(kind, 10) == [min(600.0 * 2**step, cap_s) for step in range(10)]


@pytest.mark.parametrize("kind", [BILLING, PERMANENT])
def test_it_is_disabled_for_all_models(kind: FailureClass) -> None:
    health = after_failure(UNUSED, kind, "m", NOW)
    assert (health.disabled_reason, health.cooldown_until) == (kind, None)
    assert length_s(health, NOW, "m") == length_s(health, NOW, "another") == 600


@pytest.mark.parametrize("kind", [BILLING, PERMANENT])
def test_its_count_starts_again_as_that_of_the_first_row(kind: FailureClass) -> None:
    assert windows_in_a_row(kind, 2, is_disturbed=False) == [600, 600]
    twice = after_failure(after_failure(UNUSED, kind, "m", NOW), kind, "m", NOW)
    a_day_later = NOW + timedelta(hours=24)
    assert length_s(after_failure(twice, kind, "m", a_day_later), a_day_later) == 600
    assert length_s(after_failure(after_success(twice), kind, "m", NOW), NOW) == 600


def test_the_two_reasons_are_counted_apart() -> None:
    health = after_failure(after_failure(UNUSED, BILLING, "m", NOW), BILLING, "m", NOW)
    later = end_of(health)
    assert length_s(after_failure(health, PERMANENT, "m", later), later) == 600


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FailureClass.AUTH, RATE_LIMIT, BILLING, PERMANENT])
def test_a_running_window_is_never_extended(kind: FailureClass) -> None:
    health = after_failure(UNUSED, kind, "m", NOW)
    end = end_of(health)
    for second in range(20):
        health = after_failure(health, kind, "m", NOW + timedelta(seconds=second))
    assert end_of(health) == end
    assert window_of(health, "m", end) is None


def test_many_failures_at_once_count_as_one_step() -> None:
    health = UNUSED
    for _ in range(16):
        health = after_failure(health, RATE_LIMIT, "m", NOW)
    later = end_of(health)
    assert length_s(after_failure(health, RATE_LIMIT, "m", later), later) == 60


@pytest.mark.parametrize(
    ("kind", "model"),
    [(RATE_LIMIT, "another"), (RATE_LIMIT, ""), (FailureClass.AUTH, "m"), (FailureClass.TIMEOUT, "m"), (BILLING, "m")],
)
def test_the_window_of_a_model_widens_for_another_model_or_a_reason_of_the_profile(
    kind: FailureClass, model: str
) -> None:
    health = after_failure(UNUSED, RATE_LIMIT, "m", NOW)
    widened = after_failure(health, kind, model, NOW)
    assert (widened.cooldown_model, widened.cooldown_until) == ("", health.cooldown_until)


def test_the_same_model_does_not_widen_its_window() -> None:
    health = after_failure(after_failure(UNUSED, RATE_LIMIT, "m", NOW), RATE_LIMIT, "m", NOW)
    assert health.cooldown_model == "m"


@pytest.mark.parametrize(
    ("retry_after_s", "expected_s", "others_s"),
    [
        (None, 30, 0),
        (20, 30, 0),
        (45, 45, 0),
        (60, 60, 0),
        (61, 61, 61),
        (7200, 7200, 7200),
        (1e9, 7 * DAY_S, 7 * DAY_S),
    ],
)
def test_a_named_end_of_a_quota_blocks_the_profile_until_then(
    retry_after_s: float | None, expected_s: float, others_s: float
) -> None:
    health = after_failure(UNUSED, RATE_LIMIT, "m", NOW, retry_after_s=retry_after_s)
    assert (length_s(health, NOW), length_s(health, NOW, "another")) == (expected_s, others_s)


def test_it_holds_also_when_a_shorter_window_runs_and_not_when_a_longer_one_does() -> None:
    short = after_failure(UNUSED, RATE_LIMIT, "m", NOW)
    blocked = after_failure(short, RATE_LIMIT, "m", NOW, retry_after_s=7200)
    assert length_s(blocked, NOW, "another") == 7200
    assert length_s(after_failure(blocked, RATE_LIMIT, "m", NOW, retry_after_s=3600), NOW) == 7200


def test_a_success_clears_everything_but_the_last_use() -> None:
    health = after_use(UNUSED, NOW)
    for kind in (RATE_LIMIT, FailureClass.AUTH, BILLING, PERMANENT):
        health = after_failure(health, kind, "m", NOW)
    assert after_success(health) == ProfileHealth(last_used_at=NOW)


@pytest.mark.parametrize(
    "kind",
    [FailureClass.FORMAT, FailureClass.CONTEXT_OVERFLOW, FailureClass.REFUSAL, FailureClass.MODEL_NOT_FOUND],
)
def test_failures_of_the_request_say_nothing_about_the_credential(kind: FailureClass) -> None:
    assert after_failure(UNUSED, kind, "m", NOW) is UNUSED


def test_every_class_of_failure_has_its_row() -> None:
    rows = {*PROFILE_KINDS, RATE_LIMIT, BILLING, PERMANENT}
    blameless = {kind for kind in FailureClass if after_failure(UNUSED, kind, "m", NOW) is UNUSED}
    assert rows | blameless == set(FailureClass)
    assert not rows & blameless


def test_of_two_windows_the_later_end_counts() -> None:
    health = after_failure(after_failure(UNUSED, FailureClass.AUTH, "m", NOW), BILLING, "m", NOW)
    window = window_of(health, "m", NOW)
    assert window is not None
    assert (window.reason, length_s(health, NOW)) == (BILLING, 600)
    assert length_s(health, NOW + timedelta(seconds=300)) == 300


# --- the order --------------------------------------------------------------------------------------------------------


def test_the_given_order_holds_with_cooling_profiles_last_soonest_first() -> None:
    healths = {
        "a": after_failure(UNUSED, BILLING, "m", NOW),
        "b": after_failure(UNUSED, FailureClass.AUTH, "m", NOW),
        "c": after_use(UNUSED, NOW),
    }
    assert in_order("abcd", healths, "m", NOW, is_explicit=True) == ["c", "d", "b", "a"]


def test_without_an_order_the_least_recently_used_comes_first() -> None:
    healths = {
        "a": after_use(UNUSED, NOW),
        "b": after_use(UNUSED, NOW - timedelta(seconds=5)),
        "d": after_failure(UNUSED, RATE_LIMIT, "m", NOW),
    }
    assert in_order("abcd", healths, "m", NOW, is_explicit=False) == ["c", "b", "a", "d"]
    assert in_order("abcd", healths, "another", NOW, is_explicit=False) == ["c", "d", "b", "a"]


def test_all_are_cooling_only_when_none_can_be_used() -> None:
    healths = {"a": after_failure(UNUSED, BILLING, "m", NOW), "b": after_failure(UNUSED, RATE_LIMIT, "m", NOW)}
    closed = all_cooling("ab", healths, "m", NOW)
    assert closed is not None
    assert (closed[0], closed[1].reason) == ("b", RATE_LIMIT)
    assert all_cooling("ab", healths, "another", NOW) is None
    assert all_cooling("abc", healths, "m", NOW) is None
    assert all_cooling("", healths, "m", NOW) is None


# --- as it is stored --------------------------------------------------------------------------------------------------


def test_health_is_stored_and_read_whole() -> None:
    health = after_use(UNUSED, NOW)
    for kind in (RATE_LIMIT, FailureClass.AUTH, BILLING, BILLING):
        health = after_failure(health, kind, "m", NOW)
    health = replace(health, mark="a1b2c3")
    assert health_from_json(health_to_json(health)) == health
    assert health_from_json(health_to_json(UNUSED)) == UNUSED


@pytest.mark.parametrize(
    "text", ["", "[]", "3", '{"cooldown_until": "soon"}', '{"cooldown_reason": "whim"}', '{"failure_counts": 3}']
)
def test_what_is_no_health_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any text of it will do
        health_from_json(text)
