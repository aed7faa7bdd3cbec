"""Times as people read them. Pure."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

_AGO_UNITS = ((60, "s"), (60, "min"), (24, "h"), (7, "d"))


def moment_text(moment: Timestamp) -> str:
    """In the time zone of this machine, to the second."""
    return moment.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago_text(moment: Timestamp, now: datetime) -> str:
    """`12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`; a week and longer ago the day."""
    count = max(0, int((now - moment.ToDatetime(UTC)).total_seconds()))
    for size, unit in _AGO_UNITS:
        if count < size:
            return f"{count} {unit} ago"
        count //= size
    return moment_text(moment)[:10]
