"""What the failures of a credential lead to: the windows in which it is not used (spec 04, 4.2). Pure.

Two windows can run at a time: a cooldown, which may hold for one model only, and `disabled`, which always holds for
all. A failure within a running window never extends it (R-4.46). It does show that the trouble lasts: a window that
passes without any failure puts the counters back, so the next one is as short as the first; one in which calls failed
(probes, calls that were under way) is followed by the next longer one.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lanewayd.messages import FailureClass

FORGOTTEN_AFTER = timedelta(hours=24)
SHORT_RETRY_AFTER_S = 60.0
"""A server that asks for a longer pause after a rate limit names the end of a quota, not of a burst (R-4.58)."""
LONGEST_BLOCK_S = 7 * 86_400.0
"""What a server may ask for at most: a quota of a week."""

_COOLDOWN_S = (30.0, 60.0, 300.0)
_RATE_LIMIT_S, _RATE_LIMIT_CAP_S = 30.0, 86_400.0
_DISABLED_S = 600.0
_DISABLED_CAPS_S = {FailureClass.BILLING: 86_400.0, FailureClass.AUTH_PERMANENT: 3_600.0}
_BLAMELESS = frozenset(
    {
        FailureClass.FORMAT,
        FailureClass.CONTEXT_OVERFLOW,
        FailureClass.REFUSAL,
        FailureClass.MODEL_NOT_FOUND,
    }
)
"""They are about the request, so another credential would meet them too (R-4.50)."""


@dataclass(frozen=True, slots=True)
class ProfileHealth:
    """State of one credential (R-4.51). Times are wall times: windows outlive the process."""

    last_used_at: datetime | None = None
    last_failure_at: datetime | None = None
    cooldown_until: datetime | None = None
    cooldown_reason: FailureClass | None = None
    cooldown_model: str = ""
    """The only model that the cooldown holds for; "" = all."""
    disabled_until: datetime | None = None
    disabled_reason: FailureClass | None = None
    error_count: int = 0
    """Cooldowns in a row, those of rate limits aside."""
    failure_counts: Mapping[FailureClass, int] = field(default_factory=dict)
    """Windows in a row by their reason."""
    is_disturbed: bool = False
    """A call failed while the last window ran."""
    mark: str = ""
    """Of the credential that failed, as its owner tells one from another; "" = nothing has failed."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which a credential is not used."""

    until: datetime
    reason: FailureClass


UNUSED = ProfileHealth()


def says_something(kind: FailureClass) -> bool:
    """Whether such a failure may be the credential's."""
    return kind not in _BLAMELESS


def window_of(health: ProfileHealth, model: str, now: datetime) -> Window | None:
    """The window that keeps the credential from being used for `model`, of two the one that ends later."""
    windows = []
    if _runs(health.cooldown_until, now) and health.cooldown_model in ("", model):
        windows.append(_window(health.cooldown_until, health.cooldown_reason))
    if _runs(health.disabled_until, now):
        windows.append(_window(health.disabled_until, health.disabled_reason))
    return max(windows, key=lambda window: window.until, default=None)


def after_use(health: ProfileHealth, now: datetime) -> ProfileHealth:
    """A call is made with it."""
    return replace(health, last_used_at=now)


def after_success(health: ProfileHealth) -> ProfileHealth:
    """A call was answered: nothing stays of the failures (R-4.49)."""
    return ProfileHealth(last_used_at=health.last_used_at)


def after_failure(
    health: ProfileHealth, kind: FailureClass, model: str, now: datetime, *, retry_after_s: float | None = None
) -> ProfileHealth:
    """A call for `model` ("" = not known) failed. `retry_after_s` is the pause that the server asked for."""
    if not says_something(kind):
        return health
    health = replace(_forgiven(health, now), last_failure_at=now)
    if kind is FailureClass.RATE_LIMIT and (retry_after_s or 0.0) > SHORT_RETRY_AFTER_S:
        return _blocked(health, now, min(retry_after_s or 0.0, LONGEST_BLOCK_S))
    if kind in _DISABLED_CAPS_S:
        return _disabled(health, kind, now)
    return _cooled(health, kind, model, now, retry_after_s or 0.0)


def in_order(
    names: Iterable[str], healths: Mapping[str, ProfileHealth], model: str, now: datetime, *, is_explicit: bool
) -> list[str]:
    """The order in which credentials are used (R-4.39, R-4.40): as given if somebody gave it, else the least recently
    used first; those in a window last, whose end comes first before the others."""

    def place(name: str) -> tuple[datetime, datetime]:
        health = healths.get(name, UNUSED)
        window = window_of(health, model, now)
        never = datetime.min.replace(tzinfo=now.tzinfo)
        used_at = never if is_explicit else health.last_used_at or never
        return (window.until if window else never, used_at)

    return sorted(names, key=place)


def _disabled(health: ProfileHealth, kind: FailureClass, now: datetime) -> ProfileHealth:
    """Closed for all models, for 10 minutes doubling."""
    health = _widened(health, kind, "", now)
    if _runs(health.disabled_until, now):
        return replace(health, is_disturbed=True)
    count = health.failure_counts.get(kind, 0) + 1
    length_s = _doubled(_DISABLED_S, count, _DISABLED_CAPS_S[kind])
    return replace(
        health,
        disabled_until=now + timedelta(seconds=length_s),
        disabled_reason=kind,
        failure_counts={**health.failure_counts, kind: count},
        is_disturbed=_is_running(health, now),
    )


