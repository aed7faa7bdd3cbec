"""When a call or a stream that failed is tried again, and after how long. Pure: time and chance come in.

A call may be repeated when repeating it changes nothing: reads, waits, subscriptions, a message with an idempotency
key, the abort of one run. The others (abort of a session, reset, delete, drain) are made once, because between the lost
answer and the repetition something else may have taken the place of what they were meant for.
"""

from dataclasses import dataclass

import grpc

from laneway.errors import ClientClosed, LanewayError

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 3.0

_TRANSPORT_STATUSES = frozenset(
    {
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
    }
)
"""What a connection that is cut in the middle of a frame, or a time limit, ends as - if no service gave a reason."""


def is_lost(error: LanewayError) -> bool:
    """Whether connection, answer or server went away, so that the same call may succeed later.

    LimitReached is none: the service is there and says no, so asking again at once would be one more load on it.
    """
    if isinstance(error, ClientClosed):
        return False
    return error.status is grpc.StatusCode.UNAVAILABLE or (error.status in _TRANSPORT_STATUSES and not error.reason)


def pause_s(losses: int, *, jitter: float, retry_after_s: float | None = None) -> float:
    """Seconds to pause after loss number `losses` in a row, from 1.

    0.1, 0.2, 0.4 ... up to 3, each made shorter by up to a half (`jitter` 0 to 1), so that callers who lost the same
    server do not come back at one instant. The server's own suggestion is the least. Raises ValueError below 1.
    """
    if losses < 1:
        raise ValueError("losses are counted from 1")
    longest = min(FIRST_PAUSE_S * 2.0 ** min(losses - 1, 10), LONGEST_PAUSE_S)
    return max(longest * (1 - jitter / 2), retry_after_s or 0.0)


@dataclass(slots=True)
class Losses:
    """The losses in a row of one call or stream. Owned by the code that makes it.

    `since` is when the time began: the beginning of the call, or None for a stream, whose time begins with its loss.
    """

    patience_s: float
    since: float | None = None
    count: int = 0

    def contact(self) -> None:
        """The server was heard: the next loss of a stream begins anew."""
        self.since, self.count = None, 0

    def pause_s(self, error: LanewayError, *, now: float, jitter: float) -> float | None:
        """Count a loss; how long to pause before the next try, or None to give up: the error is no loss, or the next
        try would come after `patience_s`."""
        if not is_lost(error):
            return None
        self.count += 1
        if self.since is None:
            self.since = now
        pause = pause_s(self.count, jitter=jitter, retry_after_s=error.retry_after_s)
        return pause if now + pause - self.since < self.patience_s else None
