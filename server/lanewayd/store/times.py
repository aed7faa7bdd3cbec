"""Wall times as the database keeps them: whole microseconds since 1970-01-01 UTC."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Raises TypeError for a datetime without time zone."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(at_us: int) -> datetime:
    """The aware UTC time."""
    return _EPOCH + timedelta(microseconds=at_us)


def optional_to_us(at: datetime | None) -> int | None:
    """None stays None."""
    return None if at is None else to_us(at)


def optional_from_us(at_us: int | None) -> datetime | None:
    """None stays None."""
    return None if at_us is None else from_us(at_us)
