"""Times as people read them."""

from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from laneway.cli.moments import ago_text, moment_text

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def stamp(moment: datetime) -> Timestamp:
    wire = Timestamp()
    wire.FromDatetime(moment)
    return wire


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (7 * 86_400 - 1, "6 d ago"),
    ],
)
def test_how_long_ago_has_one_unit(seconds: int, text: str) -> None:
    assert ago_text(stamp(NOW - timedelta(seconds=seconds)), NOW) == text


def test_a_week_ago_and_longer_is_the_day() -> None:
    moment = stamp(NOW - timedelta(days=20))
    assert ago_text(moment, NOW) == moment_text(moment)[:10]


def test_a_moment_is_in_the_time_of_this_machine() -> None:
    assert moment_text(stamp(NOW)) == NOW.astimezone().strftime("%Y-%m-%d %H:%M:%S")