def _cooled(
    health: ProfileHealth, kind: FailureClass, model: str, now: datetime, retry_after_s: float
) -> ProfileHealth:
    is_rate_limit = kind is FailureClass.RATE_LIMIT
    if _runs(health.cooldown_until, now):
        return replace(_widened(health, kind, model, now), is_disturbed=True)
    count = health.failure_counts.get(kind, 0) + 1
    error_count = health.error_count + (0 if is_rate_limit else 1)
    if is_rate_limit:
        length_s = max(_doubled(_RATE_LIMIT_S, count, _RATE_LIMIT_CAP_S), retry_after_s)
    else:
        length_s = _COOLDOWN_S[min(error_count, len(_COOLDOWN_S)) - 1]
    return replace(
        health,
        cooldown_until=now + timedelta(seconds=length_s),
        cooldown_reason=kind,
        cooldown_model=model if is_rate_limit else "",
        error_count=error_count,
        failure_counts={**health.failure_counts, kind: count},
        is_disturbed=_is_running(health, now),
    )


def _blocked(health: ProfileHealth, now: datetime, blocked_s: float) -> ProfileHealth:
    """The server named the end of its quota: that is exact, and about the account (R-4.48)."""
    until = now + timedelta(seconds=blocked_s)
    kind = FailureClass.RATE_LIMIT
    is_running = _runs(health.cooldown_until, now)
    if is_running and health.cooldown_until is not None and health.cooldown_until >= until:
        return replace(health, cooldown_model="", is_disturbed=True)
    counts = health.failure_counts
    if not is_running:
        counts = {**counts, kind: counts.get(kind, 0) + 1}
    return replace(
        health, cooldown_until=until, cooldown_reason=kind, cooldown_model="", failure_counts=counts, is_disturbed=False
    )


def _widened(health: ProfileHealth, kind: FailureClass, model: str, now: datetime) -> ProfileHealth:
    """A cooldown of one model holds for all when another model fails, or the reason is the whole credential's
    (R-4.47)."""
    is_the_same = kind is FailureClass.RATE_LIMIT and model == health.cooldown_model
    return health if is_the_same or not _runs(health.cooldown_until, now) else replace(health, cooldown_model="")


def _forgiven(health: ProfileHealth, now: datetime) -> ProfileHealth:
    """Counters start again after 24 h without a failure, or after windows in which none came; that of rate limits does
    not."""
    if health.last_failure_at is None:
        return health
    is_long_ago = now - health.last_failure_at >= FORGOTTEN_AFTER
    if not is_long_ago and (_is_running(health, now) or health.is_disturbed):
        return health
    rate_limits = health.failure_counts.get(FailureClass.RATE_LIMIT, 0)
    return replace(health, error_count=0, failure_counts={FailureClass.RATE_LIMIT: rate_limits} if rate_limits else {})


def _is_running(health: ProfileHealth, now: datetime) -> bool:
    return _runs(health.cooldown_until, now) or _runs(health.disabled_until, now)


def _runs(until: datetime | None, now: datetime) -> bool:
    return until is not None and until > now


def _window(until: datetime | None, reason: FailureClass | None) -> Window:
    if until is None:
        raise ValueError("no window")
    return Window(until, reason or FailureClass.UNKNOWN)


def _doubled(first_s: float, count: int, cap_s: float) -> float:
    return float(min(first_s * 2 ** min(count - 1, 30), cap_s))


# --- as it is stored --------------------------------------------------------------------------------------------------


def health_to_json(health: ProfileHealth) -> str:
    """One JSON object; what is unset is left out."""
    stored = {
        "last_used_at": _text_of(health.last_used_at),
        "last_failure_at": _text_of(health.last_failure_at),
        "cooldown_until": _text_of(health.cooldown_until),
        "cooldown_reason": health.cooldown_reason,
        "cooldown_model": health.cooldown_model,
        "disabled_until": _text_of(health.disabled_until),
        "disabled_reason": health.disabled_reason,
        "error_count": health.error_count,
        "failure_counts": {kind.value: count for kind, count in health.failure_counts.items()},
        "is_disturbed": health.is_disturbed,
        "mark": health.mark,
    }
    return json.dumps({name: value for name, value in stored.items() if value})


def health_from_json(text: str) -> ProfileHealth:
    """What `health_to_json` wrote. Raises ValueError for anything else."""
    try:
        stored = json.loads(text)
        return ProfileHealth(
            last_used_at=_time_of(stored.get("last_used_at")),
            last_failure_at=_time_of(stored.get("last_failure_at")),
            cooldown_until=_time_of(stored.get("cooldown_until")),
            cooldown_reason=_kind_of(stored.get("cooldown_reason")),
            cooldown_model=str(stored.get("cooldown_model", "")),
            disabled_until=_time_of(stored.get("disabled_until")),
            disabled_reason=_kind_of(stored.get("disabled_reason")),
            error_count=int(stored.get("error_count", 0)),
            failure_counts={FailureClass(kind): int(count) for kind, count in stored.get("failure_counts", {}).items()},
            is_disturbed=bool(stored.get("is_disturbed", False)),
            mark=str(stored.get("mark", "")),
        )
    except (AttributeError, TypeError) as error:
        raise ValueError("not the health of a credential") from error


def _text_of(time: datetime | None) -> str:
    return time.isoformat() if time is not None else ""


def _time_of(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _kind_of(text: str | None) -> FailureClass | None:
    return FailureClass(text) if text else None


def all_cooling(
    names: Collection[str], healths: Mapping[str, ProfileHealth], model: str, now: datetime
) -> tuple[str, Window] | None:
    """Of credentials that are all in windows, the one whose window ends first; None when one can be used, or there is
    none."""
    windows = [(name, window_of(healths.get(name, UNUSED), model, now)) for name in names]
    closed = [(name, window) for name, window in windows if window is not None]
    if not closed or len(closed) < len(windows):
        return None
    return min(closed, key=lambda pair: pair[1].until)
