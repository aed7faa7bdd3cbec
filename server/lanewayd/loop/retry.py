"""Which failed model call is tried again, and after how long. Pure. Source: spec 04, section 5; instead of R-4.60."""

from lanewayd.errors import ErrorCode
from lanewayd.providers.interface import Failed

MAX_RETRIES = 3
LONGEST_RETRY_AFTER_S = 60.0

_RETRIED = frozenset(
    {
        ErrorCode.PROVIDER_RATE_LIMITED.value,
        ErrorCode.PROVIDER_UNAVAILABLE.value,
        ErrorCode.PROVIDER_UNREACHABLE.value,
        ErrorCode.PROVIDER_STREAM_CUT.value,
    }
)


def retry_delay_s(failure: Failed, *, tries: int) -> float | None:
    """Seconds to wait before the next try, or None when the failure stands; `tries` calls have failed in a row.

    1, 2, 4 s for the three retries; a Retry-After of the server raises the wait, and one above 60 s forbids it. A
    stream that was cut is tried again only if it had shown nothing.
    """
    if tries > MAX_RETRIES or not failure.is_transient or failure.error.reason not in _RETRIED:
        return None
    if failure.error.reason == ErrorCode.PROVIDER_STREAM_CUT.value and failure.partial.content:
        return None
    if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_RETRY_AFTER_S:
        return None
    return max(2.0 ** (tries - 1), failure.retry_after_s or 0.0)
